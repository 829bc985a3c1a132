package plan

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// refusing makes the cluster refuse a target after the review.
func (l *lab) refusing(id manifest.ID) {
	l.cluster.refuse = func(asked manifest.ID, _ bool) error {
		if asked == id {
			return apierrors.NewInvalid(schema.GroupKind{Group: id.Group, Kind: id.Kind}, id.Name, nil)
		}
		return nil
	}
}

func (l *lab) mallory() { l.cluster.set(psi(), "mallory", []any{"psi=0"}, "spec", "kernelArguments") }

func (l *lab) undo() { l.cluster.set(psi(), "mallory", []any{"psi=1"}, "spec", "kernelArguments") }

func (l *lab) approved() {
	l.t.Helper()
	l.must(l.approve("a", l.is("a", v1alpha1.PhaseReviewRequired).Status.PlanHash))
}

func (l *lab) reach(phase v1alpha1.Phase, changes ...spec) {
	l.t.Helper()
	l.usual()
	switch phase {
	case v1alpha1.PhaseDrafting:
		l.cluster.ignorant = true
	case v1alpha1.PhasePrerequisiteFailed:
		l.cluster.missing[descheduler().GroupKind()] = true
	case v1alpha1.PhaseIgnored:
		changes = append(changes, action(hco.ActionIgnore))
	case v1alpha1.PhaseCompletedWithErrors:
		changes = append(changes, carryOn)
	case v1alpha1.PhaseScheduled:
		changes = append(changes, nightly, until(l.clock.Now().Add(24*time.Hour)))
	}
	l.must(l.create("a", append([]spec{take}, changes...)...))
	switch phase {
	case v1alpha1.PhasePending:
		return
	case v1alpha1.PhaseDrafting, v1alpha1.PhasePrerequisiteFailed, v1alpha1.PhaseReviewRequired, v1alpha1.PhaseIgnored:
	case v1alpha1.PhaseExpired:
		l.is("a", v1alpha1.PhaseReviewRequired)
		l.clock.SetTime(l.clock.Now().Add(25 * time.Hour))
	case v1alpha1.PhaseScheduled:
		l.approved()
	default:
		l.approved()
		l.is("a", v1alpha1.PhaseInProgress)
		if phase == v1alpha1.PhaseInProgress {
			break
		}
		if phase == v1alpha1.PhaseFailed || phase == v1alpha1.PhaseCompletedWithErrors {
			l.refusing(descheduler())
		}
		l.cluster.roll("worker", 4)
		if phase == v1alpha1.PhaseDrifted {
			l.is("a", v1alpha1.PhaseCompleted)
			l.mallory()
		}
	}
	l.is("a", phase)
}

// prompts returns a cause for each event of the table, by event or by "phase event".
func prompts() map[string]func(l *lab) {
	edit := func(changes ...spec) func(*lab) { return func(l *lab) { l.must(l.edit("a", changes...)) } }
	wise := func(l *lab) { l.cluster.ignorant = false }
	return map[string]func(l *lab){
		"Ignore":                   edit(action(hco.ActionIgnore)),
		"Draft":                    edit(action(hco.ActionDryRun)),
		"Pending Draft":            func(*lab) {},
		"PrerequisiteFailed Draft": func(l *lab) { clear(l.cluster.missing) },
		"ReviewRequired Draft":     edit(interval(120)),
		"Failed Draft":             edit(interval(120)),
		"Expired Draft":            edit(interval(120)),
		"Retry":                    func(l *lab) { l.must(l.retry("a")) },
		"Locked":                   func(l *lab) { l.must(l.create("b", override("a"))) },
		"Missing": func(l *lab) {
			l.cluster.ignorant = false
			l.cluster.missing[descheduler().GroupKind()] = true
		},
		"Refused": func(l *lab) { wise(l); l.refusing(descheduler()) },
		"Nothing": func(l *lab) {
			// Another plan of the profile made the change.
			l.must(l.remove("a"))
			wise(l)
			l.must(l.create("a", take, action(hco.ActionApply)))
			l.is("a", v1alpha1.PhaseInProgress)
			l.cluster.roll("worker", 4)
			l.is("a", v1alpha1.PhaseCompleted)
			l.must(l.remove("a"))
			l.must(l.pass("a"))
			l.must(l.create("a"))
		},
		"Drafted":            wise,
		"Approved":           func(l *lab) { l.approved() },
		"Scheduled Approved": func(l *lab) { l.clock.SetTime(l.clock.Now().Add(10 * time.Hour)) },
		"Scheduled":          func(l *lab) { l.must(l.edit("a", nightly)); l.approved() },
		"InProgress Expired": func(l *lab) {
			l.must(l.edit("a", until(l.clock.Now().Add(time.Hour))))
			l.approved()
			l.is("a", v1alpha1.PhaseInProgress)
			l.clock.SetTime(l.clock.Now().Add(time.Hour))
			l.cluster.roll("worker", 4)
		},
		"Expired":        func(l *lab) { l.clock.SetTime(l.clock.Now().Add(25 * time.Hour)) },
		"Failed":         func(l *lab) { l.refusing(descheduler()); l.cluster.roll("worker", 4) },
		"Done":           func(l *lab) { l.cluster.roll("worker", 4) },
		"DoneWithErrors": func(l *lab) { l.must(l.edit("a", carryOn)); l.refusing(descheduler()); l.cluster.roll("worker", 4) },
		"Drift":          func(l *lab) { l.mallory() },
		"Reverted":       func(l *lab) { l.undo() },
		"RevertedWithErrors": func(l *lab) {
			l.must(l.edit("a", action(hco.ActionIgnore)))
			l.settle()
			l.must(l.remove("a"))
			l.must(l.pass("a"))
			l.reach(v1alpha1.PhaseCompletedWithErrors)
			l.mallory()
			l.is("a", v1alpha1.PhaseDrifted)
			l.undo()
		},
	}
}

// TestEveryTransition makes each transition of governance.Table happen, from each of its phases,
// with the real endpoints, controller and engine. A transition without a prompt fails.
func TestEveryTransition(t *testing.T) {
	store := newStore(t)
	ways := prompts()
	for _, row := range governance.Table() {
		for _, from := range row.From {
			t.Run(fmt.Sprintf("%s/%s", from, row.On), func(t *testing.T) {
				do, found := ways[string(from)+" "+string(row.On)]
				if !found {
					do, found = ways[string(row.On)]
				}
				if !found {
					t.Fatalf("the table has an event %s of %s, and no test leads to it", row.On, from)
				}
				l := store.newLab(t)
				l.reach(from)
				l.moves = nil
				do(l)
				l.settle()
				if want := fmt.Sprintf("%s %s %s", from, row.On, row.To); !l.moved(want) {
					t.Errorf("want %q; moved: %q; %s", want, l.moves, l.states())
				}
			})
		}
	}
}
