//go:build integration

package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/test/framework/poll"
)

var errCrash = errors.New("the process was killed by the test")

// fuse kills a process at its k-th write, counting writes to the cluster and to the inventory's
// store. All later writes fail.
type fuse struct {
	rollout.Writer
	// lands is true if the k-th write succeeds and only its answer is lost.
	lands bool

	mu   sync.Mutex
	left int // the number of writes before the crash; negative for no crash
	dead bool
}

// burn counts a write. It reports whether the write happens, and the error to return.
func (f *fuse) burn() (happens bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.dead:
		return false, errCrash
	case f.left == 0:
		f.dead = true
		return f.lands, errCrash
	case f.left > 0:
		f.left--
	}
	return true, nil
}

// through performs the write if the fuse allows it.
func through[T any](f *fuse, do func() (T, error)) (T, error) {
	var none T
	happens, crash := f.burn()
	if !happens {
		return none, crash
	}
	result, err := do()
	if crash != nil {
		return none, crash
	}
	return result, err
}

func (f *fuse) Apply(ctx context.Context, ref manifest.Ref, body []byte, o targetclient.ApplyOptions) (*metav1.PartialObjectMetadata, error) {
	if o.DryRun {
		return f.Writer.Apply(ctx, ref, body, o)
	}
	return through(f, func() (*metav1.PartialObjectMetadata, error) { return f.Writer.Apply(ctx, ref, body, o) })
}

func (f *fuse) Delete(ctx context.Context, ref manifest.Ref, p targetclient.Precondition) error {
	_, err := through(f, func() (struct{}, error) { return struct{}{}, f.Writer.Delete(ctx, ref, p) })
	return err
}

func (f *fuse) Release(ctx context.Context, ref manifest.Ref, p targetclient.Precondition, marks targetclient.Marks) error {
	_, err := through(f, func() (struct{}, error) { return struct{}{}, f.Writer.Release(ctx, ref, p, marks) })
	return err
}

func (f *fuse) save(save func() error) error {
	_, err := through(f, func() (struct{}, error) { return struct{}{}, save() })
	return err
}

// died reports whether the fuse has killed the process.
func (f *fuse) died() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dead
}

// fused starts a process with a fuse that does not burn yet.
func (c *chain) fused() *fuse {
	c.t.Helper()
	f := &fuse{left: -1}
	c.run(interference{
		writer: func(w rollout.Writer) rollout.Writer { f.Writer = w; return f },
		save:   f.save,
	})
	return f
}

// die arms the fuse and runs passes. It returns true if the process died, and false if the chain
// completed first.
func (c *chain) die(f *fuse, k int, lands bool) bool {
	c.t.Helper()
	f.mu.Lock()
	f.left, f.lands = k, lands
	f.mu.Unlock()
	deadline := time.After(poll.Patience)
	for {
		report, err := c.pass()
		switch {
		case f.died():
			c.kill()
			return true
		case err != nil:
			c.t.Fatalf("reconciling: %v", err)
		case complete(report):
			return false
		}
		select {
		case <-c.process.heard:
		case <-deadline:
			c.t.Fatalf("the process neither crashed nor completed: %v", failures(report))
		}
	}
}

// scene is one operation of a chain.
type scene struct {
	// before prepares the scene, with a process that is not killed.
	before func(*chain)
	// change is the request to the first process. then is the request to the next process, and by
	// default the same.
	change, then func(*chain)
	// want are the chain's objects at the end. kept are objects that must keep their UIDs.
	want, kept func(*chain) []map[string]any
	// released are objects that stay, and no longer belong to the chain.
	released func(*chain) []map[string]any
	// check makes additional checks, if set.
	check func(*chain)
}

// TestCrash kills the engine at its k-th write, for every third k, alternately before and after the
// write. Then it starts another engine with the stored inventory. FULL=1 tries every k both ways,
// as TestCrashAfterEveryWrite of pkg/rollout does without a cluster.
func TestCrash(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.runControllers()
	w.finalizeNamespaces()
	first := func(c *chain) *revision {
		ns := c.name
		return rev(1).phase("base", namespace(ns), clusterRole(c.name, "get"), configMap(ns, "x", "1"), configMap(ns, "old", "1")).
			phase("deploy", deployment(ns, "app", "1"))
	}
	second := func(c *chain) *revision {
		ns := c.name
		return rev(2).phase("base", namespace(ns), clusterRole(c.name, "list"), configMap(ns, "x", "2"), configMap(ns, "new", "2")).
			phase("deploy", deployment(ns, "app", "2"))
	}
	// both returns the objects that both revisions have, with the content of r.
	both := func(r *revision) []map[string]any {
		o := r.objects()
		return []map[string]any{o[0], o[1], o[2], o[4]}
	}
	all := func(c *chain) []map[string]any { return first(c).objects() }
	scenes := map[string]scene{
		"install": {
			change: func(c *chain) { c.become(first(c)) },
			want:   all,
		},
		"upgrade": {
			before: func(c *chain) { c.roll(first(c)) },
			change: func(c *chain) { c.become(second(c)) },
			want:   func(c *chain) []map[string]any { return second(c).objects() },
			kept:   func(c *chain) []map[string]any { return both(second(c)) },
		},
		"fallback": {
			before: func(c *chain) {
				c.roll(first(c))
				c.roll(second(c), first(c))
			},
			change: func(c *chain) { c.become(first(c)) },
			want:   all,
			kept:   all,
		},
		"teardown": {
			before: func(c *chain) { c.roll(first(c)) },
			change: func(c *chain) { c.become() },
		},
		"adoption": {
			before: func(c *chain) {
				c.create(namespace(c.name))
				theirs := configMap(c.name, "x", "theirs")
				theirs["data"].(map[string]any)["more"] = "goes"
				c.create(theirs)
				c.create(deployment(c.name, "app", "theirs"))
			},
			change: func(c *chain) { c.become(first(c).adopting(stage.AdoptUncontrolled)) },
			want:   all,
			kept:   func(c *chain) []map[string]any { o := all(c); return []map[string]any{o[0], o[2], o[4]} },
			check: func(c *chain) {
				if data := c.get(id(configMap(c.name, "x", ""))).Object["data"]; !cmp.Equal(data, map[string]any{"value": "1"}) {
					c.t.Errorf("a field that only the former revision had is still there: %v", data)
				}
			},
		},
		"orphan": {
			before:   func(c *chain) { c.roll(first(c)) },
			change:   func(c *chain) { c.become(); c.orphan[1] = true },
			released: all,
		},
		"abandoned": { // the next process gets an empty chain
			change: func(c *chain) { c.become(first(c)) },
			then:   func(c *chain) { c.become() },
		},
		"definition": {
			change: func(c *chain) { c.become(rev(1).phase("all", definitionOf(c)...)) },
			want:   definitionOf,
		},
	}
	w.create(namespace("elsewhere"))
	before := w.bystanders("elsewhere")
	t.Run("at", func(t *testing.T) {
		for name, s := range scenes {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				writes, runs := 0, 0
				for k, more := 0, true; more; k++ {
					for _, lands := range landings(k) {
						t.Run(fmt.Sprintf("%d-%t", k, lands), func(t *testing.T) {
							more = s.play(w.in(t).chain(fmt.Sprintf("%s-%d-%t", name, k, lands)), k, lands)
							runs++
						})
					}
					writes = k
				}
				t.Logf("%d writes, %d runs", writes, runs)
			})
		}
	})
	if diff := cmp.Diff(before, w.versions("elsewhere")); diff != "" {
		t.Errorf("objects with the same names in another namespace were changed (-before +after):\n%s", diff)
	}
}

// landings returns the runs for the k-th write: false crashes before the write, true after it.
func landings(k int) []bool {
	switch {
	case os.Getenv("FULL") == "1":
		return []bool{false, true}
	case k%3 == 0:
		return []bool{k%2 == 1}
	default:
		return nil
	}
}

// bystanders creates objects with the names that scenes use, in a namespace of no scene. Some have
// the label of another chain.
func (w targetCluster) bystanders(ns string) map[string]string {
	w.t.Helper()
	for _, name := range []string{"x", "old", "new", "bystander"} {
		object := configMap(ns, name, "theirs")
		if name == "bystander" || name == "old" {
			object["metadata"].(map[string]any)["labels"] = map[string]any{names().ChainLabel: "somebody-else"}
		}
		w.create(object)
	}
	return w.versions(ns)
}

// versions returns the resourceVersions of the bystanders in a namespace.
func (w targetCluster) versions(ns string) map[string]string {
	w.t.Helper()
	list, err := w.outsider.Resource(resources()["ConfigMap"]).Namespace(ns).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	found := map[string]string{}
	for _, o := range list.Items {
		if valueOf(o.Object) == "theirs" {
			found[o.GetName()] = o.GetResourceVersion()
		}
	}
	return found
}

// definitionOf returns a kind and an instance of it, in the chain's own group.
func definitionOf(c *chain) []map[string]any {
	group := c.name + ".example.com"
	return []map[string]any{namespace(c.name), widgets(group, "Thing", "things"), widget(group, "Thing", c.name, "t", "1")}
}

// play runs a scene once. It returns false if the chain completed before the k-th write.
func (s scene) play(c *chain, k int, lands bool) bool {
	c.t.Helper()
	c.parallel = 1 // so that the k-th write is always the same write
	f := c.fused()
	if s.before != nil {
		s.before(c)
	}
	none := func(*chain) []map[string]any { return nil }
	for _, list := range []*func(*chain) []map[string]any{&s.want, &s.kept, &s.released} {
		if *list == nil {
			*list = none
		}
	}
	before := c.identities(s.kept(c), s.released(c))
	if len(s.kept(c)) > 0 {
		c.create(unlabelled(c))
	}
	untouched := c.get(id(unlabelled(c)))
	s.change(c)
	died := c.die(f, k, lands)

	if s.then != nil {
		s.then(c)
	}
	c.run()
	c.until("complete", complete)
	c.settled(c.t, s.want(c)...)
	if diff := cmp.Diff(before, c.identities(s.kept(c), s.released(c))); diff != "" {
		c.t.Errorf("objects were replaced (-before +after):\n%s", diff)
	}
	for _, object := range s.released(c) {
		if live := c.get(id(object)); live != nil {
			if seen := names().Observe(live); seen.Chain != "" || seen.Applied != "" || live.GetDeletionTimestamp() != nil {
				c.t.Errorf("%s is not released: %+v", seen.ID, seen)
			}
		}
	}
	if s.check != nil {
		s.check(c)
	}
	if diff := cmp.Diff(untouched, c.get(id(unlabelled(c)))); diff != "" {
		c.t.Errorf("an object that does not belong to the chain was changed (-before +after):\n%s", diff)
	}
	c.quiet()
	return died
}

// unlabelled returns another user's object in the chain's namespace.
func unlabelled(c *chain) map[string]any { return configMap(c.name, "unlabelled", "theirs") }

// identities returns the UIDs of the objects that exist.
func (c *chain) identities(lists ...[]map[string]any) map[string]types.UID {
	c.t.Helper()
	found := map[string]types.UID{}
	for _, list := range lists {
		for _, object := range list {
			if live := c.get(id(object)); live != nil {
				found[id(object).String()] = live.GetUID()
			}
		}
	}
	return found
}
