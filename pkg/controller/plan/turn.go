package plan

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
)

// hostTime returns the time by the clock of the host. Windows use that clock. A leader with a wrong
// clock must not begin at another time than the approved one.
func (s *scope) hostTime() time.Time {
	return s.Clock.Now().Add(-s.Skew())
}

// turn reports whether an item may begin now, writes the window to status, and requests a pass when
// that changes. All of it follows from spec and the time, so a new leader needs no other state.
func (s *scope) turn() (governance.Turn, error) {
	turn, err := governance.TurnAt(s.plan.Spec, s.hostTime())
	if err != nil {
		return turn, err
	}
	// Equal moments keep their stored form, to avoid a write without a change.
	if turn.Window == nil || !apiequality.Semantic.DeepEqual(s.plan.Status.Window, turn.Window) {
		s.plan.Status.Window = turn.Window
	}
	s.soon(turn.In)
	return turn, nil
}

// scheduled begins a run, or waits for the window and for the required profiles.
func (s *scope) scheduled(ctx context.Context, turn governance.Turn) error {
	unmet, err := s.unmet(ctx)
	if err != nil {
		return err
	}
	if turn.Open && unmet == "" {
		return s.begin(ctx)
	}
	reason, message := s.waits(turn, unmet)
	message = "approved; it begins when " + message
	if s.plan.Status.Phase == v1alpha1.PhaseReviewRequired {
		if err := s.move(governance.EventScheduled, reason, message); err != nil {
			return err
		}
	}
	s.reason, s.plan.Status.Message = reason, governance.Clip(message)
	s.compare()
	return nil
}

// expire ends the approval of a plan that was not executed in time.
func (s *scope) expire() error {
	s.plan.Status.Approval = nil
	return s.move(governance.EventExpired, "", governance.Overdue(s.plan.Spec))
}

// outOfTurn reports whether the next item of a run must not begin now, and writes the reason to
// status. A started item is not interrupted.
func (s *scope) outOfTurn(ctx context.Context, turn governance.Turn, next int) (bool, error) {
	items := s.plan.Status.Items
	if turn.Expired {
		if err := s.endRun(ctx, v1alpha1.PhaseExpired); err != nil {
			return false, err
		}
		return true, s.move(governance.EventExpired, "", fmt.Sprintf("%d of %d items are done, and the rest is not: %s", next, len(items), governance.Overdue(s.plan.Spec)))
	}
	unmet, err := s.unmet(ctx)
	if err != nil || turn.Open && unmet == "" {
		return false, err
	}
	reason, message := s.waits(turn, unmet)
	s.reason = reason
	s.plan.Status.Message = governance.Clip(fmt.Sprintf("item %d of %d, %s, begins when %s", next+1, len(items), items[next].Name, message))
	return true, nil
}

// waits returns the reason why an item cannot begin: its window, or a required profile. Either
// alone delays the item.
func (s *scope) waits(turn governance.Turn, unmet string) (reason, message string) {
	switch {
	case unmet == "":
		return governance.ReasonWaitingForWindow, turn.Begins(s.plan.Spec)
	case turn.Open:
		return governance.ReasonWaitingForProfile, unmet
	default:
		return governance.ReasonWaitingForProfile, unmet + ", and " + turn.Begins(s.plan.Spec)
	}
}

// unmet names the required profiles that are not in effect; empty if all are. A plan that restores
// the state before a run requires none, because a rollback must not depend on another plan. It
// sends no request, because plans are in the cache.
func (s *scope) unmet(ctx context.Context) (string, error) {
	if len(s.plan.Spec.Requires) == 0 || s.plan.Spec.RestoreRun != 0 {
		return "", nil
	}
	var all v1alpha1.ConfigurationPlanList
	if err := s.Client.List(ctx, &all); err != nil {
		return "", fmt.Errorf("listing the plans that plan %s requires: %w", s.plan.Name, err)
	}
	return governance.Unmet(s.plan, all.Items), nil
}
