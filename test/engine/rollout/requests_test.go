//go:build integration

package rollout_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// cost compares the requests of a step with the wanted numbers, without discovery. The client and
// each watch send one discovery request per group and version.
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

// sent counts the requests of a chain by reason, as the transport saw them. It skips watches and
// discovery, which do not belong to a single object.
func (c *chain) sent() map[targetclient.Request]int {
	counts := map[targetclient.Request]int{}
	for request, n := range c.counter.Requests() {
		if request.Reason != targetclient.Discovery && request.Reason != targetclient.Watch {
			counts[request] = int(n)
		}
	}
	return counts
}

// costs are the wanted requests of a step, by reason.
type costs map[targetclient.Reason]int

// TestRequests checks every line of the table of requests per object
// (docs/reference/performance.md). It counts the requests in the client. kube-apiserver's audit log
// must show the same requests.
func TestRequests(t *testing.T) {
	t.Parallel()
	// n is the number of objects, m the number of affected objects.
	const n, m = 12, 3
	w := start(t)
	installed := func(c *chain) []*revision {
		one := rev(1).phase("all", mixture(c.home(), n, 0)...)
		c.roll(one)
		return []*revision{one}
	}
	for name, row := range map[string]struct {
		reason        string
		skipPreflight bool
		// prepare sets up the state before the count. It returns its revisions, newest first.
		prepare func(*chain) []*revision
		do      func(c *chain, before []*revision)
		want    costs
	}{
		"create": {
			reason:  "each object is tried and made: with its managed fields, by one request",
			prepare: func(c *chain) []*revision { c.home(); return nil },
			do:      func(c *chain, _ []*revision) { c.roll(rev(1).phase("all", mixture(c.name, n, 0)...)) },
			want:    costs{targetclient.Preflight: n, targetclient.Create: n},
		},
		"create-unchecked": {
			reason: "without preflight each object is made", skipPreflight: true,
			prepare: func(c *chain) []*revision { c.home(); return nil },
			do:      func(c *chain, _ []*revision) { c.roll(rev(1).phase("all", mixture(c.name, n, 0)...)) },
			want:    costs{targetclient.Create: n},
		},
		"steady": {
			reason:  "passes over what is as it should be look at nothing but memory",
			prepare: installed,
			do:      func(c *chain, _ []*revision) { c.quiet() },
		},
		"restart": {
			reason:  "a new process finds from its watches that all is well",
			prepare: installed,
			do: func(c *chain, _ []*revision) {
				c.run()
				c.until("complete", complete)
				c.quiet()
			},
		},
		"paused": {
			reason:  "a paused chain leaves alone even what was changed",
			prepare: installed,
			do: func(c *chain, before []*revision) {
				before[0].paused = true
				c.become(before...)
				c.patch(id(before[0].objects()[0]), "somebody", `{"data":{"value":"9"}}`)
				c.stuck("1/all ConfigMap paused/o0: Paused")
				c.quiet()
			},
		},
		"drift": {
			reason:  "of n objects those that somebody changed are read and repaired",
			prepare: installed,
			do: func(c *chain, before []*revision) {
				changed := configMaps(before[0])[:m]
				for _, object := range changed {
					c.patch(id(object), "somebody", `{"data":{"value":"9"}}`)
				}
				c.until("repaired", func(r rollout.Report) bool {
					return complete(r) && !slices.ContainsFunc(changed, func(o map[string]any) bool { return c.value(o) == "9" })
				})
			},
			want: costs{targetclient.Judge: m, targetclient.Repair: m},
		},
		"drift-deleted": {
			reason:  "what somebody deleted is made again, and there is nothing to read",
			prepare: installed,
			do: func(c *chain, before []*revision) {
				deleted := configMaps(before[0])[:m]
				for _, object := range deleted {
					c.remove(id(object))
				}
				c.until("made again", func(r rollout.Report) bool {
					return complete(r) && !slices.ContainsFunc(deleted, func(o map[string]any) bool { return c.value(o) == "absent" })
				})
			},
			want: costs{targetclient.Create: m},
		},
		"drift-of-others": {
			reason:  "values that nobody asked us for cost nothing where managed fields say so, a look where there is no generation",
			prepare: installed,
			do: func(c *chain, before []*revision) {
				c.looks(configMaps(before[0])[0], `{"data":{"more":"theirs"}}`)
			},
			want: costs{targetclient.Judge: 1},
		},
		"upgrade": {
			reason:  "of n objects those that differ are tried and written",
			prepare: installed,
			do:      func(c *chain, before []*revision) { c.roll(rev(2).phase("all", mixture(c.name, n, m)...), before[0]) },
			want:    costs{targetclient.Preflight: m, targetclient.Update: m},
		},
		"upgrade-unchecked": {
			reason: "without preflight they are written", skipPreflight: true,
			prepare: installed,
			do:      func(c *chain, before []*revision) { c.roll(rev(2).phase("all", mixture(c.name, n, m)...), before[0]) },
			want:    costs{targetclient.Update: m},
		},
		"upgrade-unchanged": {
			reason:  "a revision with the same objects takes them over without a word",
			prepare: installed,
			do:      func(c *chain, before []*revision) { c.roll(rev(2).phase("all", mixture(c.name, n, 0)...), before[0]) },
		},
		"archive": {
			reason: "the old revision has nothing left of its own",
			prepare: func(c *chain) []*revision {
				one := installed(c)[0]
				two := rev(2).phase("all", mixture(c.name, n, m)...)
				c.roll(two, one)
				return []*revision{two}
			},
			do: func(c *chain, before []*revision) {
				c.roll(before...)
				c.quiet()
			},
		},
		"archive-dropped": {
			reason: "what the new revision lacks is deleted",
			prepare: func(c *chain) []*revision {
				one := installed(c)[0]
				two := rev(2).phase("all", one.objects()[m:]...)
				c.roll(two, one)
				return []*revision{two}
			},
			do:   func(c *chain, before []*revision) { c.roll(before...) },
			want: costs{targetclient.Delete: m},
		},
		"delete": {
			reason:  "each object is deleted once, and a watch tells when it is gone",
			prepare: installed,
			do:      func(c *chain, _ []*revision) { c.roll() },
			want:    costs{targetclient.Delete: n},
		},
		"collision": {
			reason: "somebody else's object is watched by its name, and never asked for again",
			prepare: func(c *chain) []*revision {
				theirs := configMap(c.home(), "theirs", "theirs")
				c.create(theirs)
				one := rev(1).phase("all", theirs)
				c.become(one)
				c.until("visible", func(rollout.Report) bool {
					_, presence := c.process.watches.Get(id(theirs))
					return presence == observe.Present
				})
				return []*revision{one}
			},
			do: func(c *chain, _ []*revision) {
				c.stuck("1/all ConfigMap collision/theirs: Collision")
				c.quiet()
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := w.in(t).chain(name)
			c.skipPreflight = row.skipPreflight
			before := row.prepare(c)
			mark, from := c.Audit().Mark(), c.sent()
			row.do(c, before)
			c.accounts(mark, from, row.reason, row.want)
		})
	}
}

// accounts compares the requests since a mark with the wanted requests and with kube-apiserver's
// audit log.
func (c *chain) accounts(mark plane.Mark, from map[targetclient.Request]int, reason string, want costs) {
	c.t.Helper()
	got, byVerb := costs{}, map[string]int{}
	for request, n := range c.sent() {
		if n -= from[request]; n > 0 {
			got[request.Reason] += n
			byVerb[request.Verb] += n
		}
	}
	requests := c.requests(mark).Where(func(r plane.Request) bool { return r.Resource != "" })
	if want == nil {
		want = costs{}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("%s (-want +got):\n%s\n%s", reason, diff, requests)
	}
	audited := map[string]int{}
	for _, r := range requests {
		audited[r.Verb]++
	}
	if diff := cmp.Diff(byVerb, audited); diff != "" {
		c.t.Errorf("sent, and in the audit log (-sent +audited):\n%s\n%s", diff, requests)
	}
}

// looks changes an object where no field of ours is affected, and waits until the engine has read
// it.
func (c *chain) looks(object map[string]any, patch string) {
	c.t.Helper()
	c.patch(id(object), "somebody", patch)
	version := c.get(id(object)).GetResourceVersion()
	c.until("looked at", func(r rollout.Report) bool {
		inventory, _ := c.ledger.load()
		return complete(r) && inventory.Entries[id(object)].ResourceVersion == version
	})
}

// mixture returns n objects of several kinds. The first ConfigMaps, as many as changed, have
// another value.
func mixture(ns string, n, changed int) []map[string]any {
	var objects []map[string]any
	for i := range n {
		name, value := fmt.Sprint("o", i), "1"
		switch i % 4 {
		case 2:
			objects = append(objects, secret(ns, name, nil))
		case 3:
			objects = append(objects, clusterRole(ns+"-"+name, "get"))
		default:
			if changed > 0 {
				value, changed = "2", changed-1
			}
			objects = append(objects, configMap(ns, name, value))
		}
	}
	return objects
}

// configMaps returns the ConfigMaps of a revision.
func configMaps(r *revision) []map[string]any {
	return slices.DeleteFunc(r.objects(), func(o map[string]any) bool { return o["kind"] != "ConfigMap" })
}

// countsRequestsOfOnePhase: an object in a namespace of the same phase needs two dry-runs, because
// the first dry-run fails.
func countsRequestsOfOnePhase(t *testing.T, c *chain) {
	ns := c.name
	one := rev(1).phase("all", namespace(ns), configMap(ns, "a", "1"), configMap(ns, "b", "1"))
	c.cost(t, "a namespace and two objects in it", map[string]int{"try": 1 + 2 + 2, "apply": 3}, func() { c.roll(one) })
	c.cost(t, "a pass without change", nil, c.quiet)
	c.settled(t, one.objects()...)
}

// countsRequestsOfAdoption: no object has our label, so the engine first tries to create the
// object.
func countsRequestsOfAdoption(t *testing.T, c *chain) {
	ns := c.home()
	x := configMap(ns, "x", "1")
	c.create(configMap(ns, "x", "theirs"))
	c.cost(t, "an adoption", map[string]int{"try": 2, "get": 2, "patch": 1, "apply": 1}, func() {
		c.roll(rev(1).adopting(stage.AdoptUncontrolled).phase("all", x))
	})
	c.settled(t, x)
}

// restartsForNothing: a new process with the same inventory verifies all objects by its watches
// alone.
func restartsForNothing(t *testing.T, c *chain) {
	ns := c.name
	one := rev(1).phase("base", namespace(ns), clusterRole("restart", "get"), configMap(ns, "x", "1"), secret(ns, "s", nil)).
		phase("deploy", deployment(ns, "app", "1"))
	c.roll(one)
	c.cost(t, "a restart", nil, func() {
		c.run()
		c.until("complete", complete)
		if _, presence := c.process.watches.Get(id(one.objects()[2])); presence != observe.Present {
			t.Errorf("the rollout is complete although the state is %s", presence)
		}
		c.quiet()
	})
	// If the record of the last writes is lost, the engine recognises its writes. It first reads
	// each object, because another writer may have changed it since.
	inventory, _ := c.ledger.load()
	for id, entry := range inventory.Entries {
		entry.UID, entry.ManagedEntry, entry.ResourceVersion = "", "", ""
		inventory.Entries[id] = entry
	}
	c.ledger.inventory = inventory
	c.cost(t, "an inventory of intents", map[string]int{"get": len(one.objects()), "apply": len(one.objects())}, func() {
		c.run()
		c.until("complete", complete)
	})
	c.settled(t, one.objects()...)
}
