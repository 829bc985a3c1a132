package upgradereadiness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/lifecycle"
	"github.com/penstock-project/penstock/pkg/readiness"
)

// gone are kinds that 1.38 does not serve.
var gone = []schema.GroupVersionKind{{Group: "resource.k8s.io", Version: "v1beta1", Kind: "DeviceClass"}}

// rendering is a test setup for rendering.
type rendering struct {
	t *testing.T
	*rendered
	clock *testclock.FakeClock
	asked atomic.Int32
	// image returns the contents of an image; it may block.
	image func(ctx context.Context, wanted Wanted) (readiness.Contents, error)
}

func newRendering(t *testing.T, image func(ctx context.Context, wanted Wanted) (readiness.Contents, error)) *rendering {
	out := &rendering{t: t, clock: testclock.NewFakeClock(time.Unix(0, 0)), image: image}
	out.rendered = newRendered(func(ctx context.Context, _ string, wanted Wanted) (readiness.Contents, error) {
		out.asked.Add(1)
		return out.image(ctx, wanted)
	}, out.clock)
	return out
}

func (r *rendering) plan(target string) *plan {
	r.t.Helper()
	table, err := lifecycle.New()
	if err != nil {
		r.t.Fatal(err)
	}
	to, err := readiness.ParseTarget(target)
	if err != nil {
		r.t.Fatal(err)
	}
	judge := readiness.New(table, &clusterversion.Kubernetes{Major: 1, Minor: 37}, to)
	judge.Steps()
	return &plan{Judge: judge, user: "alice", mayRead: func(string) bool { return true }}
}

// fill renders the versions of one extension.
func (r *rendering) fill(ctx context.Context, plan *plan, images ...string) ([]readiness.Candidate, int) {
	one := &readiness.Extension{Name: "one", Revisions: []readiness.Revision{{}}}
	for i, image := range images {
		one.Statement.Next = append(one.Statement.Next, readiness.Candidate{Version: fmt.Sprintf("2.%d.0", i), Image: image})
	}
	hidden := &readiness.Extension{Name: "hidden", Statement: readiness.Statement{Next: []readiness.Candidate{{Image: "hidden"}}}}
	pending := r.rendered.fill(ctx, plan, []*readiness.Extension{one, hidden})
	if hidden.Statement.Next[0].Rendered {
		r.t.Error("an extension whose content is not for the caller is rendered")
	}
	return one.Statement.Next, pending
}

// TestFill: a package is rendered once for all users. Rendering that takes longer than a request
// continues.
func TestFill(t *testing.T) {
	free := make(chan struct{})
	r := newRendering(t, func(ctx context.Context, wanted Wanted) (readiness.Contents, error) {
		if wanted.Image == "slow@1" {
			<-free
		}
		return readiness.Contents{Kinds: gone}, ctx.Err()
	})
	for range 2 {
		if got, pending := r.fill(t.Context(), r.plan("1.38.2"), "good@1"); !got[0].Rendered || len(got[0].Contents.Kinds) != 1 || pending != 0 {
			t.Errorf("%+v, %d pending", got, pending)
		}
	}
	if n := r.asked.Load(); n != 1 {
		t.Errorf("it was rendered %d times", n)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got, pending := r.fill(ended, r.plan("1.38"), "slow@1"); got[0].Rendered || pending != 1 {
		t.Errorf("%+v, %d pending", got, pending)
	}
	close(free)
	if got, pending := r.fill(t.Context(), r.plan("1.38"), "slow@1"); !got[0].Rendered || got[0].Contents.NotLooked != "" || pending != 0 {
		t.Errorf("the request that began it has ended: %+v, %d pending", got, pending)
	}
	if got, _ := r.fill(ended, r.plan("1.38"), "slow@1"); !got[0].Rendered {
		t.Error("what is known does not need time")
	}
}

// TestKey: the contents of a bundle depend on its configuration, and not on the target.
func TestKey(t *testing.T) {
	r := newRendering(t, func(context.Context, Wanted) (readiness.Contents, error) { return readiness.Contents{}, nil })
	for i, plan := range []func(*plan){
		func(*plan) {},
		func(p *plan) { p.settings = map[string]Settings{"one": {Config: "{}"}} },
		func(p *plan) { p.settings = map[string]Settings{"one": {Namespace: "lamps"}} },
	} {
		one := r.plan("1.38")
		plan(one)
		r.fill(t.Context(), one, "a@1")
		r.fill(t.Context(), r.plan("1.39"), "b@1")
		if got := int(r.asked.Load()); got != i+2 {
			t.Errorf("plan %d: rendered %d times", i, got)
		}
	}
}

// TestCatalog: an image is pulled once for each catalog that offers it, by the rules of that
// catalog. A refused image does not hide the next.
func TestCatalog(t *testing.T) {
	r := newRendering(t, func(_ context.Context, wanted Wanted) (readiness.Contents, error) {
		if wanted.Catalog == "strict" {
			return readiness.Contents{}, errors.New("the verification policy does not allow it")
		}
		return readiness.Contents{Kinds: gone}, nil
	})
	one := &readiness.Extension{Name: "one", Revisions: []readiness.Revision{{}}, Statement: readiness.Statement{Next: []readiness.Candidate{
		{Version: "2.0.0", Catalog: "strict", Image: "a@1"}, {Version: "2.0.0", Catalog: "hub", Image: "a@1"},
	}}}
	if pending := r.rendered.fill(t.Context(), r.plan("1.38"), []*readiness.Extension{one}); pending != 0 || r.asked.Load() != 2 {
		t.Errorf("%d pending, %d rendered", pending, r.asked.Load())
	}
	if next := one.Statement.Next; !strings.Contains(next[0].Contents.NotLooked, "does not allow it") || len(next[1].Contents.Kinds) != 1 {
		t.Errorf("found %+v", next)
	}
}

// TestKept: contents are cached for an hour. Failures and images without a digest are cached for at
// most an hour, and at most a minute after the last request. A request that got no place tries
// again.
func TestKept(t *testing.T) {
	r := newRendering(t, func(_ context.Context, wanted Wanted) (readiness.Contents, error) {
		switch wanted.Image {
		case "broken@1":
			return readiness.Contents{}, errors.New("secret value")
		case "busy@1":
			return readiness.Contents{}, fmt.Errorf("waiting: %w", ErrBusy)
		}
		return readiness.Contents{}, nil
	})
	type ask struct {
		after time.Duration
		again bool
	}
	used := []ask{{0, true}, {unusedKept - 1, false}, {unusedKept - 1, false}, {unusedKept, true}}
	for range kept / (unusedKept - 1) {
		used = append(used, ask{unusedKept - 1, false})
	}
	used = append(used, ask{unusedKept - 1, true})
	for _, tc := range []struct {
		image   string
		asks    []ask
		pending int
	}{
		{"good@1", []ask{{0, true}, {kept - 1, false}, {1, true}}, 0},
		{"tag", used, 0},
		{"broken@1", used, 0},
		{"busy@1", []ask{{0, true}, {0, true}}, 1},
	} {
		for i, ask := range tc.asks {
			before := r.asked.Load()
			r.clock.Step(ask.after)
			if _, pending := r.fill(t.Context(), r.plan("1.38"), tc.image); pending != tc.pending {
				t.Errorf("%s: %d pending", tc.image, pending)
			}
			if again := r.asked.Load() > before; again != ask.again {
				t.Errorf("%s, question %d after %s: rendered again: %t", tc.image, i, ask.after, again)
			}
		}
	}
	r.clock.Step(kept)
	if n := len(r.known); n != 0 {
		t.Errorf("%d packages are kept while nobody asks", n)
	}
}

// TestNotPulled: an unreachable registry is asked once per extension, and the answer completes. A
// version that cannot be rendered does not hide later versions.
func TestNotPulled(t *testing.T) {
	r := newRendering(t, func(_ context.Context, wanted Wanted) (readiness.Contents, error) {
		if strings.HasPrefix(wanted.Image, "away") {
			return readiness.Contents{}, fmt.Errorf("%w: nobody answers", ErrNotPulled)
		}
		return readiness.Contents{}, errors.New("the values are wrong")
	})
	if got, pending := r.fill(t.Context(), r.plan("1.38"), "away0@1", "away1@1"); r.asked.Load() != 1 || pending != 0 || !strings.Contains(got[0].Contents.NotLooked, "nobody answers") || got[1].Rendered {
		t.Errorf("%d pulled, %d pending: %+v", r.asked.Load(), pending, got)
	}
	if got, pending := r.fill(t.Context(), r.plan("1.38"), "wrong0@1", "wrong1@1"); r.asked.Load() != 3 || pending != 0 || !got[1].Rendered {
		t.Errorf("%d pulled, %d pending: %+v", r.asked.Load(), pending, got)
	}
}

// TestReasons: an error may contain text of the configuration, so only users who may get the
// configuration see it.
func TestReasons(t *testing.T) {
	r := newRendering(t, func(context.Context, Wanted) (readiness.Contents, error) {
		return readiness.Contents{}, errors.New("value s3cret is wrong")
	})
	for _, may := range []bool{true, false} {
		plan := r.plan("1.38")
		plan.mayRead = func(name string) bool { return may && name == "one" }
		got, _ := r.fill(t.Context(), plan, "broken@1")
		if why := got[0].Contents.NotLooked; why == "" || strings.Contains(why, "s3cret") != may {
			t.Errorf("may read %t: %q", may, why)
		}
	}
}

// TestLowest: versions of an extension are rendered until one solves the problem, up to a limit.
func TestLowest(t *testing.T) {
	r := newRendering(t, func(_ context.Context, wanted Wanted) (readiness.Contents, error) {
		if wanted.Image == "good@1" {
			return readiness.Contents{}, nil
		}
		return readiness.Contents{Kinds: gone}, nil
	})
	if got, _ := r.fill(t.Context(), r.plan("1.38"), "a@1", "b@1", "good@1", "d@1"); r.asked.Load() != 3 || !got[2].Rendered || got[3].Rendered {
		t.Errorf("%d rendered: %+v", r.asked.Load(), got)
	}
	var many []string
	for i := range mostCandidates + 2 {
		many = append(many, fmt.Sprintf("many%d@1", i))
	}
	if _, pending := r.fill(t.Context(), r.plan("1.38"), many...); r.asked.Load() != 3+mostCandidates || pending != 0 {
		t.Errorf("%d rendered, %d pending", r.asked.Load(), pending)
	}
	plan := r.plan("1.38")
	plan.started.Store(mostPlanned)
	if got, pending := r.fill(t.Context(), plan, "other@1"); !strings.Contains(got[0].Contents.NotLooked, "ask for one extension") || pending != 0 {
		t.Errorf("%+v, %d pending", got, pending)
	}
}

// TestForget: the number of cached packages is bounded. The least recently used packages are
// removed first.
func TestForget(t *testing.T) {
	r := newRendering(t, func(context.Context, Wanted) (readiness.Contents, error) { return readiness.Contents{}, nil })
	r.most = 8
	for i := range r.most + 1 {
		r.clock.Step(time.Millisecond)
		if _, pending := r.fill(t.Context(), r.plan("1.38"), fmt.Sprintf("a%d@1", i)); pending != 0 {
			t.Fatal(i)
		}
		r.fill(t.Context(), r.plan("1.38"), "a0@1")
	}
	if n := int(r.asked.Load()); n != r.most+1 || len(r.known) > r.most {
		t.Errorf("%d rendered, %d kept", n, len(r.known))
	}
}
