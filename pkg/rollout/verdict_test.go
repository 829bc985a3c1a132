package rollout

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// costly is a user-written probe with a fixed cost, for which every ConfigMap is ready.
type costly struct {
	units uint64
	// asked and spent are the number and the cost of evaluations since the last reset.
	asked int
	spent uint64
	on    func()
}

var _ probe.Metered = &costly{}

func (c *costly) For(kind schema.GroupKind) probe.Probe {
	if kind.Kind == "ConfigMap" {
		return c
	}
	return nil
}

func (*costly) Reads() probe.Reads { return probe.Reads{Fields: [][]string{{"metadata"}}} }

func (c *costly) Probe(*unstructured.Unstructured) probe.Verdict {
	panic("it is asked without a budget")
}

func (c *costly) ProbeWithin(ctx context.Context, _ *unstructured.Unstructured, budget *probe.CostBudget) probe.Verdict {
	c.asked++
	if c.on != nil {
		c.on()
	}
	defer func() { c.spent += budget.Spent() }()
	if ctx.Err() != nil || !budget.Spend(c.units) {
		return probe.Verdict{Status: probe.Unknown, Message: "costs too much"}
	}
	return probe.Verdict{Status: probe.True}
}

func (c *costly) reset() { c.asked, c.spent = 0, 0 }

// judgedBy returns a chain with a phase of objects that the probe judges, and a second phase.
func judgedBy(c *costly, objects int) *saga {
	s := newSaga()
	r := s.revision(1)
	var names []string
	for i := range objects {
		names = append(names, fmt.Sprintf("ConfigMap a/x%03d=1", i))
	}
	r.phase("config", names...).phase("deploy", "Deployment.apps a/y=1")
	stages, err := stage.Compile(r.phases, stage.Options{Probes: c})
	if err != nil {
		panic(err) // a mistake in a test
	}
	s.layers = []Layer{{Key: "uid-of-1", Revision: 1, Stages: stages}}
	return s
}

// TestVerdictsAreKept: an object is judged once for each of its states, whatever the number of
// passes.
func TestVerdictsAreKept(t *testing.T) {
	c := &costly{units: 100}
	s := judgedBy(c, 20)
	s.settle(t)
	c.reset()
	for range 3 {
		if _, err := s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if c.asked != 0 {
		t.Errorf("it was asked %d times about what did not change", c.asked)
	}
	s.alter(refOf("ConfigMap a/x003").ID, func(o *thing) { o.generation++ })
	s.settle(t)
	if c.asked == 0 || c.asked > 2 {
		t.Errorf("it was asked %d times about one object that changed", c.asked)
	}
	if n := len(s.engine.memories["argocd"].verdicts); n != 20 {
		t.Errorf("%d verdicts are kept on 20 objects", n)
	}
	s.layers = s.layers[:0]
	s.settle(t)
	if n := len(s.engine.memories["argocd"].verdicts); n != 0 {
		t.Errorf("%d verdicts are kept on objects that are gone", n)
	}
}

// TestPassCosts: the probes of a pass cost at most its allowance, and the probes of all passes at
// most the refilled allowance. All objects are judged in the end. Until then no object is reported
// as faulty.
func TestPassCosts(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		units   uint64
		objects int
		// rounds is the limit for evaluations.
		rounds int
	}{
		"Ordinary": {"all in one pass", 100, 400, 1},
		"Dear":     {"three objects in each", passUnits * 3 / 10, 9, 4},
		"Most":     {"one in each", passUnits, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			c := &costly{units: tc.units}
			s := judgedBy(c, tc.objects)
			start, rounds := s.clock.Now(), 0
			for done := false; !done; {
				s.controllers()
				s.deliver(len(s.changes))
				c.reset()
				report, err := s.pass()
				if err != nil {
					t.Fatal(err)
				}
				if c.spent > passUnits {
					t.Fatalf("%s: a pass cost %d units, %d are allowed", tc.reason, c.spent, passUnits)
				}
				if c.spent > 0 {
					rounds++
				}
				for _, failure := range report.Layers[0].Phases[0].Failures {
					if failure.Reason == ReasonProbe && !failure.Unknown {
						t.Fatalf("%s: what was not judged yet counts as wrong: %+v", tc.reason, failure)
					}
				}
				done = report.Layers[0].Complete
				if !done && report.RequeueAfter == 0 && c.spent > 0 && len(s.changes) == 0 {
					t.Fatalf("%s: nobody asks for another pass: %v", tc.reason, failures(report))
				}
				s.clock.SetTime(s.clock.Now().Add(report.RequeueAfter))
				if rounds > 100 {
					t.Fatalf("%s: it does not come to an end", tc.reason)
				}
			}
			if rounds > tc.rounds {
				t.Errorf("%s: %d passes judged, want %d at most", tc.reason, rounds, tc.rounds)
			}
			if took := s.clock.Now().Sub(start); took > time.Duration(rounds+1)*refillTime {
				t.Errorf("%s: %s for %d rounds", tc.reason, took, rounds)
			}
		})
	}
}

// TestTooDear: an object whose probes exceed the cost limit of one object gets a verdict other than
// True, once.
func TestTooDear(t *testing.T) {
	c := &costly{units: passUnits + 1}
	s := judgedBy(c, 3)
	for range 20 {
		s.controllers()
		s.deliver(len(s.changes))
		report, err := s.pass()
		if err != nil {
			t.Fatal(err)
		}
		if report.Layers[0].Complete || s.content("Deployment.apps a/y") != "absent" {
			t.Fatal("what was never found to be ready lets the rollout go on")
		}
		s.clock.SetTime(s.clock.Now().Add(refillTime))
	}
	report, err := s.pass()
	if err != nil {
		t.Fatal(err)
	}
	failed := report.Layers[0].Phases[0].Failures
	if len(failed) != 3 || failed[2].Message != "costs too much" || failed[2].Unknown || c.asked > 2*3 {
		t.Errorf("%d judgements, %+v", c.asked, failed)
	}
}

// TestJudgingEnds: after its context has ended, a pass judges no further objects, and does not
// count them as judged.
func TestJudgingEnds(t *testing.T) {
	c := &costly{units: 100}
	s := judgedBy(c, 50)
	s.settle(t)
	s.restart() // drops verdicts
	ctx, end := context.WithCancel(t.Context())
	c.reset()
	c.on = func() {
		if c.asked == 5 {
			end()
		}
	}
	report, err := s.engine.Reconcile(ctx, s.work())
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if c.asked != 5 || report.Layers[0].Complete {
		t.Errorf("it was asked %d times, complete: %v", c.asked, report.Layers[0].Complete)
	}
	if n := len(s.engine.memories["argocd"].verdicts); n != 4 {
		t.Errorf("%d verdicts are kept of 4", n)
	}
	c.on = nil
	s.settle(t)
}

func TestAllowance(t *testing.T) {
	now := time.Unix(1000, 0)
	a := allowance{}
	a.refill(now)
	if a.left != passUnits {
		t.Errorf("a chain begins with %d units", a.left)
	}
	a.left = 0
	if a.full() != refillTime {
		t.Errorf("it takes %s until there is all", a.full())
	}
	a.refill(now.Add(refillTime / 4))
	if a.left != passUnits/4 || a.full() != refillTime*3/4 {
		t.Errorf("%d units after a quarter, %s for the rest", a.left, a.full())
	}
	a.refill(now) // clocks may run backwards
	if a.left != passUnits/4 {
		t.Errorf("%d units when the clock goes back", a.left)
	}
	a.refill(now.Add(time.Hour))
	if a.left != passUnits {
		t.Errorf("%d units after an hour", a.left)
	}
}
