package plan

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
)

// unanswered fails every check of rights.
type unanswered struct{ err func() error }

func (u unanswered) Lacks(context.Context, v1alpha1.PlanApproval, []authz.Right) ([]string, error) {
	return nil, u.err()
}

// TestErrorsThatChange: an error with an ever-changing text is shown, but not written again in each
// pass. Every write causes a pass, so passes would repeat without a pause.
func TestErrorsThatChange(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired)
	port := 30000
	l.loop.Rights = unanswered{func() error { port++; return fmt.Errorf("read tcp 10.0.0.1:%d: connection reset by peer", port) }}
	l.approved()
	l.is("a", v1alpha1.PhaseInProgress, "connection reset by peer")
	before := l.plan("a")
	for range 5 {
		if err := l.pass("a"); err == nil {
			t.Fatal("a pass that fails is not tried again")
		}
	}
	if now := l.plan("a"); now.ResourceVersion != before.ResourceVersion {
		t.Errorf("status was written: %q, and was %q", now.Status.Message, before.Status.Message)
	}
	l.loop.Rights = unanswered{func() error { return errors.New("another trouble") }}
	l.clock.SetTime(l.clock.Now().Add(quiet))
	l.is("a", v1alpha1.PhaseInProgress, "another trouble")
}

// TestConflictElsewhere: a conflict about another object than the plan is an ordinary error.
func TestConflictElsewhere(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired)
	l.loop.Rights = unanswered{func() error { return conflicts(psi(), "it is another one") }}
	l.approved()
	l.is("a", v1alpha1.PhaseInProgress, "it is another one")
	if err := l.pass("a"); err == nil {
		t.Error("the pass is not tried again")
	}
}
