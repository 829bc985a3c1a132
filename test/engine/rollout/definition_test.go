//go:build integration

package rollout_test

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// survivesDeletedDefinitions: somebody deletes a definition under us, and with it
// our objects. While they are wanted that is said; they are made again when it is
// back; and nobody waits for them when they are to go.
func survivesDeletedDefinitions(t *testing.T, c *chain) {
	ns := c.home()
	watches := &freezer{}
	c.run(interference{observer: func(o rollout.Observer) rollout.Observer {
		watches.Observer = o
		return watches
	}})
	group := "deleted.example.com"
	definition, w, x := widgets(group, "Lost", "losts"), widget(group, "Lost", ns, "w", "1"), configMap(ns, "x", "1")
	c.create(definition)
	one := rev(1).phase("base", w, x)
	c.become(one)
	c.until("complete", complete)

	c.remove(id(definition))
	c.until("missed", func(r rollout.Report) bool {
		return strings.Contains(strings.Join(failures(r), "\n"), "Lost.deleted.example.com crd-deleted/w") && c.value(x) == "1"
	})
	poll.Eventually(t, "the definition to be gone", func() (bool, string) { return c.get(id(definition)) == nil, "it is there" })
	c.create(definition)
	c.until("complete", complete)
	c.settled(t, w, x)

	watches.freeze(id(w)) // what no watch has seen go, the delete finds out
	c.remove(id(definition))
	poll.Eventually(t, "the kind to be no longer served", func() (bool, string) { return !c.serves(id(w)), "it is" })
	c.become()
	c.until("gone", complete)
	watches.freeze()
	c.settled(t)
	if said := strings.Join(c.events, "\n"); !strings.Contains(said, "was deleted with the definition of its kind") {
		t.Errorf("events: %s", said)
	}
}
