package plan

import (
	"context"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
)

// hostTime is the time by the clock of the host. Windows are the host's: a machine whose
// clock is wrong must not begin at another time than the one that was approved.
func (v *visit) hostTime() time.Time {
	now := v.Clock.Now()
	if v.Skew == nil {
		return now
	}
	return now.Add(-v.Skew())
}

// turn says whether an item may begin now, shows the window, and asks for a pass when
// that changes. All of it follows from spec and the time: a new leader knows it at once.
func (v *visit) turn() (governance.Turn, error) {
	turn, err := governance.TurnAt(v.plan.Spec, v.hostTime())
	if err != nil {
		return turn, err
	}
	// The same moments as they are stored, so that nothing is written for nothing.
	if turn.Window == nil || !apiequality.Semantic.DeepEqual(v.plan.Status.Window, turn.Window) {
		v.plan.Status.Window = turn.Window
	}
	v.soon(turn.In)
	return turn, nil
}

// scheduled begins a run, or waits for the window, or for what the plan requires, to do so.
func (v *visit) scheduled(ctx context.Context, turn governance.Turn) error {
	unmet, err := v.unmet(ctx)
	if err != nil {
		return err
	}
	if turn.Open && unmet == "" {
		return v.begin(ctx)
	}
	reason, message := v.waits(turn, unmet)
	message = "approved; it begins when " + message
	if v.plan.Status.Phase == v1alpha1.PhaseReviewRequired {
		if err := v.move(governance.EventScheduled, reason, message); err != nil {
			return err
		}
	}
	v.reason, v.plan.Status.Message = reason, governance.Clip(message)
	v.compare()
	return nil
}

// expire ends the approval of a plan that was not executed in time.
func (v *visit) expire() error {
	v.plan.Status.Approval = nil
	return v.move(governance.EventExpired, "", governance.Overdue(v.plan.Spec))
}

// outOfTurn tells of the next item of a run that it must not begin now, and has status say
// why. A started item is not interrupted.
func (v *visit) outOfTurn(ctx context.Context, turn governance.Turn, next int) (bool, error) {
	items := v.plan.Status.Items
	if turn.Expired {
		if err := v.endRun(ctx, v1alpha1.PhaseExpired); err != nil {
			return false, err
		}
		return true, v.move(governance.EventExpired, "", fmt.Sprintf("%d of %d items are done, and the others are not: %s", next, len(items), governance.Overdue(v.plan.Spec)))
	}
	unmet, err := v.unmet(ctx)
	if err != nil || turn.Open && unmet == "" {
		return false, err
	}
	reason, message := v.waits(turn, unmet)
	v.reason = reason
	v.plan.Status.Message = governance.Clip(fmt.Sprintf("item %d of %d, %s, begins when %s", next+1, len(items), items[next].Name, message))
	return true, nil
}

// waits says for what an item waits that cannot begin: its window, or a profile that the
// plan requires. Either alone keeps it back.
func (v *visit) waits(turn governance.Turn, unmet string) (reason, message string) {
	switch {
	case unmet == "":
		return governance.ReasonWaitingForWindow, turn.Begins(v.plan.Spec)
	case turn.Open:
		return governance.ReasonWaitingForProfile, unmet
	default:
		return governance.ReasonWaitingForProfile, unmet + ", and " + turn.Begins(v.plan.Spec)
	}
}

// unmet says which of the profiles that the plan requires are not in effect; empty when all
// are. A plan that restores the state before a run requires nothing: the way back is not to
// depend on another plan. It costs no request: plans are in the cache.
func (v *visit) unmet(ctx context.Context) (string, error) {
	if len(v.plan.Spec.Requires) == 0 || v.plan.Spec.RestoreRun != 0 {
		return "", nil
	}
	var all v1alpha1.ConfigurationPlanList
	if err := v.Client.List(ctx, &all); err != nil {
		return "", fmt.Errorf("listing the plans that plan %s requires: %w", v.plan.Name, err)
	}
	return governance.Unmet(v.plan, all.Items), nil
}
