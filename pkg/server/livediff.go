package server

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff/live"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
)

// newLive makes what compares revisions with the cluster.
func (a *api) newLive() (liveAnywhere, error) {
	here := sight{
		config: a.extra.targetConfig(serviceaccounts.Reader()), rights: a.authorizer,
		who: a.extra.accounts.User(serviceaccounts.Reader()), role: a.extra.accounts.Remedy(serviceaccounts.Reader()),
		work: func(ctx context.Context, revision *hub.ClusterExtensionRevision) (rollout.Work, int64, error) {
			return a.workAlone(ctx, revision, "")
		},
	}
	if a.extra.target != nil {
		elsewhere, err := newTargetRights(a.authorizer, v1alpha1.DefaultTarget, here.config)
		if err != nil {
			return liveAnywhere{}, err
		}
		here.rights, here.who, here.role = elsewhere, elsewhere.self, "give the user of --target-kubeconfig the rights that docs/how-to/target-cluster.md lists"
	}
	made, err := a.newLiveIn(here)
	return liveAnywhere{api: a, here: made}, err
}

// sight is how one cluster is looked at.
type sight struct {
	config *rest.Config
	// rights says what users may see there; who looks for them, and role is what gives
	// them the rights to, for people.
	rights authorizer.UnconditionalAuthorizer
	who    user.Info
	role   string
	work   live.Work
}

// newLiveIn makes what compares revisions with one cluster.
func (a *api) newLiveIn(s sight) (*live.Live, error) {
	door, err := targetclient.New(targetclient.Options{Config: s.config, Redactor: a.extra.redactor})
	if err != nil {
		return nil, fmt.Errorf("making a client for live diffs: %w", err)
	}
	return live.New(live.Deps{
		Authorizer: s.rights,
		Previewer:  preview.New(preview.Options{Reader: door, Trier: door, Names: rev.Names(), Parallel: previewsAtOnce}),
		Kinds:      door,
		Work:       s.work,
		Reader:     s.who,
		Role:       s.role,
		Clock:      clock.RealClock{},
	}), nil
}

// previewsAtOnce bounds the requests of one live diff that are in flight.
const previewsAtOnce = 16

// workAlone is what a rollout of one revision into a cluster would work on, and the
// version of the inventory that it was made from. The cluster is empty for the one of
// revisions that name none.
func (a *api) workAlone(ctx context.Context, revision *hub.ClusterExtensionRevision, cluster string) (rollout.Work, int64, error) {
	name, _, ok := hub.ChainOf(revision.Name)
	if !ok {
		return rollout.Work{}, 0, fmt.Errorf("%q is not the name of a revision", revision.Name)
	}
	stored, version, err := a.store.Inventories.Load(ctx, name)
	if err != nil {
		return rollout.Work{}, 0, err
	}
	if err := rev.CheckCluster(stored, cluster); err != nil {
		return rollout.Work{}, 0, err
	}
	all, err := a.revisions.Revision.Chain(ctx, name)
	if err != nil {
		return rollout.Work{}, 0, err
	}
	others, err := rev.FromHub(all...)
	if err != nil {
		return rollout.Work{}, 0, err
	}
	one, err := rev.FromHub(*revision)
	if err != nil {
		return rollout.Work{}, 0, err
	}
	work, err := rev.Alone(name, &one[0], others, stored)
	return work, version, err
}
