package configurationplan

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
)

// changeOf is a write of spec as far as approvals are concerned.
func changeOf(ctx context.Context, plan, stored *hco.ConfigurationPlan) governance.Change {
	change := governance.Change{
		WasApply: stored.Spec.Action == hco.ActionApply, IsApply: plan.Spec.Action == hco.ActionApply,
		Inputs: inputs(plan) != inputs(stored),
		Hash:   plan.Spec.ApprovedPlanHash, NewHash: plan.Spec.ApprovedPlanHash != stored.Spec.ApprovedPlanHash,
	}
	if stored.Status.Phase == hco.PhaseReviewRequired && stored.Status.ObservedGeneration == stored.Generation {
		change.Waiting = stored.Status.PlanHash
	}
	said := reviewedFrom(ctx)
	change.Reviewed = change.Waiting != "" && (said.PlanHash == change.Waiting ||
		said.ResourceVersion != "" && said.ResourceVersion == stored.ResourceVersion)
	return change
}

// unreviewed refuses a write that would approve the plan that waits without saying
// that this is the one that was reviewed.
func unreviewed(ctx context.Context, plan, stored *hco.ConfigurationPlan) error {
	if apiequality.Semantic.DeepEqual(plan.Spec, stored.Spec) {
		return nil
	}
	if verdict, _ := governance.Approve(changeOf(ctx, plan, stored)); verdict != governance.Refuse {
		return nil
	}
	return apierrors.NewInvalid(hco.Kind("ConfigurationPlan"), plan.Name, field.ErrorList{
		field.Required(field.NewPath("spec", "approvedPlanHash"), governance.Unreviewed(plan.Name)),
	})
}

// judge does to the approval what a change means. What is refused is so by
// unreviewed, once admission has said who may.
func (s *strategy) judge(ctx context.Context, plan *hco.ConfigurationPlan, change governance.Change) {
	switch verdict, hash := governance.Approve(change); verdict {
	case governance.Withdraw, governance.Refuse:
		plan.Status.Approval = nil
	case governance.Grant:
		plan.Status.Approval = stamp(ctx, s.clock, hash, "")
	}
}

// stamp is the approval of whoever asks.
func stamp(ctx context.Context, clock clock.PassiveClock, hash, comment string) *hco.PlanApproval {
	approval := &hco.PlanApproval{Time: metav1.NewTime(clock.Now()), PlanHash: hash, Comment: comment, Mode: hco.ApprovalExplicit}
	if hash == "" {
		approval.Mode = hco.ApprovalStanding
	}
	if who, ok := request.UserFrom(ctx); ok {
		approval.Username, approval.UID, approval.Groups = who.GetName(), who.GetUID(), slices.Clone(who.GetGroups())
		for key, values := range who.GetExtra() {
			if approval.Extra == nil {
				approval.Extra = map[string]hco.ExtraValue{}
			}
			approval.Extra[key] = slices.Clone(values)
		}
	}
	return approval
}

// inputs names what a plan is computed from.
func inputs(plan *hco.ConfigurationPlan) string {
	var external v1alpha1.ConfigurationPlanSpec
	if err := v1alpha1.Convert_hco_ConfigurationPlanSpec_To_v1alpha1_ConfigurationPlanSpec(plan.Spec.DeepCopy(), &external, nil); err != nil {
		return err.Error() // conversion copies fields
	}
	return governance.InputsHash(external)
}
