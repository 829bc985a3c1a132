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
	// Waiting is the hash of the plan that waits for its approval; empty when none
	// does, or none of the spec as it was.
	Waiting string
	// Known tells that there was a plan: what is approved without looking is the
	// first one only.
	Known bool
}

// Approve says what a write of spec does to the approval. A Grant without a hash
// is a standing one.
//
// Apply is no approval of anything while another plan is on its way: what was
// reviewed, or applied once, is not what will be computed.
func Approve(c Change) (Verdict, string) {
	switch {
	case !c.IsApply:
		return Withdraw, ""
	case c.Hash != "" && c.NewHash:
		return Grant, c.Hash
	case c.Hash != "" && !c.WasApply && c.Waiting != "" && c.Hash != c.Waiting:
		// Somebody else may have pinned it, and can bring that plan back. It is not
		// the one that was there to be read.
		return Withdraw, ""
	case c.Inputs && (c.WasApply || c.Waiting != ""):
		return Withdraw, ""
	case c.WasApply:
		return Keep, ""
	case c.Waiting == "" && c.Known:
		return Withdraw, ""
	default:
		return Grant, c.Waiting
	}
}

// NeedsApprove tells whether a write of spec needs the verb approve: setting Apply,
// and any change while it is Apply but for ending that.
func NeedsApprove(wasApply, isApply, changed bool) bool {
	return isApply && (!wasApply || changed)
}

// Conflict says in words which fields a plan would take from others although it must
// not; it is empty when there are none. What a run of the plan had set before is
// taken back: that is what enforcing a plan means, and the review shows it.
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
		"; set spec.onConflict to Take to allow that, or have them given up and POST to the subresource retry"
}

// Executable tells whether a plan may be executed, and if not, in words, what is
// missing. An approval counts once.
func Executable(spec v1alpha1.ConfigurationPlanSpec, planHash string, approval *v1alpha1.PlanApproval) (bool, string) {
	switch {
	case spec.ApprovedPlanHash != "" && spec.ApprovedPlanHash != planHash:
		return false, fmt.Sprintf("spec.approvedPlanHash is %s, and this plan has hash %s: review it, and set that to approve it", spec.ApprovedPlanHash, planHash)
	case spec.Action == v1alpha1.ActionApply && approval == nil:
		return false, fmt.Sprintf("spec.action is Apply, and nobody approved this plan: review status.items, then approve hash %s: POST it to the subresource approve, or set spec.approvedPlanHash", planHash)
	case spec.Action != v1alpha1.ActionApply:
		return false, fmt.Sprintf("review status.items, then approve hash %s: POST it to the subresource approve, or set spec.action to Apply", planHash)
	case approval.Run != 0:
		return false, fmt.Sprintf("the approval of %s was for run %d; review status.items, then approve hash %s", approval.PlanHash, approval.Run, planHash)
	case approval.PlanHash != planHash:
		return false, fmt.Sprintf("%s was approved, and this plan has hash %s: review status.items, then approve that", approval.PlanHash, planHash)
	default:
		return true, ""
	}
}
