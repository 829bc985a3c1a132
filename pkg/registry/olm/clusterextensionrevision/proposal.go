package clusterextensionrevision

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// ProposalSubresource is the subresource for revisions that are compared but not stored.
const ProposalSubresource = "proposal"

// Proposals dry-runs creates of revisions, including their manifests.
type Proposals struct {
	revisions *REST
	admitter  admitter
}

// NewProposals returns a Proposals with the server's admission for creates of revisions; nil admits
// all.
func NewProposals(revisions *REST, scheme *runtime.Scheme, admit admission.Interface) *Proposals {
	return &Proposals{revisions: revisions, admitter: newAdmitter(admit, scheme)}
}

// Try is a dry-run of a create. It returns the revision that would be stored, without a UID, and
// its manifests in rollout order.
func (p *Proposals) Try(ctx context.Context, revision *olm.ClusterExtensionRevision, options *metav1.CreateOptions) (*olm.ClusterExtensionRevision, []manifest.Object, error) {
	ctx, held := withStaged(ctx)
	options = options.DeepCopy()
	options.DryRun = []string{metav1.DryRunAll}
	validate, err := p.admitter.admit(ctx, revision, options)
	if err != nil {
		return nil, nil, err
	}
	created, err := p.revisions.Create(ctx, revision, validate, options)
	if err != nil {
		return nil, nil, err
	}
	out := created.(*olm.ClusterExtensionRevision)
	out.UID = ""
	objects, err := p.revisions.contents.collect(ctx, out, held)
	return out, objects, err
}
