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

// changeOf describes a write of spec for the rules of approval.
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

// unreviewed refuses a write that would approve the waiting plan without naming it as reviewed.
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

// judge grants, keeps or withdraws the plan's approval after a write of its spec. request is true
// if the write asks for a different plan; then judge adds the user to the requesters. unreviewed
// refuses approvals of plans that were not reviewed.
func (s *strategy) judge(ctx context.Context, plan *hco.ConfigurationPlan, change governance.Change, request bool) {
	if all, err := governance.Requests(plan.Status.RequestedBy, requester(ctx)); request && err == nil {
		plan.Status.RequestedBy = all // otherwise, ValidateUpdate refuses the write
	}
	switch verdict, hash := governance.Approve(change); verdict {
	case governance.Withdraw, governance.Refuse:
		plan.Status.Approval = nil
	case governance.Keep:
		if request && needed(plan) > 1 && plan.Status.Approval != nil && plan.Status.Approval.Run == 0 {
			plan.Status.Approval = nil // the author of this change may be an approver
		}
	case governance.Grant:
		if excluded(ctx, plan) {
			plan.Status.Approval = nil // WarningsOnUpdate and WarningsOnCreate report it
			return
		}
		join(plan, stamp(ctx, s.clock, hash, ""))
		if hash != "" {
			pinApproved(plan)
		}
	}
}

// pinApproved writes the hash of a plan with all needed approvals into spec. Then a spec from a
// backup, with Apply, approves only this plan.
func pinApproved(plan *hco.ConfigurationPlan) {
	if given := external(plan.Status.Approval); given != nil && len(governance.Approvers(given)) >= needed(plan) {
		plan.Spec.ApprovedPlanHash = given.PlanHash
	}
}

// recordRequest adds the author of the request to the plan's requesters.
func recordRequest(ctx context.Context, plan *hco.ConfigurationPlan) error {
	all, err := governance.Requests(plan.Status.RequestedBy, requester(ctx))
	if err != nil {
		return apierrors.NewForbidden(hco.Resource("configurationplans"), plan.Name, err)
	}
	plan.Status.RequestedBy = all
	return nil
}

// requester returns the name of a request's user.
func requester(ctx context.Context) string {
	if who, ok := request.UserFrom(ctx); ok {
		return who.GetName()
	}
	return ""
}

func needed(plan *hco.ConfigurationPlan) int {
	return governance.Needed(v1alpha1.ConfigurationPlanSpec{Approvals: plan.Spec.Approvals})
}

// excluded reports whether the author of a request has requested the plan, and so must not approve
// it.
func excluded(ctx context.Context, plan *hco.ConfigurationPlan) bool {
	return governance.Excluded(v1alpha1.ConfigurationPlanSpec{Approvals: plan.Spec.Approvals}, plan.Status.RequestedBy, requester(ctx))
}

// join adds an approval to the existing approvals.
func join(plan *hco.ConfigurationPlan, fresh *hco.PlanApproval) {
	given, added := external(plan.Status.Approval), external(fresh)
	joined := governance.Join(v1alpha1.ConfigurationPlanSpec{Approvals: plan.Spec.Approvals}, given, added)
	internal := &hco.PlanApproval{}
	if err := v1alpha1.Convert_v1alpha1_PlanApproval_To_hco_PlanApproval(joined, internal, nil); err == nil { // the conversion cannot fail
		plan.Status.Approval = internal
	}
}

// external returns an approval as clients see it, or nil.
func external(approval *hco.PlanApproval) *v1alpha1.PlanApproval {
	if approval == nil {
		return nil
	}
	out := &v1alpha1.PlanApproval{}
	if err := v1alpha1.Convert_hco_PlanApproval_To_v1alpha1_PlanApproval(approval.DeepCopy(), out, nil); err != nil {
		return nil // the conversion cannot fail
	}
	return out
}

// externalSpec returns a spec as clients see it.
func externalSpec(spec *hco.ConfigurationPlanSpec) (v1alpha1.ConfigurationPlanSpec, error) {
	var out v1alpha1.ConfigurationPlanSpec
	return out, v1alpha1.Convert_hco_ConfigurationPlanSpec_To_v1alpha1_ConfigurationPlanSpec(spec.DeepCopy(), &out, nil)
}

// isRequest reports whether a write of spec requests a different change.
func isRequest(plan, stored *hco.ConfigurationPlan) bool {
	spec, err := externalSpec(&plan.Spec)
	if err != nil {
		return true // the conversion cannot fail
	}
	before, err := externalSpec(&stored.Spec)
	return err != nil || governance.IsRequest(spec, before)
}

// stamp returns the approval of the request's user.
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

// inputs returns the hash of a plan's inputs.
func inputs(plan *hco.ConfigurationPlan) string {
	spec, err := externalSpec(&plan.Spec)
	if err != nil {
		return err.Error() // the conversion cannot fail
	}
	return governance.InputsHash(spec)
}
