package governance

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Verdict is what a write of spec does to the approval of a plan.
type Verdict string

const (
	// Keep leaves the approval as it is.
	Keep Verdict = "Keep"
	// Withdraw removes it.
	Withdraw Verdict = "Withdraw"
	// Grant is a new one.
	Grant Verdict = "Grant"
	// Refuse refuses the write: it would approve a plan without saying which one was
	// reviewed.
	Refuse Verdict = "Refuse"
)

// Change is a write of spec as far as approvals are concerned.
type Change struct {
	// WasApply and IsApply tell whether spec.action was and is Apply.
	WasApply, IsApply bool
	// Inputs tells whether the plan would be computed from something else.
	Inputs bool
	// Hash is spec.approvedPlanHash, and NewHash whether this write set it.
	Hash    string
	NewHash bool
	// Created tells that this write makes the plan: all that the plan is computed
	// from is in it.
	Created bool
	// Copied tells that a new plan is a copy of a stored one, as a backup has it.
	Copied bool
	// Waiting is the hash of the plan that waits for its approval; empty when none
	// does, or none of the spec as it was.
	Waiting string
	// Reviewed is true when the write names the reviewed plan: by the hash of the waiting
	// plan, or by the resourceVersion under which that plan is shown.
	Reviewed bool
}

// Approve says what a write of spec does to the approval. A Grant without a hash
// is a standing one.
//
// An approval is for the plan that its approver has seen: the plan of the hash that they
// give, the plan that waits in the state that they read, or, of a plan that they make
// themselves, the first one that is computed from what they wrote. Somebody else may
// change spec in between, and an Apply that says nothing of that would approve
// whatever is there by then. While another plan is on its way, Apply approves nothing.
func Approve(c Change) (Verdict, string) {
	switch {
	case !c.IsApply:
		return Withdraw, ""
	case c.Hash != "" && c.NewHash:
		return Grant, c.Hash
	case c.Created && c.Copied:
		return Withdraw, "" // somebody approved what that one was, in its cluster
	case c.Created:
		return Grant, ""
	case c.WasApply && !c.Inputs:
		return Keep, ""
	case c.WasApply, c.Inputs, c.Waiting == "":
		return Withdraw, ""
	case c.Hash != "" && c.Hash != c.Waiting:
		// Somebody else may have pinned it, and can bring that plan back. It is not
		// the one that was there to be read.
		return Withdraw, ""
	case !c.Reviewed:
		return Refuse, ""
	default:
		return Grant, c.Waiting
	}
}

// ApproveCommand approves the plan of a hash, in one write that says which one was
// reviewed.
func ApproveCommand(plan, hash string) string {
	return fmt.Sprintf(`kubectl patch configplan %s --type=merge -p '{"spec":{"action":"Apply","approvedPlanHash":"%s"}}'`, plan, hash)
}

// AnewCommand has a plan computed anew.
func AnewCommand(plan string) string {
	return fmt.Sprintf("kubectl penstock plan run %s (or a POST to the subresource retry)", plan)
}

// Unreviewed is what is answered to an Apply that does not say which plan was
// reviewed. It does not name the one that waits, which is not the one that was
// reviewed, perhaps.
func Unreviewed(plan string) string {
	return "a plan waits for its approval, and this write does not say which one was reviewed: " +
		ApproveCommand(plan, "<status.planHash of the plan that you have reviewed>") +
		", a POST of that hash to the subresource approve, or metadata.resourceVersion of what you have reviewed beside spec.action"
}

// NeedsApprove tells whether a write of spec needs the verb approve: setting Apply,
// and any change while it is Apply but for ending that.
func NeedsApprove(wasApply, isApply, changed bool) bool {
	return isApply && (!wasApply || changed)
}

// Conflict says in words which fields a plan would take from others although it must
// not; it is empty when there are none. Values that a run of the plan had set before
// are taken back: that is what enforcing a plan means, and the review shows it.
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
	return "the plan would take fields from others: " + strings.Join(taken, "; ") +
		"; set spec.onConflict to Take to allow that, or have the others give the fields up and POST to the subresource retry"
}

// Executable tells whether a plan may be executed, and if not, in words, what is
// missing. An approval counts once.
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
