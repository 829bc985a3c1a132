package governance

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Verdict is the effect of a write of the spec on the approval of a plan.
type Verdict string

const (
	// Keep does not change the approval.
	Keep Verdict = "Keep"
	// Withdraw removes the approval.
	Withdraw Verdict = "Withdraw"
	// Grant creates an approval.
	Grant Verdict = "Grant"
	// Refuse refuses the write: it would approve a plan without naming the reviewed one.
	Refuse Verdict = "Refuse"
)

// Change has the facts of a write of the spec that matter for approvals.
type Change struct {
	// WasApply and IsApply are true if spec.action was and is Apply.
	WasApply, IsApply bool
	// Inputs is true if the write changes inputs of the plan.
	Inputs bool
	// Hash is spec.approvedPlanHash, and NewHash is true if this write set it.
	Hash    string
	NewHash bool
	// Created is true if this write creates the plan. Such a write also has all inputs.
	Created bool
	// Copied is true if a new plan is a copy of a stored plan, such as from a backup.
	Copied bool
	// Waiting is the hash of the plan that waits for an approval. It is empty if no plan waits, or
	// if the waiting plan was computed from another spec.
	Waiting string
	// Reviewed is true if the write names the reviewed plan, by the hash of the waiting plan or by
	// the resourceVersion of the object that showed it.
	Reviewed bool
}

// Approve returns the effect of a write of the spec on the approval of a plan. A Grant without a
// hash is a standing approval.
//
// An approval is for a plan that the user has named or requested:
//
//   - the plan with the given hash,
//   - the waiting plan in the state that the user read,
//   - for a new plan, the first plan computed from its spec.
//
// Another user may change the spec at the same time. An Apply without hash or state would approve
// any plan that is waiting by then, so it is refused. While a plan is being computed, Apply approves
// nothing.
func Approve(c Change) (Verdict, string) {
	switch {
	case !c.IsApply:
		return Withdraw, ""
	case c.Hash != "" && c.NewHash:
		return Grant, c.Hash
	case c.Created && c.Copied:
		return Withdraw, "" // its approval was for the plan in the original cluster
	case c.Created:
		return Grant, ""
	case c.WasApply && !c.Inputs:
		return Keep, ""
	case c.WasApply, c.Inputs, c.Waiting == "":
		return Withdraw, ""
	case c.Hash != "" && c.Hash != c.Waiting:
		// Another user may have set the hash earlier, and can make that plan return. It is not the
		// plan that was waiting for review.
		return Withdraw, ""
	case !c.Reviewed:
		return Refuse, ""
	default:
		return Grant, c.Waiting
	}
}

// ApproveCommand returns the command that approves the plan with a hash.
func ApproveCommand(plan, hash string) string {
	return fmt.Sprintf(`kubectl patch configplan %s --type=merge -p '{"spec":{"action":"Apply","approvedPlanHash":"%s"}}'`, plan, hash)
}

// RecomputeCommand returns the command that requests a new computation of a plan.
func RecomputeCommand(plan string) string {
	return fmt.Sprintf("kubectl penstock plan run %s (or a POST to the subresource retry)", plan)
}

// Unreviewed returns the answer to an Apply that does not name the reviewed plan. It has no hash,
// because the waiting plan may differ from the reviewed plan.
func Unreviewed(plan string) string {
	return "a plan waits for its approval, and this write does not say which one was reviewed: " +
		ApproveCommand(plan, "<status.planHash of the plan that you have reviewed>") +
		", a POST of that hash to the subresource approve, or metadata.resourceVersion of what you have reviewed beside spec.action"
}

// NeedsApprove reports whether a write of the spec needs the verb approve: setting Apply, and any
// change while the action is Apply, except a change to another action.
func NeedsApprove(wasApply, isApply, changed bool) bool {
	return isApply && (!wasApply || changed)
}

// Conflict describes the fields that a plan would take from other field managers without
// onConflict: Take. It is empty if there are none. Taking back a value that an earlier run set is
// allowed, and the review shows it.
func Conflict(spec v1alpha1.ConfigurationPlanSpec, items []v1alpha1.PlanItem) string {
	var taken []string
	for _, item := range items {
		for _, one := range item.Takes {
			if !one.Reclaimed {
				taken = append(taken, fmt.Sprintf("%s of %s %s belong to %s", strings.Join(one.Fields, ", "), item.TargetRef.Kind, item.TargetRef.Name, one.Manager))
			}
		}
	}
	if len(taken) == 0 || spec.OnConflict == v1alpha1.OnConflictTake {
		return ""
	}
	return "the plan would take fields from other field managers: " + strings.Join(taken, "; ") +
		"; set spec.onConflict to Take to allow that, or have those managers give the fields up and POST to the subresource retry"
}

// Executable reports whether a plan may be executed, and otherwise returns the missing steps as
// text. An approval can be used once.
func Executable(name string, spec v1alpha1.ConfigurationPlanSpec, planHash string, approval *v1alpha1.PlanApproval) (bool, string) {
	review := fmt.Sprintf("review status.items and the subresource diff, then approve hash %s: POST it to the subresource approve, or %s", planHash, ApproveCommand(name, planHash))
	switch {
	case spec.Action == v1alpha1.ActionApply && approval == nil:
		return false, "spec.action is Apply, and nobody approved this plan: " + review
	case spec.ApprovedPlanHash != "" && spec.ApprovedPlanHash != planHash:
		return false, fmt.Sprintf("spec.approvedPlanHash is %s, and this plan has another hash: %s", spec.ApprovedPlanHash, review)
	case spec.Action != v1alpha1.ActionApply:
		return false, review
	case approval.Run != 0:
		return false, fmt.Sprintf("the approval of %s was for run %d; %s", approval.PlanHash, approval.Run, review)
	case approval.PlanHash != planHash:
		return false, fmt.Sprintf("%s was approved, and this plan has another hash: %s", approval.PlanHash, review)
	case len(Approvers(approval)) < Needed(spec):
		return false, fmt.Sprintf("%d of %d approvals: approved by %s; another person approves it by a POST of hash %s to the subresource approve: kubectl penstock plan approve %s",
			len(Approvers(approval)), Needed(spec), strings.Join(Approvers(approval), ", "), planHash, name)
	default:
		return true, ""
	}
}
