// Package clusterreads reads clusters for the endpoints: owners and definitions for rollbacks, the
// present effect of a rollout or a plan, and the state of profiles. Each caller sees the part that
// their own rights allow.
package clusterreads

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	diffschema "github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisionobjects"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisionrollback"
	"github.com/penstock-project/penstock/pkg/registry/olm/upgradereadiness"
	"github.com/penstock-project/penstock/pkg/server/host"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
	"github.com/penstock-project/penstock/pkg/server/targetcluster"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/pack"
)

// Options are the dependencies of the reads.
type Options struct {
	Host *host.Host
	// Target is nil when revisions are rolled out into the host. TargetClients are for revisions
	// that name a cluster.
	Target        *targetcluster.Cluster
	TargetClients *TargetClients
	Authorizer    authorizer.UnconditionalAuthorizer
	Accounts      *serviceaccounts.Accounts
	Redactor      *redact.Redactor
	// Chain lists the revisions of a chain.
	Chain       func(ctx context.Context, name string) ([]hub.ClusterExtensionRevision, error)
	Inventories *chain.Inventories
	Packs       *pack.Store
	Profiles    []profile.Profile
	// Types are the schemas of Kubernetes' own types, for diffs.
	Types diffschema.Schema
}

// Reads holds the readers of clusters.
type Reads struct {
	Options
	// Rollbacks reads owners, and the stored versions of definitions.
	Rollbacks Rollbacks
	// Live compares revisions with their target cluster.
	Live revisiondiff.Live
	// Objects reads the state of a revision's objects in their target cluster.
	Objects revisionobjects.Live
	// Upgrade reads the target cluster's state for an upgrade.
	Upgrade upgradereadiness.Live
	// ApplyCheck finds what the target cluster would refuse of a revision.
	ApplyCheck clusterextensionrevision.ApplyCheck
}

// Rollbacks reads the owners and stored versions that a rollback needs.
type Rollbacks interface {
	clusterextensionrevision.Owners
	revisionrollback.StoredVersions
}

// New creates the clients. It sends no request.
func New(options Options) (*Reads, error) {
	r := &Reads{Options: options}
	var err error
	if r.Rollbacks, err = newHostReads(options.Host, options.Target, options.TargetClients); err != nil {
		return nil, err
	}
	live, err := r.newLive()
	if err != nil {
		return nil, err
	}
	r.Live, r.Objects = live, live
	if r.ApplyCheck, err = newApplyChecks(options.Host, options.Target, options.TargetClients); err != nil {
		return nil, err
	}
	return r, nil
}
