package inventory

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/index"
	"github.com/penstock-project/penstock/pkg/resolve"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/bundle"
)

type fixture struct {
	*testing.T
	*Inventory
	clock *testingclock.FakePassiveClock
	store *index.Store
	built int
}

func newFixture(t *testing.T) *fixture {
	store, err := index.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC))
	return &fixture{T: t, Inventory: New(clock), clock: clock, store: store}
}

// pkg returns a package with one bundle that provides one kind.
func pkg(name, version string) string {
	return fmt.Sprintf(`{"schema":"olm.package","name":%q}
{"schema":"olm.channel","package":%q,"name":"stable","entries":[{"name":"%s.v%s"}]}
{"schema":"olm.bundle","package":%q,"name":"%s.v%s","properties":[{"type":"olm.package","value":{"packageName":%q,"version":%q}},{"type":"olm.gvk","value":{"group":"%s.io","version":"v1","kind":"Thing"}}]}
`, name, name, name, version, name, name, version, name, version, name)
}

func (w *fixture) catalog(name string, priority int32, packages ...string) Catalog {
	w.Helper()
	w.built++
	found, err := w.store.Update(w.Context(), name, fmt.Sprintf("sha256:%064x", w.built), func(ctx context.Context, found func(*fbc.Document) error) error {
		return fbc.Read(ctx, strings.NewReader(strings.Join(packages, "")), "c", fbc.DefaultLimits(), found)
	})
	if err != nil {
		w.Fatal(err)
	}
	return Catalog{Name: name, Priority: priority, Index: found, Labels: map[string]string{"of": name}}
}

func TestSnapshot(t *testing.T) {
	w := newFixture(t)
	empty := w.Snapshot()
	if len(empty.Catalogs()) != 0 || len(empty.Packages()) != 0 {
		t.Errorf("at first there is %v", empty.Catalogs())
	}
	hub := w.catalog("hub", 0, pkg("lamp", "1.0.0"))
	w.Put(hub)
	w.Put(w.catalog("extra", 0, pkg("axe", "1.0.0")))
	before := w.Snapshot()
	if diff := cmp.Diff([]string{"axe", "lamp"}, before.Packages()); diff != "" {
		t.Error(diff)
	}
	hub.Labels["of"] = "somebody else"
	if got := before.Catalog("hub").Labels["of"]; got != "hub" {
		t.Errorf("who put a catalog in changes its labels to %q", got)
	}
	w.Remove("hub")
	w.Remove("nobody")
	if diff := cmp.Diff([]string{"axe"}, w.Snapshot().Packages()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"axe", "lamp"}, before.Packages()); diff != "" {
		t.Errorf("a snapshot changed: %s", diff)
	}
	if before.Catalog("nobody") != nil || before.Catalog("extra") == nil {
		t.Error("catalogs are not found by name")
	}
}

// TestComplete: until it is complete, an inventory does not report packages as absent.
func TestComplete(t *testing.T) {
	w := newFixture(t)
	w.Put(w.catalog("hub", 0, pkg("lamp", "1.0.0")))
	before := w.Snapshot()
	w.MarkComplete()
	w.MarkComplete()
	<-before.Outdated()
	after := w.Snapshot()
	w.Remove("hub")
	if before.Complete() || !after.Complete() || !w.Snapshot().Complete() || !after.Version().SameContent(before.Version()) {
		t.Errorf("complete before %t, after %t, later %t", before.Complete(), after.Complete(), w.Snapshot().Complete())
	}
}

// TestOutdated: a waiting reader is notified of a change, and only of a change.
func TestOutdated(t *testing.T) {
	w := newFixture(t)
	hub := w.catalog("hub", 0, pkg("lamp", "1.0.0"))
	outdated := func(of *Snapshot) bool {
		select {
		case <-of.Outdated():
			return true
		default:
			return false
		}
	}
	for name, step := range map[string]struct {
		do   func()
		want bool
	}{
		"the same again":    {func() { w.Put(hub) }, false},
		"nobody is removed": {func() { w.Remove("nobody") }, false},
		"a priority":        {func() { other := hub; other.Priority = 1; w.Put(other) }, true},
		"switched off":      {func() { other := hub; other.Unavailable = true; w.Put(other) }, true},
		"an error":          {func() { other := hub; other.Err = errors.New("gone"); w.Put(other) }, true},
		"labels":            {func() { other := hub; other.Labels = nil; w.Put(other) }, true},
		"it goes":           {func() { w.Remove("hub") }, true},
	} {
		w.Put(hub)
		before := w.Snapshot()
		step.do()
		if got := outdated(before); got != step.want {
			t.Errorf("%s: outdated %t, want %t", name, got, step.want)
		}
		if newer := w.Snapshot().Version() > before.Version(); newer != step.want {
			t.Errorf("%s: the version is higher: %t, want %t", name, newer, step.want)
		}
	}
}

// TestVersion: versions increase, even after a restart. Two processes with equal catalogs recognise
// each other's versions.
func TestVersion(t *testing.T) {
	one, other := newFixture(t), newFixture(t)
	other.clock.SetTime(one.clock.Now().Add(time.Hour))
	hub := one.catalog("hub", 0, pkg("lamp", "1.0.0"))
	one.Put(hub)
	seen := one.Snapshot()
	hub.Err = errors.New("a reason of the other one's own")
	other.Put(hub)
	there := other.Snapshot()
	if !seen.Version().SameContent(there.Version()) || other.At(seen.Version()) != there {
		t.Errorf("the same catalogs have the versions %s and %s", seen.Version(), there.Version())
	}
	if there.Version() <= seen.Version() {
		t.Errorf("an hour later the version is %s, not higher than %s", there.Version(), seen.Version())
	}
	for n := range kept {
		one.Put(one.catalog("hub", int32(n+1), pkg("lamp", "1.0.0")))
		if one.At(seen.Version()) != seen {
			t.Errorf("after %d changes a version is not found", n+1)
		}
	}
	one.Remove("hub")
	if one.At(seen.Version()) != nil {
		t.Errorf("a version is found after %d changes", kept+1)
	}
}

func TestOffers(t *testing.T) {
	w := newFixture(t)
	w.Put(w.catalog("b", 0, pkg("lamp", "1.0.0"), pkg("only", "1.0.0")))
	w.Put(w.catalog("a", 0, pkg("lamp", "2.0.0")))
	w.Put(w.catalog("low", -5, pkg("lamp", "9.0.0")))
	w.Put(w.catalog("best", 7, pkg("lamp", "0.1.0")))
	off := w.catalog("off", 99, pkg("lamp", "5.0.0"))
	off.Unavailable = true
	w.Put(off)
	w.Put(Catalog{Name: "waits"})
	var names []string
	for _, one := range w.Snapshot().Offers("lamp") {
		names = append(names, one.Catalog.Name+" "+one.Package.Latest)
	}
	if diff := cmp.Diff([]string{"best 0.1.0", "a 2.0.0", "b 1.0.0", "low 9.0.0"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"lamp", "only"}, w.Snapshot().Packages()); diff != "" {
		t.Error(diff)
	}
	if got := w.Snapshot().Offers("none"); len(got) != 0 {
		t.Errorf("a package of nobody is offered by %v", got)
	}
}

// TestChanged: Changed returns exactly the packages whose content, catalogs or priorities changed.
func TestChanged(t *testing.T) {
	w := newFixture(t)
	lamp, axe, rope := pkg("lamp", "1.0.0"), pkg("axe", "1.0.0"), pkg("rope", "1.0.0")
	hub, extra := w.catalog("hub", 0, lamp, axe), w.catalog("extra", 0, rope, axe)
	relabelled, off, raised := hub, hub, extra
	relabelled.Labels = nil
	off.Unavailable = true
	raised.Priority = 3
	failing := hub
	failing.Err = errors.New("no answer")
	for name, step := range map[string]struct {
		reason string
		put    []Catalog
		remove string
		want   []string
	}{
		"nothing":    {"both are as they were", []Catalog{hub, extra}, "", nil},
		"rebuilt":    {"another digest of the whole, and the same packages", []Catalog{w.catalog("hub", 0, axe, lamp)}, "", nil},
		"upgrade":    {"one has another content", []Catalog{w.catalog("hub", 0, pkg("lamp", "2.0.0"), axe)}, "", []string{"lamp"}},
		"one comes":  {"and the others stay", []Catalog{w.catalog("hub", 0, lamp, axe, pkg("new", "1.0.0"))}, "", []string{"new"}},
		"one goes":   {"and the others stay", []Catalog{w.catalog("hub", 0, axe)}, "", []string{"lamp"}},
		"labels":     {"selectors see other rows", []Catalog{relabelled}, "", []string{"axe", "lamp"}},
		"off":        {"its packages go", []Catalog{off}, "", []string{"axe", "lamp"}},
		"priority":   {"who counts is another one", []Catalog{raised}, "", []string{"axe", "rope"}},
		"error":      {"what could be read is still there", []Catalog{failing}, "", nil},
		"removed":    {"its packages go", nil, "extra", []string{"axe", "rope"}},
		"added":      {"its packages come", []Catalog{w.catalog("third", 0, pkg("new", "1.0.0"), lamp)}, "", []string{"lamp", "new"}},
		"unreadable": {"an index that is gone", []Catalog{{Name: "extra", Err: errors.New("gone")}}, "", []string{"axe", "rope"}},
	} {
		w.Put(hub)
		w.Put(extra)
		w.Remove("third")
		before := w.Snapshot()
		for _, one := range step.put {
			w.Put(one)
		}
		w.Remove(step.remove)
		if diff := cmp.Diff(step.want, Changed(before, w.Snapshot())); diff != "" {
			t.Errorf("%s: %s (-want +got)\n%s", name, step.reason, diff)
		}
		if diff := cmp.Diff(step.want, Changed(w.Snapshot(), before)); diff != "" {
			t.Errorf("%s, backwards: %s (-want +got)\n%s", name, step.reason, diff)
		}
	}
}

// TestNames: a package whose name cannot be the name of an object is reported and not listed.
func TestNames(t *testing.T) {
	for _, name := range []string{"lamp", "Lamp_2.x", "lämpchen", "a:b"} {
		if err := CheckName(name); err != nil {
			t.Errorf("%q is refused: it %v", name, err)
		}
	}
	hostile := []string{"", ".", "..", "a/b", "a%2fb", "a b", "a\nb", "\x1b[2J", "a\u202eb", "a\u00a0b", "a\xffb", strings.Repeat("x", 254)}
	for _, name := range hostile {
		if CheckName(name) == nil {
			t.Errorf("%q is taken", name)
		}
	}
	w := newFixture(t)
	bad := w.catalog("hub", 0, pkg("../../etc", "1.0.0"), pkg("lamp", "1.0.0"))
	w.Put(bad)
	if diff := cmp.Diff([]string{"lamp"}, w.Snapshot().Packages()); diff != "" {
		t.Error(diff)
	}
	if got := w.Snapshot().Offers("../../etc"); len(got) != 0 {
		t.Errorf("it is offered: %v", got)
	}
	if diff := cmp.Diff([]string{"../../etc"}, bad.Unlisted()); diff != "" {
		t.Error(diff)
	}
}

func TestProviders(t *testing.T) {
	w := newFixture(t)
	w.Put(w.catalog("hub", 0, pkg("lamp", "1.0.0"), pkg("axe", "1.0.0")))
	w.Put(w.catalog("better", 1, pkg("lamp", "2.0.0")))
	var got []string
	for _, one := range w.Snapshot().Providers(schema.GroupVersionKind{Group: "lamp.io", Version: "v1", Kind: "Thing"}) {
		got = append(got, one.Package.Name+" of "+one.Catalog.Name)
	}
	if diff := cmp.Diff([]string{"lamp of better", "lamp of hub"}, got); diff != "" {
		t.Error(diff)
	}
	if got := w.Snapshot().Providers(schema.GroupVersionKind{Group: "lamp.io", Version: "v2", Kind: "Thing"}); len(got) != 0 {
		t.Errorf("another version is provided by %v", got)
	}
	// A refusal for a missing kind or package names the packages that provide it.
	options := bundle.Options{Providers: func(one source.Requirement) []string {
		return w.Snapshot().ProviderNames(one.Package, one.Kind)
	}}
	for required, want := range map[string][]string{"axe": {"axe"}, "none": nil} {
		if diff := cmp.Diff(want, options.Providers(source.Requirement{Package: required})); diff != "" {
			t.Errorf("package %s: %s", required, diff)
		}
	}
	if diff := cmp.Diff([]string{"lamp"}, options.Providers(source.Requirement{Kind: schema.GroupVersionKind{Group: "lamp.io", Version: "v1", Kind: "Thing"}})); diff != "" {
		t.Error(diff)
	}
}

func TestForResolver(t *testing.T) {
	w := newFixture(t)
	w.Put(w.catalog("hub", 0, pkg("lamp", "1.0.0")))
	w.Put(w.catalog("better", 1, pkg("lamp", "0.9.0")))
	w.Put(Catalog{Name: "off", Unavailable: true})
	found, err := resolve.Resolve(resolve.Request{Package: "lamp"}, w.Snapshot().ForResolver("lamp"))
	if err != nil || found.Catalog != "better" {
		t.Fatalf("resolved %+v, %v", found, err)
	}
	w.Put(Catalog{Name: "waits"})
	if _, err := resolve.Resolve(resolve.Request{Package: "lamp"}, w.Snapshot().ForResolver("lamp")); err == nil || !strings.Contains(err.Error(), "catalog waits has not been read yet") {
		t.Errorf("a catalog that is not there yet might have a better one: %v", err)
	}
	w.Put(Catalog{Name: "waits", Err: errors.New("no such image")})
	if _, err := resolve.Resolve(resolve.Request{Package: "lamp"}, w.Snapshot().ForResolver("lamp")); err == nil || !strings.Contains(err.Error(), "no such image") {
		t.Errorf("why it is not there: %v", err)
	}
}

// TestReadersGoOn: a snapshot stays readable after its indexes were replaced and collected.
func TestReadersGoOn(t *testing.T) {
	w := newFixture(t)
	w.Put(w.catalog("hub", 0, pkg("lamp", "1.0.0")))
	snapshot := w.Snapshot()
	for range kept + 1 {
		w.Put(w.catalog("hub", 0, pkg("lamp", "2.0.0")))
	}
	if _, err := w.store.Collect(); err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	for _, one := range snapshot.ForResolver("lamp") {
		if one.Err != nil || one.Config.Bundles[0].Name != "lamp.v1.0.0" {
			t.Errorf("an old snapshot reads %+v, %v", one.Config, one.Err)
		}
	}
}

// TestConcurrent finds data races, and checks that no change is missed.
func TestConcurrent(t *testing.T) {
	w := newFixture(t)
	hub := w.catalog("hub", 0, pkg("lamp", "1.0.0"))
	const last = 50
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				at := w.Snapshot()
				at.Packages()
				if found := at.Catalog("hub"); found != nil && found.Priority == last {
					return
				}
				<-at.Outdated()
			}
		})
	}
	for n := range last {
		hub.Priority = int32(n + 1)
		w.Put(hub)
	}
	all.Wait()
}
