package extension

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
)

// neverApproved is whether a revision was proposed, and nothing of it was ever rolled out: it
// waits, or somebody has archived it, which declines it.
func neverApproved(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Annotations[extension.ProposedAnnotation] == "true"
}

// Propose implements maker.Writer: it is proposed already, or must not be.
func (w engineWriter) Propose(ctx context.Context, identity maker.Identity) *maker.Outcome {
	if stopped := w.Proposed(ctx, w.desired.digest(), identity.Stamp); stopped != nil {
		return stopped
	}
	return w.mayPropose(ctx, identity.Author)
}

// mayPropose says why there is no proposal. It is made in the name of this process, which
// nobody checks; so it must take nothing from anybody. Into a chain that is somebody else's, or
// that is to begin, only its author could bring a revision.
func (s *scope) mayPropose(ctx context.Context, who user.Info) *maker.Outcome {
	for i := range s.Revisions {
		if s.isOwned(&s.Revisions[i]) && !neverApproved(&s.Revisions[i]) {
			return nil
		}
	}
	for i := range s.Revisions {
		if !neverApproved(&s.Revisions[i]) {
			return stop(status.NameTaken, fmt.Sprintf("%s was not made for this ClusterExtension: delete this ClusterExtension and use another name; or, to take over what is there, remove annotation %s from this ClusterExtension: the next revision is then made in the name of the user who removed it, and rolled out at once", s.Revisions[i].Name, extension.ApprovalAnnotation), "")
		}
	}
	return s.mayCreate(ctx, who)
}
