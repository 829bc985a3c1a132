package graph

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

const catalog = `
{"schema":"olm.package","name":"p","defaultChannel":"fast"}
{"schema":"olm.channel","package":"p","name":"stable","entries":[{"name":"p.v1.0.0","replaces":"p.v0.9.0"},{"name":"p.v1.2.0","replaces":"p.v1.0.0","skips":["p.v1.1.0"]}]}
{"schema":"olm.channel","package":"p","name":"fast","entries":[{"name":"p.v1.1.0","replaces":"p.v1.0.0"},{"name":"p.v1.2.0","skipRange":"<1.2.0"},{"name":"p.v9"}]}
{"schema":"olm.bundle","package":"p","name":"p.v1.0.0","image":"quay.io/p:1.0","properties":[{"type":"olm.package","value":{"version":"1.0.0"}}]}
{"schema":"olm.bundle","package":"p","name":"p.v1.1.0","properties":[{"type":"olm.package","value":{"version":"1.1.0"}},{"type":"olm.gvk.required","value":{"group":"a.io","version":"v1","kind":"A"}}]}
{"schema":"olm.bundle","package":"p","name":"p.v1.2.0","properties":[{"type":"olm.package","value":{"version":"1.2.0"}},{"type":"olm.csv.metadata","value":{"apiServiceDefinitions":{"owned":[{"name":"x"}]}}}]}
{"schema":"olm.bundle","package":"p","name":"p.v2.0.0","properties":[{"type":"olm.package","value":{"version":"2.0.0"}}]}
{"schema":"olm.bundle","package":"p","name":"p.odd","properties":[{"type":"olm.package","value":{"version":"odd"}}]}
{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.bundle","name":"p.v1.1.0"},"message":"broken"}]}
`

func load(t *testing.T) *fbc.Config {
	t.Helper()
	config, err := fbc.Load(t.Context(), strings.NewReader(catalog), "c", fbc.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return config.Package("p")
}

// TestPathMemory: the memory for an upgrade path grows with the number of bundles, and not with the
// number of upgrades. Each bundle may skip all lower ones.
func TestPathMemory(t *testing.T) {
	taken := func(bundles int) uint64 {
		config := &fbc.Config{Channels: []fbc.Channel{{Name: "stable"}}}
		for i := range bundles + 1 {
			name := fmt.Sprintf("1.%d.0", i)
			config.Bundles = append(config.Bundles, fbc.Bundle{Name: name, Properties: []fbc.Property{{Type: fbc.PropertyPackage, Value: []byte(`{"version":"` + name + `"}`)}}})
			if i < bundles { // no upgrade leads to the last bundle
				config.Channels[0].Entries = append(config.Channels[0].Entries, fbc.Entry{Name: name, SkipRange: "<" + name})
			}
		}
		drawn := New(config, nil)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if path := drawn.Path(Installed{Name: "1.0.0", Version: drawn.Node("1.0.0").Version}, config.Bundles[bundles].Name); path != nil {
			t.Errorf("a path leads to a bundle that is in no channel: %v", path)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	few, many := taken(100), taken(400)
	if many > 8*few {
		t.Errorf("a path takes %d bytes with 100 bundles, and %d with 400", few, many)
	}
}

func TestVersions(t *testing.T) {
	want := []Version{
		{Bundle: "p.v2.0.0", Version: "2.0.0"},
		{Bundle: "p.v1.2.0", Version: "1.2.0", Channels: []string{"fast", "stable"}, Replaces: []string{"1.0.0"}, Skips: []string{"1.1.0"}, SkipRanges: []string{"<1.2.0"}, Unsupported: "provides an aggregated API"},
		{Bundle: "p.v1.1.0", Version: "1.1.0", Channels: []string{"fast"}, Replaces: []string{"1.0.0"}, Deprecated: true, Message: "broken", Unsupported: "has a dependency: kind A of a.io/v1"},
		{Bundle: "p.v1.0.0", Version: "1.0.0", Channels: []string{"stable"}, Replaces: []string{"p.v0.9.0"}, Image: "quay.io/p:1.0"},
		{Bundle: "p.odd"},
	}
	if diff := cmp.Diff(want, New(load(t), nil).Versions()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var names []string
	for _, one := range New(load(t), []string{"stable"}).Versions() {
		names = append(names, one.Version)
	}
	if diff := cmp.Diff([]string{"1.2.0", "1.0.0"}, names); diff != "" {
		t.Errorf("one channel: (-want +got)\n%s", diff)
	}
}

func TestText(t *testing.T) {
	var b strings.Builder
	if err := New(load(t), nil).Text(&b, "p.v1.1.0"); err != nil {
		t.Fatal(err)
	}
	want := `channel fast (default): 3 bundles
  1.2.0  skips the range <1.2.0
* 1.1.0  replaces 1.0.0; deprecated: broken
  p.v9   is not in the catalog

channel stable: 2 bundles
  1.2.0  replaces 1.0.0; skips 1.1.0
  1.0.0  replaces p.v0.9.0
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestPathOfBest: if two paths have the same length, the path with the better version is chosen.
func TestPathOfBest(t *testing.T) {
	config, err := fbc.Load(t.Context(), strings.NewReader(`
{"schema":"olm.channel","package":"p","name":"c","entries":[{"name":"b","replaces":"a"},{"name":"c","replaces":"a"},{"name":"d","replaces":"a"},{"name":"e","replaces":"b","skips":["c","d"]}]}
{"schema":"olm.bundle","package":"p","name":"b","properties":[{"type":"olm.package","value":{"version":"1.1.0"}}]}
{"schema":"olm.bundle","package":"p","name":"c","properties":[{"type":"olm.package","value":{"version":"1.2.0"}}]}
{"schema":"olm.bundle","package":"p","name":"d","properties":[{"type":"olm.package","value":{"version":"1.3.0"}}]}
{"schema":"olm.bundle","package":"p","name":"e","properties":[{"type":"olm.package","value":{"version":"2.0.0"}}]}
{"schema":"olm.deprecations","package":"p","entries":[{"reference":{"schema":"olm.bundle","name":"d"}}]}`), "c", fbc.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	g := New(config.Package("p"), nil)
	if got := g.PathText(g.Path(Installed{Name: "a"}, "e")); got != "1.2.0, 2.0.0" {
		t.Errorf("path is %s", got)
	}
}

// TestPaths: Paths returns the same paths as Path for each bundle.
func TestPaths(t *testing.T) {
	g := New(load(t), nil)
	for _, from := range []Installed{{Name: "p.v0.9.0"}, {Name: "p.v1.0.0", Version: g.Node("p.v1.0.0").Version}, {Name: "p.v2.0.0", Version: g.Node("p.v2.0.0").Version}} {
		paths := g.Paths(from)
		for _, node := range g.Nodes() {
			if diff := cmp.Diff(g.Path(from, node.Bundle.Name), paths.To(node.Bundle.Name)); diff != "" {
				t.Errorf("from %s to %s: (-Path +Paths)\n%s", from.Name, node.Bundle.Name, diff)
			}
		}
	}
}

func TestEntries(t *testing.T) {
	want := []Entry{
		{Channel: "fast", Bundle: "p.v1.2.0", UpgradeOf: "skips the range <1.2.0"},
		{Channel: "fast", Bundle: "p.v1.1.0", UpgradeOf: "replaces 1.0.0"},
		{Channel: "fast", Bundle: "p.v9"},
		{Channel: "stable", Bundle: "p.v1.2.0", UpgradeOf: "replaces 1.0.0; skips 1.1.0"},
		{Channel: "stable", Bundle: "p.v1.0.0", UpgradeOf: "replaces p.v0.9.0"},
	}
	if diff := cmp.Diff(want, New(load(t), nil).Entries()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestUpgradesBound: a list of too many upgrades is truncated, and the remaining ones are counted.
func TestUpgradesBound(t *testing.T) {
	g := New(load(t), nil)
	all, more := g.Upgrades(100)
	if more != 0 || len(all) < 4 {
		t.Fatalf("%d upgrades and %d more", len(all), more)
	}
	some, more := g.Upgrades(3)
	if diff := cmp.Diff(all[:3], some); diff != "" || more != len(all)-3 {
		t.Errorf("%d more: %s", more, diff)
	}
	if g.Cost() < len(all) {
		t.Errorf("it costs %d, and has %d upgrades", g.Cost(), len(all))
	}
}
