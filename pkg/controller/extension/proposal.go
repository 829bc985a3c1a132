package extension

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
)

// proposals are the revisions that wait for approval, newest first. There may be two for a
// moment: a newer one is made before the older one is withdrawn.
func (v *visit) proposals() []*olmv1alpha1.ClusterExtensionRevision {
	var waiting []*olmv1alpha1.ClusterExtensionRevision
	for i := range v.revisions {
		if one := &v.revisions[i]; isProposal(one) && one.DeletionTimestamp == nil {
			waiting = append(waiting, one)
		}
	}
	return waiting
}

// isProposal is whether a revision waits for approval. Whoever lets it go on takes the annotation
// away by that; what else they change of it makes it no revision that was rolled out.
func isProposal(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return neverApproved(revision) && revision.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused
}

// neverApproved is whether a revision was proposed, and nothing of it was ever rolled out: it
// waits, or somebody has archived it, which declines it.
func neverApproved(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Annotations[extension.ProposedAnnotation] == "true"
}

// isProposed is whether a wish is proposed already, or was declined and nobody has written the
// extension since.
func (v *visit) isProposed(ctx context.Context, name name, wish *wish) *halt {
	for i := range v.revisions {
		one := &v.revisions[i]
		if !neverApproved(one) || one.DeletionTimestamp != nil || one.Annotations[extension.MadeOfAnnotation] != wish.digest() {
			continue
		}
		if isProposal(one) || one.Annotations[extension.StampAnnotation] == name.stamp {
			return v.withdraw(ctx, one)
		}
	}
	return nil
}

// mayPropose says why there is no proposal. It is made in the name of this process, which
// nobody checks; so it must take nothing from anybody. Into a chain that is somebody else's, or
// that is to begin, only its author could bring a revision.
func (v *visit) mayPropose(ctx context.Context, who user.Info) *halt {
	for i := range v.revisions {
		if v.isOwned(&v.revisions[i]) && !neverApproved(&v.revisions[i]) {
			return nil
		}
	}
	for i := range v.revisions {
		if !neverApproved(&v.revisions[i]) {
			return stop(status.NameTaken, fmt.Sprintf("%s was not made for this ClusterExtension: delete this ClusterExtension and use another name; or, to take over what is there, remove annotation %s from this ClusterExtension: the next revision is then made in the name of the user who removed it, and rolled out at once", v.revisions[i].Name, extension.ApprovalAnnotation), "")
		}
	}
	return v.mayCreate(ctx, who)
}

// withdraw deletes all proposals but one, as they were read: nobody has let them go on, so
// nothing of them is in the cluster. Kept is nil to delete all.
func (v *visit) withdraw(ctx context.Context, kept *olmv1alpha1.ClusterExtensionRevision) *halt {
	for _, proposed := range v.proposals() {
		if kept != nil && proposed.UID == kept.UID {
			continue
		}
		err := v.Own.Delete(ctx, proposed.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &proposed.UID, ResourceVersion: &proposed.ResourceVersion}})
		switch {
		case apierrors.IsConflict(err):
			return outdated() // somebody may have approved it
		case err != nil && !apierrors.IsNotFound(err):
			return retry(status.Failed, fmt.Errorf("withdrawing the proposal %s: %w", proposed.Name, err))
		}
	}
	return settled()
}
