package clusterextensionrevision

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	admissionrequest "github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/validation"
	rev "github.com/penstock-project/penstock/pkg/revision"
)

// isProposedBy tells whether Penstock itself makes a revision for somebody to approve. Nobody
// was asked whether they may have it: whoever lets it go on will be.
func isProposedBy(ctx context.Context, revision *olm.ClusterExtensionRevision) bool {
	requester, ok := request.UserFrom(ctx)
	return ok && admissionrequest.IsInternal(ctx, requester) &&
		revision.Annotations[v1alpha1.ProposedAnnotation] == "true" && revision.Spec.LifecycleState == olm.LifecycleStatePaused
}

// approves tells whether an update lets a proposal go on.
func approves(revision, stored *olm.ClusterExtensionRevision) bool {
	return stored.Annotations[v1alpha1.ProposedAnnotation] == "true" && validation.Unpauses(revision, stored)
}

// noteApproval records who approves a proposal, which is none from then on.
func (s *strategy) noteApproval(ctx context.Context, revision, stored *olm.ClusterExtensionRevision) {
	requester := requesterFrom(ctx)
	if !approves(revision, stored) || requester == nil {
		return
	}
	setAnnotation(revision, v1alpha1.ProposedAnnotation, "")
	setAnnotation(revision, v1alpha1.ApprovedByAnnotation, requester.Username)
	setAnnotation(revision, v1alpha1.ApprovedAtAnnotation, s.clock.Now().UTC().Format(time.RFC3339))
}

func approvalPath() *field.Path {
	return field.NewPath("metadata", "annotations").Key(v1alpha1.ApproveAnnotation)
}

// invalidApproval says that whoever approves a proposal has not read its diff with what is
// rolled out now, and with what they have compared it.
func (s *strategy) invalidApproval(ctx context.Context, revision, stored *olm.ClusterExtensionRevision) (field.ErrorList, error) {
	chain, _, ok := olm.ChainOf(revision.Name)
	if !ok || !approves(revision, stored) {
		return nil, nil
	}
	revisions, err := s.chain(ctx, chain)
	if err != nil {
		return nil, err
	}
	from, given := rev.RolledOutBefore(revisions, revision.Spec.Revision), revision.Annotations[v1alpha1.ApproveAnnotation]
	if given == rev.ApprovalDigest(from, revision) {
		return nil, nil
	}
	read := "kubectl get cer " + revision.Name + " --subresource=diff"
	if from != nil {
		read = fmt.Sprintf("kubectl get revisiondiff %s..%s", from.Name, revision.Name)
	}
	how := fmt.Sprintf("must be summary.approvalDigest of the diff that you approve: run %s -o yaml; or run kubectl penstock resume %s, which shows the diff and asks", read, revision.Name)
	if given == "" {
		return field.ErrorList{field.Required(approvalPath(), revision.Name+" is a proposal: "+how)}, nil
	}
	if other := slices.IndexFunc(revisions, func(one olm.ClusterExtensionRevision) bool { return given == rev.ApprovalDigest(&one, revision) }); other >= 0 {
		how = fmt.Sprintf("belongs to the diff with %s, but another revision has been rolled out since: %s", revisions[other].Name, how)
	} else if from != nil && given == rev.ApprovalDigest(nil, revision) {
		how = fmt.Sprintf("belongs to the diff with nothing, but %s has been rolled out since: %s", from.Name, how)
	}
	return field.ErrorList{field.Invalid(approvalPath(), given, how)}, nil
}
