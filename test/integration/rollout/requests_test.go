package rollout_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// cost compares what was sent since a mark, discovery apart: that is asked once
// for each group and version, by the door and by each watch.
func (c *chain) cost(t *testing.T, what string, want map[string]int, do func()) {
	t.Helper()
	mark := c.Audit().Mark()
	do()
	got := c.spent(mark)
	t.Logf("%s: %v", what, got)
	delete(got, "discover")
	if want == nil {
		want = map[string]int{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s costs (-want +got):\n%s\n%s", what, diff, c.requests(mark))
	}
}

// countsRequests: every request is accounted for.
func countsRequests(t *testing.T, c *chain) {
	ns := c.home()
	const n = 12
	build := func(number int64, value func(i int) string) *revision {
		var first, second []map[string]any
		for i := range n / 2 {
			first = append(first, configMap(ns, fmt.Sprint("a", i), value(i)))
			second = append(second, configMap(ns, fmt.Sprint("b", i), value(i+n/2)))
		}
		return rev(number).phase("first", first...).phase("second", second...)
	}
	one := build(1, func(int) string { return "1" })
	c.cost(t, fmt.Sprintf("an install of %d objects", n), map[string]int{"try": n, "apply": n}, func() { c.roll(one) })
	c.cost(t, "a pass without change", nil, c.quiet)

	drifted := one.objects()[3]
	c.cost(t, "drift of one", map[string]int{"get": 1, "apply": 1}, func() {
		c.patch(id(drifted), "somebody", `{"data":{"value":"9"}}`)
		c.until("repaired", func(r rollout.Report) bool { return complete(r) && c.value(drifted) == "1" })
	})
	two := build(2, func(i int) string {
		if i == 4 {
			return "2"
		}
		return "1"
	})
	c.cost(t, "an upgrade that changes one", map[string]int{"try": 1, "apply": 1}, func() { c.roll(two, one) })
	c.cost(t, "archiving a revision whose objects are all taken over", nil, func() { c.roll(two) })
	three := rev(3).phase("first", two.objects()[:n/2]...)
	c.cost(t, "an upgrade that drops half", nil, func() { c.roll(three, two) })
	c.cost(t, "archiving what has the other half", map[string]int{"delete": n / 2}, func() { c.roll(three) })
	c.cost(t, "deletion", map[string]int{"delete": n / 2}, func() { c.roll() })
	c.settled(t)
}

// countsRequestsOfOnePhase: what lies in a namespace of the same phase is tried
// twice, the first time in vain.
func countsRequestsOfOnePhase(t *testing.T, c *chain) {
	ns := c.name
	one := rev(1).phase("all", namespace(ns), configMap(ns, "a", "1"), configMap(ns, "b", "1"))
	c.cost(t, "a namespace and two objects in it", map[string]int{"try": 1 + 2 + 2, "apply": 3}, func() { c.roll(one) })
	c.cost(t, "a pass without change", nil, c.quiet)
	c.settled(t, one.objects()...)
}

// countsRequestsOfAdoption: nothing with our label is there, so what is tried first
// is to create it.
func countsRequestsOfAdoption(t *testing.T, c *chain) {
	ns := c.home()
	x := configMap(ns, "x", "1")
	c.create(configMap(ns, "x", "theirs"))
	c.cost(t, "an adoption", map[string]int{"try": 2, "get": 1, "patch": 1, "apply": 1}, func() {
		c.roll(rev(1).adopting(stage.AdoptUncontrolled).phase("all", x))
	})
	c.settled(t, x)
}

// restartsForNothing: another process on the same inventory finds that all is well
// from its watches.
func restartsForNothing(t *testing.T, c *chain) {
	ns := c.name
	one := rev(1).phase("base", namespace(ns), clusterRole("restart", "get"), configMap(ns, "x", "1"), secret(ns, "s", nil)).
		phase("deploy", deployment(ns, "app", "1"))
	c.roll(one)
	c.cost(t, "a restart", nil, func() {
		c.run()
		c.until("complete", complete)
		if _, presence := c.process.watches.Get(id(one.objects()[2])); presence != observe.Present {
			t.Errorf("it is complete without having looked: %s", presence)
		}
		c.quiet()
	})
	// A store that lost the record of the last writes recognises them.
	inventory, _ := c.ledger.load()
	for id, entry := range inventory.Entries {
		entry.UID, entry.ManagedEntry, entry.ResourceVersion = "", "", ""
		inventory.Entries[id] = entry
	}
	c.ledger.inventory = inventory
	c.cost(t, "an inventory of intents", map[string]int{"apply": len(one.objects())}, func() {
		c.run()
		c.until("complete", complete)
	})
	c.settled(t, one.objects()...)
}
