package plan

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// review waits for the approval of this very plan:
//
//  1. what it was computed from must be what spec says,
//  2. a standing approval is for the first plan,
//  3. an approved plan is executed in its window, unless it takes what it must not,
//  4. one of which the approval was withdrawn meanwhile is computed anew,
//  5. one that waits too long expires,
//  6. and whether the facts and the targets are still what it was computed from is told.
func (v *visit) review(ctx context.Context) error {
	status := &v.plan.Status
	if status.InputsHash != governance.InputsHash(v.plan.Spec) {
		return v.move(governance.EventDraft, "", "")
	}
	if facts, err := v.factsNow(); err == nil {
		if missing := v.missing(facts); missing != nil && v.plan.Spec.RestoreRun == 0 {
			return v.move(governance.EventMissing, governance.ReasonMissingDependency, missing.Error())
		}
		v.facts = facts
		v.upgrade(ctx)
	}
	if approval := status.Approval; approval != nil && approval.Mode == v1alpha1.ApprovalStanding && approval.PlanHash == "" && approval.Run == 0 {
		approval.PlanHash = status.PlanHash
	}
	executable, message := governance.Executable(v.plan.Name, v.plan.Spec, status.PlanHash, status.Approval)
	if conflict := governance.Conflict(v.plan.Spec, status.Items); conflict != "" {
		executable, message, v.reason = false, conflict, governance.ReasonConflict
	}
	rivals, err := v.rivals(ctx)
	if err != nil {
		return err
	}
	turn, err := v.turn()
	switch {
	case err != nil:
		return err
	case turn.Expired:
		return v.expire()
	case executable && rivals != "" && status.Phase == v1alpha1.PhaseScheduled:
		// It stays approved; whatever becomes of the other plan brings another pass.
		v.reason, status.Message = governance.ReasonConflict, governance.Clip(rivals)
		return nil
	case executable && rivals == "":
		return v.scheduled(ctx, turn)
	case status.Phase == v1alpha1.PhaseScheduled:
		return v.move(governance.EventDraft, "", "")
	}
	left := v.expiry().Sub(v.Clock.Now())
	if left <= 0 {
		if governance.Needed(v.plan.Spec) > 1 {
			status.Approval = nil // those who did approve again what is computed then
		}
		return v.move(governance.EventExpired, "", fmt.Sprintf("nobody approved it within %s; %s computes it anew", v.plan.Spec.ExpiresAfter.Duration, governance.AnewCommand(v.plan.Name)))
	}
	v.soon(left)
	switch unmet, err := v.unmet(ctx); {
	case err != nil:
		return err
	case unmet != "" && v.reason == "":
		message += "; it begins when " + unmet
	}
	if rivals != "" {
		message, v.reason = rivals, governance.ReasonConflict
	}
	status.Message = governance.Clip(message)
	v.compare()
	return nil
}

func (v *visit) expiry() time.Time {
	drafted, after := v.plan.Status.DraftedAt, v.plan.Spec.ExpiresAfter
	if drafted == nil || after == nil {
		return v.Clock.Now().Add(24 * time.Hour)
	}
	return drafted.Add(after.Duration)
}

// compare tells when a target is not as it is shown any more, and says who wrote it.
// It goes by what is watched and costs nothing; what is not seen at the moment is as
// it was told last.
func (v *visit) compare() {
	v.followItems()
	for i := range v.plan.Status.Items {
		item := &v.plan.Status.Items[i]
		if stale, known := v.stale(*item); known {
			item.Message = governance.Clip(stale)
		}
		if item.Message != "" {
			v.reason = governance.ReasonPlanStale
			v.plan.Status.Message = governance.Clip(v.staleMessage(*item))
		}
	}
}

// stale says why a target is not what was reviewed; known is false while it is not
// seen.
func (v *visit) stale(item v1alpha1.PlanItem) (why string, known bool) {
	live, presence := watchedTarget(v.Engine.Observer, refOf(item).ID)
	if presence == observe.Unknown {
		return "", false
	}
	return rollout.Stale(live, item.Fingerprint, v.Engine.Identity(string(v.plan.Spec.Profile)).Manager), true
}

func (v *visit) staleMessage(item v1alpha1.PlanItem) string {
	return fmt.Sprintf("item %s is stale: %s; %s computes the plan anew", item.Name, item.Message, governance.AnewCommand(v.plan.Name))
}

// refOf names an item's target and content.
func refOf(item v1alpha1.PlanItem) manifest.Ref { return planwork.Ref(item.TargetRef, item.Digest) }
