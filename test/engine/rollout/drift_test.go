//go:build integration

package rollout_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// seen runs passes until the watches show the current version of an object.
func (c *chain) seen(object map[string]any) {
	c.t.Helper()
	c.until("seen", func(rollout.Report) bool {
		live := c.get(id(object))
		seen, presence := c.process.watches.Get(id(object))
		return live != nil && presence == observe.Present && seen.ResourceVersion == live.GetResourceVersion()
	})
}

// repairsDrift lists changes by users, the requests that each repair costs, and its event.
func repairsDrift(t *testing.T, c *chain) {
	ns := c.home()
	// The controllers ignore this name, so they write no status during the count.
	x, app := configMap(ns, "x", "1"), deployment(ns, "slow", "1")
	ready := func() {
		if err := c.available(c.get(id(app))); err != nil {
			t.Fatal(err)
		}
	}
	one := rev(1).phase("base", x, configMap(ns, "y", "1")).phase("deploy", app)
	c.become(one)
	c.stuck("1/deploy Deployment.apps drift/slow: ProbeFailed")
	ready()
	c.until("complete", complete)
	c.quiet()
	unmarked := `{"metadata":{"labels":{"penstock.dev/chain":null}}}`
	cases := []struct {
		name, reason string
		object       map[string]any
		do           func()
		cost         map[string]int
		// says is part of an event. Empty means no event.
		says     string
		replaced bool
	}{
		{"changed", "one read says what was lost, one apply repairs it", x,
			func() { c.patch(id(x), "kubectl-edit", `{"data":{"value":"9"}}`) },
			map[string]int{"get": 1, "apply": 1}, ".data.value was changed by kubectl-edit", false},
		{"removed", "a value is gone", x,
			func() { c.patch(id(x), "kubectl-edit", `{"data":{"value":null}}`) },
			map[string]int{"get": 1, "apply": 1}, ".data was removed", false},
		{"scaled", "a value of a kind with generations", app,
			func() { c.patch(id(app), "kubectl-scale", `{"spec":{"replicas":5}}`) },
			map[string]int{"get": 1, "apply": 1}, ".spec.replicas was changed by kubectl-scale", false},
		{"image", "a value in a list by key", app,
			func() {
				c.patch(id(app), "kubectl-set", `{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"evil"}]}}}}`)
			},
			map[string]int{"get": 1, "apply": 1}, `.spec.template.spec.containers[name="main"].image was changed by kubectl-set`, false},
		{"annotation", "the mark of what was applied is a value of ours", x,
			func() {
				c.patch(id(x), "kubectl-edit", `{"metadata":{"annotations":{"penstock.dev/applied":"sha256:0"}}}`)
			},
			map[string]int{"get": 1, "apply": 1}, ".metadata.annotations.penstock.dev/applied was changed by kubectl-edit", false},
		{"label changed", "the label of a chain that never applied it", x,
			func() {
				c.patch(id(x), "kubectl-edit", `{"metadata":{"labels":{"penstock.dev/chain":"flux"}}}`)
			},
			map[string]int{"get": 1, "apply": 1}, ".metadata.labels.penstock.dev/chain was changed by kubectl-edit", false},
		{"label stripped", "no watch by label shows it: create-only apply, read, and repair", x,
			func() { c.patch(id(x), "kubectl-edit", unmarked) },
			map[string]int{"get": 2, "apply": 2}, "was removed", false},
		{"managedFields wiped", "nobody can tell who changed what", x,
			func() { c.patch(id(x), "kubectl-edit", `{"metadata":{"managedFields":[{}]}}`) },
			map[string]int{"get": 1, "apply": 1, "patch": 1}, "", false},
		{"deleted", "create-only apply", x,
			func() { c.remove(id(x)) },
			map[string]int{"apply": 1}, "someone had deleted", true},
		{"added, no generations", "only a read can tell that this is none of our business", x,
			func() { c.patch(id(x), "somebody", `{"data":{"more":"theirs"}}`) },
			map[string]int{"get": 1}, "", false},
		{"added, generations", "the same, and an apply because no schema says that 0.5 is 500m", app,
			func() { c.patch(id(app), "somebody", `{"spec":{"minReadySeconds":3}}`) },
			map[string]int{"get": 1, "apply": 1}, "", false},
		{"labelled, generations", "metadata of others does not count", app,
			func() { c.patch(id(app), "somebody", `{"metadata":{"labels":{"a":"b"}}}`) },
			nil, "", false},
		{"status", "status is none of our business", app,
			func() { c.patch(id(app), "somebody", `{"status":{"collisionCount":1}}`, "status") },
			nil, "", false},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			fresh(c) // so that it has no recent repairs
			before := c.uid(tc.object)
			c.events = nil
			mark := c.Audit().Mark()
			tc.do()
			after := c.get(id(tc.object))
			if after == nil {
				c.until("made again", func(rollout.Report) bool { return c.get(id(tc.object)) != nil })
			}
			if tc.cost != nil {
				c.until("looked at", func(rollout.Report) bool { return len(c.requests(mark)) > 0 })
			}
			ready()
			c.seen(tc.object)
			c.until("complete", complete)
			c.settled(t, one.objects()...)
			got := c.spent(mark)
			delete(got, "discover")
			if want := tc.cost; len(want)+len(got) > 0 {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: requests (-want +got):\n%s\n%s", tc.reason, diff, c.requests(mark))
				}
			}
			if replaced := c.uid(tc.object) != before; replaced != tc.replaced {
				t.Errorf("%s: replaced %t, want %t", tc.reason, replaced, tc.replaced)
			}
			said := strings.Join(c.events, "\n")
			if tc.says == "" && said != "" || !strings.Contains(said, tc.says) {
				t.Errorf("%s: the events say %q, want %q", tc.reason, said, tc.says)
			}
		})
	}
}

// fresh starts a new process and waits until its watches are synced.
func fresh(c *chain) {
	c.t.Helper()
	c.run()
	c.until("complete", complete)
}

// freezer is an observer that can return old observations.
type freezer struct {
	rollout.Observer
	mu     sync.Mutex
	frozen map[manifest.ID]answer
}

type answer struct {
	observe.Observation
	observe.Presence
}

func (f *freezer) Get(id manifest.ID) (observe.Observation, observe.Presence) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a, ok := f.frozen[id]; ok {
		return a.Observation, a.Presence
	}
	return f.Observer.Get(id)
}

func (f *freezer) freeze(ids ...manifest.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.frozen = map[manifest.ID]answer{}
	for _, id := range ids {
		seen, presence := f.Observer.Get(id)
		f.frozen[id] = answer{seen, presence}
	}
}

// repairsWhatTheWatchHasNotSeen: an object is deleted or replaced, and the next write begins before
// the watch reports that.
func repairsWhatTheWatchHasNotSeen(t *testing.T, c *chain) {
	ns := c.home()
	watches := &freezer{}
	c.run(interference{observer: func(o rollout.Observer) rollout.Observer {
		watches.Observer = o
		return watches
	}})
	x := configMap(ns, "x", "1")
	c.roll(rev(1).phase("base", x))

	c.seen(x)
	watches.freeze(id(x))
	c.remove(id(x))
	if report, err := c.pass(); err != nil || !complete(report) {
		t.Errorf("want no repair from an outdated watch: %v, %v", failures(report), err)
	}
	x2 := configMap(ns, "x", "2")
	c.become(rev(2).phase("base", x2))
	if _, err := c.pass(); err != nil {
		t.Fatal(err)
	}
	if got := c.value(x); got != "2" {
		t.Errorf("want the write to create the object again: %s", got)
	}
	// The watch still shows the deleted object or nothing. Both observations are older than our
	// write.
	if report, err := c.pass(); err != nil || strings.Contains(messages(report), "replaced") {
		t.Errorf("a state from before our write was judged: %v %v", messages(report), err)
	}
	watches.freeze()
	c.until("complete", complete)
	c.settled(t, x2)

	// Another user replaces the object: that is a collision, not a repair.
	c.seen(x2)
	watches.freeze(id(x))
	c.remove(id(x))
	c.create(configMap(ns, "x", "theirs"))
	c.become(rev(3).phase("base", configMap(ns, "x", "3")))
	c.stuck("3/base ConfigMap drift-unseen/x: Collision")
	watches.freeze()
	c.become()
	c.until("gone", complete)
	if got := c.value(x); got != "theirs" {
		t.Errorf("another owner's object is %s", got)
	}
}

// backsOff: another user reverts a value as fast as possible.
func backsOff(t *testing.T, c *chain) {
	ns := c.home()
	now := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
	c.clock = now
	x := configMap(ns, "x", "1")
	one := rev(1).phase("base", x)
	c.roll(one)
	mark := c.Audit().Mark()
	round := 0
	fight := func() {
		round++
		c.patch(id(x), "fighter", fmt.Sprintf(`{"data":{"value":"mine-%d"}}`, round))
		c.seen(x)
	}
	for range 30 {
		fight()
	}
	report := c.stuck("1/base ConfigMap contested/x: Contested")
	if text := messages(report); !strings.Contains(text, ".data.value was changed by fighter") {
		t.Errorf("the message does not name the field and its other manager: %s", text)
	}
	if got := c.spent(mark); got["apply"] > 6 || got["get"] > 7 {
		t.Errorf("30 quick rounds cost %v", got)
	}
	mark = c.Audit().Mark()
	for range 10 {
		fight()
	}
	if requests := c.requests(mark); len(requests) > 0 {
		t.Errorf("a change during the wait caused requests:\n%s", requests)
	}
	if report.RequeueAfter <= 0 {
		t.Fatal("no next attempt is scheduled")
	}
	now.SetTime(now.Now().Add(report.RequeueAfter))
	c.process.wake()
	c.until("complete", complete)
	c.settled(t, x)
}
