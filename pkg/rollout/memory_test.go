package rollout

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

func noon() time.Time { return time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC) }

func asIs(d time.Duration) time.Duration { return d }

func TestBackoff(t *testing.T) {
	var got []time.Duration
	for count := range 10 {
		got = append(got, backoff(count))
	}
	s := time.Second
	want := []time.Duration{1 * s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s, 120 * s, 120 * s, 120 * s}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRetry(t *testing.T) {
	m, ref := newMemory(), manifest.Ref{ID: manifest.ID{Name: "x"}, Digest: "1"}
	absent, first := attempt{presence: observe.Absent}, attempt{presence: observe.Present, resourceVersion: "1"}
	steps := []struct {
		reason string
		ref    manifest.Ref
		what   attempt
		want   time.Duration
	}{
		{"the first failure", ref, absent, time.Second},
		{"the same again", ref, absent, 2 * time.Second},
		{"and again", ref, absent, 4 * time.Second},
		{"the object is there now", ref, first, time.Second},
		{"the same again", ref, first, 2 * time.Second},
		{"another manifest of the object", manifest.Ref{ID: ref.ID, Digest: "2"}, first, time.Second},
		{"whose failures are counted apart", ref, first, 4 * time.Second},
	}
	for i, step := range steps {
		if got := m.retry(step.ref, step.what, Failure{}, noon(), asIs); got != step.want {
			t.Errorf("step %d, %s: wait %s, want %s", i, step.reason, got, step.want)
		}
	}
	if until := m.failed[ref].until; !until.Equal(noon().Add(4 * time.Second)) {
		t.Errorf("until %s", until)
	}
	if got := m.retry(ref, first, Failure{}, noon(), func(d time.Duration) time.Duration { return d / 2 }); got != 4*time.Second {
		t.Errorf("jitter is not applied: %s", got)
	}
}

// TestWhatIsDoneTakesNoMemory: a chain without pending writes keeps no checks in memory, and no
// space for them.
func TestWhatIsDoneTakesNoMemory(t *testing.T) {
	const chains, objects, most = 200, 50, 1 << 20
	inUse := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	refs := make([]manifest.Ref, objects)
	for i := range refs {
		refs[i] = manifest.Ref{ID: manifest.ID{Name: fmt.Sprint(i)}}
	}
	memories := make([]*memory, chains)
	before := inUse()
	for i := range memories {
		m := newMemory()
		for _, ref := range refs {
			m.passed[ref] = check{until: noon()}
		}
		for _, ref := range refs {
			m.done(ref)
		}
		memories[i] = m
	}
	if grown := inUse() - before; grown > most {
		t.Errorf("%d chains take %d bytes after %d objects of each were written, more than %d", chains, grown, objects, most)
	}
	runtime.KeepAlive(memories)
}

func TestDoneForgetsTheManifestAlone(t *testing.T) {
	m := newMemory()
	old, fresh := manifest.Ref{ID: manifest.ID{Name: "x"}, Digest: "1"}, manifest.Ref{ID: manifest.ID{Name: "x"}, Digest: "2"}
	for _, ref := range []manifest.Ref{old, fresh} {
		m.retry(ref, attempt{}, Failure{}, noon(), asIs)
		m.passed[ref] = check{}
	}
	m.hidden[old.ID], m.deleted[old.ID] = true, deletion{Precondition: targetclient.Precondition{UID: "1"}}
	m.done(old)
	if _, ok := m.failed[fresh]; !ok || len(m.failed) != 1 || len(m.passed) != 1 || len(m.hidden)+len(m.deleted) != 0 {
		t.Errorf("got %+v", m)
	}
	m.lag(fresh.ID, noon(), asIs)
	m.keep(func(ref manifest.Ref) bool { return ref != fresh }, func(manifest.ID) bool { return false })
	if len(m.failed)+len(m.passed)+len(m.overtaken) != 0 {
		t.Errorf("got %+v", m)
	}
}

func TestPatience(t *testing.T) {
	m, id := newMemory(), manifest.ID{Name: "x"}
	now := noon()
	var got []time.Duration
	for range contestAllowance + 4 {
		wait := m.repairs[id].patience(now)
		got = append(got, wait)
		now = now.Add(wait)
		m.looked(id, now)
	}
	s := time.Second
	if diff := cmp.Diff([]time.Duration{0, 0, 0, 0, 0, 4 * s, 8 * s, 16 * s, 32 * s}, got); diff != "" {
		t.Errorf("waits before each look (-want +got)\n%s", diff)
	}
	m.lost(id, "something")
	if wait := m.repairs[id].patience(now.Add(10 * s)); wait != 54*s {
		t.Errorf("ten seconds later the wait is %s", wait)
	}
	later := now.Add(contestWindow + s)
	if wait := m.repairs[id].patience(later); wait != 0 {
		t.Errorf("after a quiet time the wait is %s", wait)
	}
	m.looked(id, later)
	if r := m.repairs[id]; r.count != 1 || r.lost != "" {
		t.Errorf("and counting begins anew: %+v", r)
	}
}

// TestLag: a write with an outdated resourceVersion is repeated at once, and later at growing
// intervals.
func TestLag(t *testing.T) {
	m, id := newMemory(), manifest.ID{Name: "x"}
	var got []time.Duration
	for range overtakenAllowance + 3 {
		got = append(got, m.lag(id, noon(), asIs))
	}
	s := time.Second
	if diff := cmp.Diff([]time.Duration{0, 0, s, 2 * s, 4 * s, 8 * s}, got); diff != "" {
		t.Errorf("waits behind each pass (-want +got)\n%s", diff)
	}
	m.done(manifest.Ref{ID: id})
	if wait := m.lag(id, noon(), asIs); wait != 0 {
		t.Errorf("a write that came in time forgets them: %s", wait)
	}
}
