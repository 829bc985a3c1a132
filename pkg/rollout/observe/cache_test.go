package observe

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

func TestGet(t *testing.T) {
	cases := map[string]struct {
		reason string
		wants  []Interest
		about  string
		want   Presence
	}{
		"NobodyWants":      {"without a watch nothing is known", nil, "ours", Unknown},
		"Labelled":         {"a watch by label sees it", []Interest{want("ours")}, "ours", Present},
		"Missing":          {"a watch by label that is complete does not have it", []Interest{want("none")}, "none", Absent},
		"Neighbour":        {"a watch by label tells about objects nobody wants", []Interest{want("none")}, "ours", Present},
		"NotLabelled":      {"by label, an object without it looks absent", []Interest{want("foreign")}, "foreign", Absent},
		"ByName":           {"by name it is seen", []Interest{wantByName("foreign")}, "foreign", Present},
		"ByNameMissing":    {"only that watch may say that it is absent", []Interest{wantByName("none")}, "none", Absent},
		"ByNameNeighbour":  {"it says nothing about others", []Interest{wantByName("foreign")}, "ours", Unknown},
		"Both":             {"present from either counts", []Interest{want("ours"), wantByName("foreign")}, "foreign", Present},
		"BothWays":         {"the same object by label and by name", []Interest{want("ours"), wantByName("ours")}, "ours", Present},
		"BothWaysUnseen":   {"by name it is seen, by label it is not", []Interest{want("foreign"), wantByName("foreign")}, "foreign", Present},
		"AnotherNamespace": {"a name is unique in its namespace only", []Interest{want("elsewhere")}, "elsewhere", Absent},
	}
	for _, streams := range []bool{true, false} {
		for name, tc := range cases {
			t.Run(fmt.Sprintf("%s/streamsLists=%t", name, streams), func(t *testing.T) {
				prepare := func(f *fakeServer) {
					f.streamsLists = streams
					f.put(configMaps(), object("ours", inChain("a")))
					f.put(configMaps(), object("foreign"))
					other := object("elsewhere", inChain("a"))
					other.SetNamespace("m")
					f.put(configMaps(), other)
				}
				bubble(t, prepare, func(t *testing.T, f *fakeServer, c *Cache, _ *notices) {
					c.Want("a", tc.wants...)
					know(t, c, tc.want, tc.about, tc.reason)
				})
			})
		}
	}
}

func TestAbsenceSaysUpToWhen(t *testing.T) {
	bubble(t, nil, func(t *testing.T, f *fakeServer, c *Cache, _ *notices) {
		c.Want("a", want("x"))
		if got := know(t, c, Absent, "x", "the list is empty").ResourceVersion; got != "100" {
			t.Errorf("want the version of the list, 100, got %q", got)
		}
		f.put(configMaps(), object("y", inChain("a")))
		if got := know(t, c, Absent, "x", "another one came").ResourceVersion; got != "101" {
			t.Errorf("want the version of the last event, 101, got %q", got)
		}
	})
}

// TestNotify: an event is reported to the right owners.
func TestNotify(t *testing.T) {
	status := probe.Reads{Status: true}
	cases := map[string]struct {
		reason string
		wants  map[string][]Interest
		first  *unstructured.Unstructured
		then   *unstructured.Unstructured // nil deletes
		want   []string
	}{
		"Chain":          {"the chain of an object, though it does not want this one", map[string][]Interest{"a": {want("x")}}, nil, object("y", inChain("a")), []string{"a"}},
		"StrangeChain":   {"a chain that nobody is", map[string][]Interest{"a": {want("x")}}, nil, object("y", inChain("b")), nil},
		"Wanted":         {"the chain that wants it, though it is another chain's", map[string][]Interest{"a": {want("x")}, "b": {want("z")}}, nil, object("x", inChain("b")), []string{"a", "b"}},
		"Created":        {"it appeared", map[string][]Interest{"a": {want("x")}}, nil, object("x", inChain("a")), []string{"a"}},
		"Deleted":        {"it is gone", map[string][]Interest{"a": {want("x")}}, object("x", inChain("a")), nil, []string{"a"}},
		"LabelRemoved":   {"by label that looks like a deletion", map[string][]Interest{"a": {want("x")}}, object("x", inChain("a")), object("x"), []string{"a"}},
		"LabelChanged":   {"both chains", map[string][]Interest{"a": {want("y")}, "b": {want("z")}}, object("x", inChain("a")), object("x", inChain("b")), []string{"a", "b"}},
		"ByName":         {"an object without a label", map[string][]Interest{"a": {wantByName("x")}}, object("x"), object("x", generation(1)), []string{"a"}},
		"Generation":     {"the desired state changed", map[string][]Interest{"a": {want("x")}}, object("x", inChain("a"), generation(1)), object("x", inChain("a"), generation(2)), []string{"a"}},
		"StatusOnly":     {"a new resourceVersion alone, where there is a generation", map[string][]Interest{"a": {want("x")}}, object("x", inChain("a"), generation(1)), object("x", inChain("a"), generation(1), field("y", "status", "x")), nil},
		"NoGeneration":   {"without a generation every version counts", map[string][]Interest{"a": {want("x")}}, object("x", inChain("a")), object("x", inChain("a")), []string{"a"}},
		"StatusRead":     {"status changed, and is read", map[string][]Interest{"a": {wantReading("x", status)}}, object("x", inChain("a"), generation(1)), object("x", inChain("a"), generation(1), field("y", "status", "x")), []string{"a"}},
		"StatusReadSame": {"something changed that is not read", map[string][]Interest{"a": {wantReading("x", status)}}, object("x", inChain("a"), generation(1)), object("x", inChain("a"), generation(1), field("y", "spec", "x")), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			prepare := func(f *fakeServer) {
				if tc.first != nil {
					f.put(configMaps(), tc.first)
				}
			}
			bubble(t, prepare, func(t *testing.T, f *fakeServer, c *Cache, heard *notices) {
				for owner, interests := range tc.wants {
					c.Want(owner, interests...)
				}
				heard.take()
				if tc.then != nil {
					f.put(configMaps(), tc.then)
				} else {
					f.remove(configMaps(), "n", "x")
				}
				if diff := cmp.Diff(tc.want, heard.take()); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
				if tc.then != nil && len(tc.want) == 0 && len(tc.then.GetLabels()) > 0 {
					seen, _ := c.Get(id(tc.then.GetName()))
					if seen.ResourceVersion != tc.then.GetResourceVersion() {
						t.Errorf("nobody is told, but Get returns the newest version %s: got %s", tc.then.GetResourceVersion(), seen.ResourceVersion)
					}
				}
			})
		})
	}
}

func TestSyncIsNews(t *testing.T) {
	bubble(t, nil, func(t *testing.T, f *fakeServer, c *Cache, heard *notices) {
		c.Want("a", want("x"))
		if diff := cmp.Diff([]string{"a"}, heard.take()); diff != "" {
			t.Errorf("absence has no event of its own: the sync is told (-want +got):\n%s", diff)
		}
		c.Want("b", want("y"))
		if diff := cmp.Diff([]string(nil), heard.take()); diff != "" {
			t.Errorf("Get answers at once where there is a watch (-want +got):\n%s", diff)
		}
	})
}

// TestWatchesAreShared: the number of watches for the interests of several owners.
func TestWatchesAreShared(t *testing.T) {
	bubble(t, nil, func(t *testing.T, f *fakeServer, c *Cache, _ *notices) {
		var many []Interest
		for n := range 20 {
			many = append(many, want(fmt.Sprint("x", n)))
		}
		steps := []struct {
			reason string
			do     func()
			want   int
		}{
			{"one kind is one watch", func() { c.Want("a", many...) }, 1},
			{"for all owners", func() { c.Want("b", many...) }, 1},
			{"the same wish again", func() { c.Want("a", many...) }, 1},
			{"another object by name", func() { c.Want("c", wantByName("y")) }, 2},
			{"the same object by name", func() { c.Want("d", wantByName("y"), want("z")) }, 2},
			{"others want it still", func() { c.Drop("a") }, 2},
			{"the last one who wanted it by name", func() { c.Want("d", want("z")); c.Drop("c") }, 1},
			{"unknown owners", func() { c.Drop("nobody") }, 1},
			{"wanting nothing", func() { c.Want("b"); c.Want("d") }, 0},
		}
		for _, step := range steps {
			step.do()
			synctest.Wait()
			if got := f.watching(configMaps()); got != step.want {
				t.Errorf("%s: want %d open watches, got %d", step.reason, step.want, got)
			}
			if got := c.Stats().Watches; got != step.want {
				t.Errorf("%s: want %d watches in Stats, got %d", step.reason, step.want, got)
			}
		}
		if got := f.requests(configMaps()); got != 2 {
			t.Errorf("want 2 requests in all, one for each watch, got %d", got)
		}
	})
}

func TestWantBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		c, err := newCache(Options{Mapping: f.mapping, Names: names(), Notify: func(string) {}}, f)
		if err != nil {
			t.Fatal(err)
		}
		c.Want("a", want("x"))
		c.Want("b", wantByName("y"))
		c.Drop("b")
		know(t, c, Unknown, "x", "nothing runs")
		done := make(chan error)
		go func() { done <- c.Run(t.Context()) }()
		know(t, c, Absent, "x", "what was wanted before is watched")
		if got := f.watching(configMaps()); got != 1 {
			t.Errorf("what was dropped before is not watched: got %d watches", got)
		}
		if err := c.Run(t.Context()); err == nil {
			t.Error("a second Run must fail")
		}
		t.Cleanup(func() { <-done })
	})
}

// TestTrouble: the answers of the cache while a watch fails, and after that.
func TestTrouble(t *testing.T) {
	refused := func() error { return fmt.Errorf("dial: %w", syscall.ECONNREFUSED) }
	cases := map[string]struct {
		reason          string
		hurt            func(*fakeServer)
		present, absent Presence
	}{
		"Forbidden": {"the right was taken away: what was seen is still the best guess", func(f *fakeServer) {
			f.on(configMaps(), func(k *fakeKind) { k.err = forbidden() })
			f.disconnect(configMaps())
		}, Present, Unknown},
		"Unreachable": {"the server is down", func(f *fakeServer) {
			f.on(configMaps(), func(k *fakeKind) { k.err = refused() })
			f.disconnect(configMaps())
		}, Present, Unknown},
		"Silent": {"connections end without an answer, which client-go does not call an error", func(f *fakeServer) {
			f.on(configMaps(), func(k *fakeKind) { k.silent = true; k.err = nil })
			f.disconnect(configMaps())
		}, Present, Unknown},
		"KindGone": {"the kind is gone, and so are its objects", func(f *fakeServer) {
			f.on(configMaps(), func(k *fakeKind) { k.err = pathMissing(); k.unserved = true; clear(k.objects) })
			f.disconnect(configMaps())
		}, Unknown, Unknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			prepare := func(f *fakeServer) {
				f.put(configMaps(), object("there", inChain("a")))
				f.put(crds(), object("other", inChain("a")))
			}
			bubble(t, prepare, func(t *testing.T, f *fakeServer, c *Cache, heard *notices) {
				other := manifest.ID{Group: crds().Group, Kind: crds().Kind, Name: "other"}
				c.Want("a", want("there"), want("missing"))
				c.Want("b", Interest{ID: other, Version: "v1"})
				know(t, c, Present, "there", "before")
				know(t, c, Absent, "missing", "before")
				if err := c.Trouble(id("missing")); err != nil {
					t.Errorf("there is no trouble yet: %v", err)
				}
				heard.take()
				// client-go treats a watch that lasted less than a second as failed.
				time.Sleep(2 * time.Second)

				tc.hurt(f)
				if name == "Unreachable" || name == "Forbidden" {
					know(t, c, tc.absent, "missing", "an error is believed at once")
				}
				time.Sleep(30 * time.Second)
				know(t, c, tc.present, "there", tc.reason)
				know(t, c, tc.absent, "missing", tc.reason)
				if err := c.Trouble(id("missing")); err == nil {
					t.Errorf("%s: want a reason", tc.reason)
				}
				if diff := cmp.Diff([]string{"a"}, heard.take()); diff != "" {
					t.Errorf("%s: who wanted it is told, and nobody else (-want +got):\n%s", tc.reason, diff)
				}
				if got := f.watching(crds()); got != 1 {
					t.Errorf("%s: other kinds are not touched: %d watches of them", tc.reason, got)
				}

				before := f.requests(configMaps())
				time.Sleep(10 * time.Minute)
				if spent := f.requests(configMaps()) - before; spent > 130 {
					t.Errorf("%s: no hot loop: %d requests in ten minutes", tc.reason, spent)
				}
				if again := heard.take(); len(again) != 0 {
					t.Errorf("%s: trouble is told once: %v", tc.reason, again)
				}

				f.on(configMaps(), func(k *fakeKind) { k.err, k.silent, k.unserved = nil, false, false })
				f.put(configMaps(), object("there", inChain("a")))
				time.Sleep(lastRetry + lastRetry/2)
				know(t, c, Present, "there", "it recovers by itself")
				know(t, c, Absent, "missing", "it recovers by itself")
				if diff := cmp.Diff([]string{"a"}, heard.take()); diff != "" {
					t.Errorf("recovery is told (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestMappingIsAskedAgain: a kind that is served again may have another resource.
func TestMappingIsAskedAgain(t *testing.T) {
	bubble(t, nil, func(t *testing.T, f *fakeServer, c *Cache, _ *notices) {
		mappings := func() (asked int) {
			synctest.Wait()
			f.on(configMaps(), func(k *fakeKind) { asked = k.mappings })
			return asked
		}
		c.Want("a", want("x"))
		time.Sleep(time.Hour)
		f.disconnect(configMaps())
		time.Sleep(time.Hour)
		if got := mappings(); got != 1 {
			t.Errorf("a watch that is well asks once, not %d times", got)
		}
		f.on(configMaps(), func(k *fakeKind) { k.err = pathMissing() })
		f.disconnect(configMaps())
		time.Sleep(2 * firstRetry)
		if got := mappings(); got < 2 {
			t.Errorf("after a path was missing it is asked again, got %d", got)
		}
	})
}

// TestBackOffStartsOver: a watch that was healthy for a while is restarted soon.
func TestBackOffStartsOver(t *testing.T) {
	refuse := func(f *fakeServer, err error) { f.on(configMaps(), func(k *fakeKind) { k.err = err }) }
	bubble(t, func(f *fakeServer) { refuse(f, forbidden()) }, func(t *testing.T, f *fakeServer, c *Cache, _ *notices) {
		c.Want("a", want("x"))
		time.Sleep(10 * time.Minute)
		refuse(f, nil)
		time.Sleep(10 * time.Minute)
		know(t, c, Absent, "x", "it may be watched now")

		refuse(f, forbidden())
		f.disconnect(configMaps())
		know(t, c, Unknown, "x", "and now it cannot")
		refuse(f, nil)
		time.Sleep(2 * firstRetry)
		know(t, c, Absent, "x", "the first attempt after that is soon")
	})
}

func TestNothingIsBelievedAfterRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer()
		c, err := newCache(Options{Mapping: f.mapping, Names: names(), Notify: func(string) {}}, f)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		c.Want("a", want("x"))
		know(t, c, Absent, "x", "before")
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		know(t, c, Unknown, "x", "nobody watches any more")
	})
}

// TestReopening: streams end every few minutes, which is no trouble.
func TestReopening(t *testing.T) {
	bubble(t, nil, func(t *testing.T, f *fakeServer, c *Cache, heard *notices) {
		c.Want("a", want("x"))
		know(t, c, Absent, "x", "before")
		heard.take()
		time.Sleep(2 * time.Second)
		f.disconnect(configMaps())
		know(t, c, Absent, "x", "a closed stream was opened again")
		if told := heard.take(); len(told) != 0 {
			t.Errorf("nobody needs to know: %v", told)
		}
		f.put(configMaps(), object("x", inChain("a")))
		know(t, c, Present, "x", "and is the one that tells")
	})
}

func TestDecidingIsByName(t *testing.T) {
	prepare := func(f *fakeServer) { f.put(configMaps(), object("x", inChain("a"))) }
	bubble(t, prepare, func(t *testing.T, f *fakeServer, c *Cache, _ *notices) {
		c.Want("a", want("x"), wantByName("x"))
		know(t, c, Present, "x", "both see it")
		f.put(configMaps(), object("x"))
		if seen := know(t, c, Present, "x", "without its label it is seen by name"); seen.Chain != "" {
			t.Errorf("want the newest state, without a chain, got %q", seen.Chain)
		}
		f.remove(configMaps(), "n", "x")
		know(t, c, Absent, "x", "the watch by name says so")
	})
}

// TestKindAppears: a kind that is not served yet.
func TestKindAppears(t *testing.T) {
	absent := func(f *fakeServer) { f.on(configMaps(), func(k *fakeKind) { k.unserved = true }) }
	appear := func(f *fakeServer) { f.on(configMaps(), func(k *fakeKind) { k.unserved = false }) }
	bubble(t, absent, func(t *testing.T, f *fakeServer, c *Cache, heard *notices) {
		c.Want("a", want("x"))
		c.Want("b", Interest{ID: manifest.ID{Group: crds().Group, Kind: crds().Kind, Name: "y"}, Version: "v1"})
		know(t, c, Unknown, "x", "its kind is not served")
		time.Sleep(10 * time.Minute)
		know(t, c, Unknown, "x", "nor is it later")
		var asked int
		f.on(configMaps(), func(k *fakeKind) { asked = k.mappings })
		if asked > 20 {
			t.Errorf("no hot loop: asked %d times in ten minutes", asked)
		}
		if f.requests(configMaps()) != 0 {
			t.Error("what has no mapping is neither listed nor watched")
		}

		appear(f)
		crd := object("some-crd", inChain("b"))
		crd.SetNamespace("")
		f.put(crds(), crd)
		time.Sleep(2 * firstRetry)
		know(t, c, Absent, "x", "the event of a CustomResourceDefinition makes it look at once")
		heard.take()
	})
	bubble(t, absent, func(t *testing.T, f *fakeServer, c *Cache, _ *notices) {
		c.Want("a", want("x"))
		time.Sleep(10 * time.Minute)
		appear(f)
		c.Refresh()
		time.Sleep(2 * firstRetry)
		know(t, c, Absent, "x", "Refresh makes it look at once")
	})
}

func TestKicksAreNoHotLoop(t *testing.T) {
	absent := func(f *fakeServer) { f.on(configMaps(), func(k *fakeKind) { k.unserved = true }) }
	bubble(t, absent, func(t *testing.T, f *fakeServer, c *Cache, _ *notices) {
		c.Want("a", want("x"))
		for range 1000 {
			c.Refresh()
			time.Sleep(10 * time.Millisecond)
		}
		var asked int
		f.on(configMaps(), func(k *fakeKind) { asked = k.mappings })
		if asked > 12 {
			t.Errorf("1000 kicks in ten seconds made %d attempts", asked)
		}
	})
}

// TestReading: a further interest adds the fields that it reads to kept objects.
func TestReading(t *testing.T) {
	prepare := func(f *fakeServer) {
		f.put(configMaps(), object("x", inChain("a"), field("s", "status", "s"), field("d", "spec", "d"), field("e", "spec", "e")))
	}
	bubble(t, prepare, func(t *testing.T, f *fakeServer, c *Cache, heard *notices) {
		kept := func() map[string]any {
			seen := know(t, c, Present, "x", "it is there all the time")
			if seen.Object == nil {
				return nil
			}
			out := map[string]any{}
			for _, key := range []string{"status", "spec"} {
				if value, ok := seen.Object.Object[key]; ok {
					out[key] = value
				}
			}
			return out
		}
		steps := []struct {
			reason string
			reads  probe.Reads
			want   map[string]any
		}{
			{"nothing is read", probe.Reads{}, nil},
			{"status is read", probe.Reads{Status: true}, map[string]any{"status": map[string]any{"s": "s"}}},
			{"what was read is kept", probe.Reads{Fields: [][]string{{"spec", "d"}}}, map[string]any{"status": map[string]any{"s": "s"}, "spec": map[string]any{"d": "d"}}},
			{"everything is read", probe.Reads{Whole: true}, map[string]any{"status": map[string]any{"s": "s"}, "spec": map[string]any{"d": "d", "e": "e"}}},
			{"nothing more", probe.Reads{Status: true}, map[string]any{"status": map[string]any{"s": "s"}, "spec": map[string]any{"d": "d", "e": "e"}}},
		}
		for _, step := range steps {
			c.Want("a", wantReading("x", step.reads))
			if diff := cmp.Diff(step.want, kept()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.reason, diff)
			}
			if got := f.watching(configMaps()); got != 1 {
				t.Errorf("%s: the watch before is stopped: %d are open", step.reason, got)
			}
		}
		if got := f.requests(configMaps()); got != 4 {
			t.Errorf("want a new watch each time that more is read, 4 in all, got %d", got)
		}
	})
}

// TestReadingWhileItFails: a failing watch that would keep more fields does not replace the working
// watch.
func TestReadingWhileItFails(t *testing.T) {
	prepare := func(f *fakeServer) { f.put(configMaps(), object("x", inChain("a"))) }
	bubble(t, prepare, func(t *testing.T, f *fakeServer, c *Cache, _ *notices) {
		c.Want("a", want("x"), want("y"))
		know(t, c, Absent, "y", "before")
		f.on(configMaps(), func(k *fakeKind) { k.err = forbidden() })
		c.Want("a", wantReading("x", probe.Reads{Status: true}), want("y"))
		time.Sleep(time.Minute)
		know(t, c, Present, "x", "the old watch is open")
		know(t, c, Absent, "y", "the old watch is open")
		if err := c.Trouble(id("x")); err == nil {
			t.Error("want the reason why status is not there")
		}
		f.on(configMaps(), func(k *fakeKind) { k.err = nil })
		time.Sleep(2 * lastRetry)
		if seen := know(t, c, Present, "x", "after"); seen.Object == nil {
			t.Error("the new watch takes its place when it can")
		}
	})
}

// TestServerThatCannotStreamLists: an aggregated API may ignore the request to stream the initial
// list, and never mark it as complete.
func TestServerThatCannotStreamLists(t *testing.T) {
	prepare := func(f *fakeServer) {
		f.ignoresStreaming = true
		f.put(configMaps(), object("x", inChain("a")))
	}
	bubble(t, prepare, func(t *testing.T, f *fakeServer, c *Cache, _ *notices) {
		c.Want("a", want("x"))
		know(t, c, Unknown, "x", "nothing came yet")
		time.Sleep(listWithin + 2*firstRetry)
		know(t, c, Present, "x", "it is listed instead")
	})
}
