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

// review waits for the approval of exactly this plan:
//
//  1. It computes the plan again if spec has changed.
//  2. A standing approval becomes the approval of the first plan.
//  3. An approved plan is executed in its window, unless it would take forbidden fields.
//  4. If the approval of a scheduled plan was withdrawn, the plan is computed again.
//  5. A plan that waits too long expires.
//  6. It reports changes of the facts and of the targets.
func (s *scope) review(ctx context.Context) error {
	status := &s.plan.Status
	if status.InputsHash != governance.InputsHash(s.plan.Spec) {
		return s.move(governance.EventDraft, "", "")
	}
	if facts, err := s.factsNow(); err == nil {
		if missing := s.missing(facts); missing != nil && s.plan.Spec.RestoreRun == 0 {
			return s.move(governance.EventMissing, governance.ReasonMissingDependency, missing.Error())
		}
		s.facts = facts
		s.upgrade(ctx)
	}
	if approval := status.Approval; approval != nil && approval.Mode == v1alpha1.ApprovalStanding && approval.PlanHash == "" && approval.Run == 0 {
		approval.PlanHash = status.PlanHash
	}
	executable, message := governance.Executable(s.plan.Name, s.plan.Spec, status.PlanHash, status.Approval)
	if conflict := governance.Conflict(s.plan.Spec, status.Items); conflict != "" {
		executable, message, s.reason = false, conflict, governance.ReasonConflict
	}
	rivals, err := s.rivals(ctx)
	if err != nil {
		return err
	}
	turn, err := s.turn()
	switch {
	case err != nil:
		return err
	case turn.Expired:
		return s.expire()
	case executable && rivals != "" && status.Phase == v1alpha1.PhaseScheduled:
		// The plan stays approved. A change of the other plan causes another pass.
		s.reason, status.Message = governance.ReasonConflict, governance.Clip(rivals)
		return nil
	case executable && rivals == "":
		return s.scheduled(ctx, turn)
	case status.Phase == v1alpha1.PhaseScheduled:
		return s.move(governance.EventDraft, "", "")
	}
	left := s.expiry().Sub(s.Clock.Now())
	if left <= 0 {
		if governance.Needed(s.plan.Spec) > 1 {
			status.Approval = nil // its approvers must approve the next plan again
		}
		return s.move(governance.EventExpired, "", fmt.Sprintf("nobody approved it within %s; %s computes it again", s.plan.Spec.ExpiresAfter.Duration, governance.RecomputeCommand(s.plan.Name)))
	}
	s.soon(left)
	switch unmet, err := s.unmet(ctx); {
	case err != nil:
		return err
	case unmet != "" && s.reason == "":
		message += "; it begins when " + unmet
	}
	if rivals != "" {
		message, s.reason = rivals, governance.ReasonConflict
	}
	status.Message = governance.Clip(message)
	s.compare()
	return nil
}

func (s *scope) expiry() time.Time {
	drafted, after := s.plan.Status.DraftedAt, s.plan.Spec.ExpiresAfter
	if drafted == nil || after == nil {
		return s.Clock.Now().Add(24 * time.Hour)
	}
	return drafted.Add(after.Duration)
}

// compare reports targets that differ from their preview, and names the writers. It reads only
// watched objects, so it sends no request. For targets that are not watched at the moment, it keeps
// the last report.
func (s *scope) compare() {
	s.followItems()
	for i := range s.plan.Status.Items {
		item := &s.plan.Status.Items[i]
		if stale, known := s.stale(*item); known {
			item.Message = governance.Clip(stale)
		}
		if item.Message != "" {
			s.reason = governance.ReasonPlanStale
			s.plan.Status.Message = governance.Clip(s.staleMessage(*item))
		}
	}
}

// stale returns the reason why a target differs from the reviewed state. known is false while the
// target is not watched.
func (s *scope) stale(item v1alpha1.PlanItem) (why string, known bool) {
	live, presence := watchedTarget(s.Engine.Observer, refOf(item).ID)
	if presence == observe.Unknown {
		return "", false
	}
	return rollout.Stale(live, item.Fingerprint, s.Engine.Identity(string(s.plan.Spec.Profile)).Manager), true
}

func (s *scope) staleMessage(item v1alpha1.PlanItem) string {
	return fmt.Sprintf("item %s is stale: %s; %s computes the plan again", item.Name, item.Message, governance.RecomputeCommand(s.plan.Name))
}

func refOf(item v1alpha1.PlanItem) manifest.Ref { return planwork.Ref(item.TargetRef, item.Digest) }
