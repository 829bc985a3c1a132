package clusterextensionrevision

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	admissionrequest "github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/approval"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/validation"
	"github.com/penstock-project/penstock/pkg/extension"
	rev "github.com/penstock-project/penstock/pkg/revision"
)

// isProposedBy reports whether Penstock itself creates a revision for approval. No user's rights
// are checked then; the approver's rights are checked later.
func isProposedBy(ctx context.Context, revision *olm.ClusterExtensionRevision) bool {
	requester, ok := request.UserFrom(ctx)
	return ok && admissionrequest.IsInternal(ctx, requester) &&
		revision.Annotations[v1alpha1.ProposedAnnotation] == "true" && revision.Spec.LifecycleState == olm.LifecycleStatePaused
}

// approves reports whether an update approves a proposal now.
func approves(revision, stored *olm.ClusterExtensionRevision) bool {
	return stored.Annotations[v1alpha1.ProposedAnnotation] == "true" && validation.Unpauses(revision, stored)
}

// noteApproval records the approver of a proposal, now or for later. An approved revision is no
// proposal any more. An approval for later ends when its proposal ends or its time is removed.
func (s *strategy) noteApproval(ctx context.Context, revision, stored *olm.ClusterExtensionRevision) {
	requester := requesterFrom(ctx)
	if requester == nil {
		return
	}
	pending := approval.Pending(stored.Annotations)
	switch {
	case approves(revision, stored):
		at := s.clock.Now()
		if pending != nil && pending.User == requester.Username && admissionrequest.IsSentByPenstock(ctx) {
			at = pending.At
		}
		setAnnotation(revision, v1alpha1.ProposedAnnotation, "")
		setAnnotation(revision, v1alpha1.ApprovedByAnnotation, requester.Username)
		setAnnotation(revision, v1alpha1.ApprovedAtAnnotation, at.UTC().Format(time.RFC3339))
		if revision.Annotations[v1alpha1.ApproveNotBeforeAnnotation] == stored.Annotations[v1alpha1.ApproveNotBeforeAnnotation] {
			setAnnotation(revision, v1alpha1.ApproveNotBeforeAnnotation, "")
		}
		setAnnotation(revision, v1alpha1.ScheduledApprovalAnnotation, "")
	case validation.ApprovesLater(revision, stored):
		// ValidateUpdate returns this error.
		if value, err := s.scheduled(requester, revision).Encode(); err == nil {
			setAnnotation(revision, v1alpha1.ScheduledApprovalAnnotation, value)
		}
	case pending != nil && (!validation.WaitsForApproval(revision) || revision.Annotations[v1alpha1.ApproveNotBeforeAnnotation] == "" && stored.Annotations[v1alpha1.ApproveNotBeforeAnnotation] != ""):
		if requester, ok := request.UserFrom(ctx); !ok || !admissionrequest.IsInternal(ctx, requester) {
			setAnnotation(revision, v1alpha1.ScheduledApprovalAnnotation, "")
			// The next approver decides again.
			setAnnotation(revision, v1alpha1.ApproveAnnotation, "")
			setAnnotation(revision, v1alpha1.AcknowledgeDeletionAnnotation, "")
		}
	}
}

// scheduled returns the approval for later that an update gives.
func (s *strategy) scheduled(requester *olm.Requester, revision *olm.ClusterExtensionRevision) *approval.Scheduled {
	given := &approval.Scheduled{User: requester.Username, UID: requester.UID, Groups: requester.Groups, At: s.clock.Now().UTC().Truncate(time.Second), Digest: revision.Annotations[v1alpha1.ApproveAnnotation], Generation: revision.Generation}
	for key, values := range requester.Extra {
		if given.Extra == nil {
			given.Extra = map[string][]string{}
		}
		given.Extra[key] = values
	}
	given.NotBefore, _ = approval.NotBefore(revision.Annotations[v1alpha1.ApproveNotBeforeAnnotation], s.clock.Now())
	return given
}

// invalidDrift returns the errors in the time until which drift is only reported.
func (s *strategy) invalidDrift(revision, stored *olm.ClusterExtensionRevision) field.ErrorList {
	value := revision.Annotations[v1alpha1.ReportDriftUntilAnnotation]
	if value == "" || value == stored.Annotations[v1alpha1.ReportDriftUntilAnnotation] {
		return nil
	}
	if _, err := v1alpha1.ReportsDriftUntil(value, s.clock.Now()); err != nil {
		return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(v1alpha1.ReportDriftUntilAnnotation), value, err.Error())}
	}
	return nil
}

// invalidTime returns the errors in the times of a revision: the end of drift reporting, and the
// earliest effect of an approval.
func (s *strategy) invalidTime(ctx context.Context, revision, stored *olm.ClusterExtensionRevision) field.ErrorList {
	return append(s.invalidDrift(revision, stored), s.invalidNotBefore(ctx, revision, stored)...)
}

// invalidNotBefore returns the errors in the earliest time of an approval's effect.
func (s *strategy) invalidNotBefore(ctx context.Context, revision, stored *olm.ClusterExtensionRevision) field.ErrorList {
	value := revision.Annotations[v1alpha1.ApproveNotBeforeAnnotation]
	if value == "" || value == stored.Annotations[v1alpha1.ApproveNotBeforeAnnotation] && !validation.ApprovesLater(revision, stored) {
		return nil
	}
	path := field.NewPath("metadata", "annotations").Key(v1alpha1.ApproveNotBeforeAnnotation)
	owner := metav1.GetControllerOf(stored)
	switch {
	case !validation.ApprovesLater(revision, stored):
		return field.ErrorList{field.Forbidden(path, stored.Name+" is no proposal that stays Paused: only a proposal can be approved for later, by an update that leaves spec.lifecycleState as it is")}
	case owner == nil || owner.Kind != extension.Kind.Kind:
		return field.ErrorList{field.Forbidden(path, stored.Name+" is no proposal of a ClusterExtension, and maintenance windows are for those: approve it when it may begin")}
	}
	if _, err := approval.NotBefore(value, s.clock.Now()); err != nil {
		return field.ErrorList{field.Invalid(path, value, err.Error())}
	}
	requester := requesterFrom(ctx)
	if requester == nil {
		return field.ErrorList{field.Forbidden(path, "nobody is authenticated")}
	}
	if _, err := s.scheduled(requester, revision).Encode(); err != nil {
		return field.ErrorList{field.Forbidden(path, err.Error())}
	}
	return nil
}

func approvalPath() *field.Path {
	return field.NewPath("metadata", "annotations").Key(v1alpha1.ApproveAnnotation)
}

// invalidApproval returns errors if the approver of a proposal has not read its diff against the
// currently rolled out revision. The second result is an error in reading the chain.
func (s *strategy) invalidApproval(ctx context.Context, revision, stored *olm.ClusterExtensionRevision) (field.ErrorList, error) {
	chain, _, ok := olm.ChainOf(revision.Name)
	if errs := s.invalidTime(ctx, revision, stored); len(errs) > 0 {
		return errs, nil
	}
	if !ok || !approves(revision, stored) && !validation.ApprovesLater(revision, stored) {
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
