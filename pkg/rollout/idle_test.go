package rollout

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// still is a cluster without changes. It answers from a map, so that Get costs as little as with a
// real cache (see observe.BenchmarkGet).
type still struct {
	*model
	seen map[manifest.ID]observe.Observation
}

func (s *still) Get(id manifest.ID) (observe.Observation, observe.Presence) {
	seen, found := s.seen[id]
	if !found {
		return observe.Observation{ID: id}, observe.Absent
	}
	return seen, observe.Present
}

func (s *still) Want(string, ...observe.Interest) {}

// idleSaga returns a chain with two phases that is rolled out completely, and whose engine has had
// idle passes.
func idleSaga(t testing.TB, objects int) *saga {
	t.Helper()
	s := newSaga()
	var config, deploy []string
	for i := range objects / 2 {
		config = append(config, fmt.Sprintf("ConfigMap a/settings-%d=1,more", i))
		deploy = append(deploy, fmt.Sprintf("Deployment.apps a/server-%d=1,more", i))
	}
	s.roll(t, s.revision(1).phase("config", config...).phase("deploy", deploy...))
	cluster := &still{model: s.model, seen: map[manifest.ID]observe.Observation{}}
	for id := range s.objects {
		if seen, presence := s.Get(id); presence == observe.Present {
			cluster.seen[id] = seen
		}
	}
	s.engine = New(Options{Writer: s.model, Reader: s.model, Observer: cluster, Names: testNames(), Clock: s.clock, Parallel: 1})
	s.spent()
	for range 2 {
		if _, err := s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if writes, reads := s.spent(); len(writes)+len(reads) > 0 {
		t.Fatalf("the chain is not idle: %v %v", writes, reads)
	}
	return s
}

// TestIdlePassMakesLittleGarbage: every event of an object starts a pass over its chain, so the
// garbage of passes without work is the cost of an idle process.
func TestIdlePassMakesLittleGarbage(t *testing.T) {
	const objects, passes, most = 60, 50, 1024
	s := idleSaga(t, objects)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range passes {
		if _, err := s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	each := (after.TotalAlloc - before.TotalAlloc) / passes / objects
	t.Logf("an idle pass over %d objects makes %d bytes of garbage for each, in %d pieces for all",
		objects, each, (after.Mallocs-before.Mallocs)/passes)
	if each > most {
		t.Errorf("an idle pass makes %d bytes of garbage for each object, want %d at most", each, most)
	}
}

// BenchmarkIdlePass measures a pass over an unchanged chain. The target is 10 µs per object
// (ns/object).
func BenchmarkIdlePass(b *testing.B) {
	for _, objects := range []int{12, 60, 1000} {
		b.Run(fmt.Sprint(objects), func(b *testing.B) {
			s := idleSaga(b, objects)
			work := Work{Owner: "argocd", Layers: s.layers, Inventory: s.stored, Bodies: s, Orphan: s.orphan, Save: s.save}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.engine.Reconcile(context.Background(), work); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*objects), "ns/object")
		})
	}
}

// TestRestingObjectIsNotDoomed: a pass may change the inventory without a write to the cluster.
// Here it clears the mark that an object may be deleted.
func TestRestingObjectIsNotDoomed(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("config", "ConfigMap a/x=1"))
	id := refOf("ConfigMap a/x").ID
	entry := s.stored.Entries[id]
	entry.Doomed = true
	s.stored.Entries[id] = entry
	if _, err := s.pass(); err != nil {
		t.Fatal(err)
	}
	if s.stored.Entries[id].Doomed {
		t.Error("what a layer wants may still go")
	}
}
