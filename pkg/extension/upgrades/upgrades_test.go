package upgrades

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/resolve"
)

// catalog returns a catalog with versions of package p, written as "channel: version > replaced".
// "!version" deprecates a version.
func catalog(name string, priority int32, lines ...string) resolve.Catalog {
	config := &fbc.Config{Packages: []fbc.Package{{Name: "p", DefaultChannel: "stable"}}}
	bundles, channels := map[string]int{}, map[string]int{}
	for _, line := range lines {
		if version, ok := strings.CutPrefix(line, "!"); ok {
			config.Deprecations = append(config.Deprecations, fbc.Deprecations{Package: "p", Entries: []fbc.Deprecation{
				{Reference: fbc.Reference{Schema: fbc.SchemaBundle, Name: "p.v" + version}, Message: "it was withdrawn"}}})
			continue
		}
		channel, rest, _ := strings.Cut(line, ": ")
		version, replaced, _ := strings.Cut(rest, " > ")
		if _, known := bundles[version]; !known {
			bundles[version] = len(config.Bundles)
			config.Bundles = append(config.Bundles, fbc.Bundle{Name: "p.v" + version, Package: "p", Properties: []fbc.Property{
				{Type: fbc.PropertyPackage, Value: []byte(fmt.Sprintf(`{"packageName":"p","version":%q}`, version))}}})
		}
		if _, known := channels[channel]; !known {
			channels[channel] = len(config.Channels)
			config.Channels = append(config.Channels, fbc.Channel{Name: channel, Package: "p"})
		}
		entry := fbc.Entry{Name: "p.v" + version}
		if replaced != "" {
			entry.Replaces = "p.v" + replaced
		}
		at := &config.Channels[channels[channel]]
		at.Entries = append(at.Entries, entry)
	}
	return resolve.Catalog{Name: name, Labels: map[string]string{"name": name}, Priority: priority, Config: config}
}

func has(version string) *resolve.Installed {
	return &resolve.Installed{Name: "p.v" + version, Version: version}
}

func TestOf(t *testing.T) {
	path := []string{"stable: 1.0.0", "stable: 1.1.0 > 1.0.0", "stable: 1.2.0 > 1.1.0", "stable: 2.0.0 > 1.2.0", "fast: 3.0.0 > 2.0.0"}
	for name, c := range map[string]struct {
		reason   string
		request  resolve.Request
		catalogs []resolve.Catalog
		want     Upgrades
	}{
		"a step at a time": {
			"what an upgrade does not lead to in one step is told with the way there",
			resolve.Request{Installed: has("1.0.0"), Channels: []string{"stable"}}, []resolve.Catalog{catalog("a", 0, path...)},
			Upgrades{Installed: "1.0.0", Allowed: "1.1.0", AllowedChannel: "stable", AllowedCatalog: "a", Newest: "2.0.0", Blocked: []Blocked{
				{"3.0.0", "a", Channel, "is in channel fast"},
				{"2.0.0", "a", NotSuccessor, "is no successor of 1.0.0: it replaces 1.2.0; go to 1.1.0, 1.2.0 first"},
				{"1.2.0", "a", NotSuccessor, "is no successor of 1.0.0: it replaces 1.1.0; go to 1.1.0 first"},
			}},
		},
		"pinned": {
			"a range keeps the rest out, the installed version is the allowed one",
			resolve.Request{Installed: has("1.1.0"), Version: "1.1.x"}, []resolve.Catalog{catalog("a", 0, path[:3]...)},
			Upgrades{Installed: "1.1.0", Allowed: "1.1.0", AllowedChannel: "stable", AllowedCatalog: "a", Newest: "1.2.0", Blocked: []Blocked{
				{"1.2.0", "a", Range, "is not in the range 1.1.x"},
			}},
		},
		"nothing is newer": {
			"the newest is installed",
			resolve.Request{Installed: has("3.0.0")}, []resolve.Catalog{catalog("a", 0, path...)},
			Upgrades{Installed: "3.0.0", Allowed: "3.0.0", AllowedChannel: "fast", AllowedCatalog: "a", Newest: "3.0.0"},
		},
		"self-certified": {
			"without upgrade constraints the highest comes",
			resolve.Request{Installed: has("1.0.0"), SelfCertified: true}, []resolve.Catalog{catalog("a", 0, path...)},
			Upgrades{Installed: "1.0.0", Allowed: "3.0.0", AllowedChannel: "fast", AllowedCatalog: "a", Newest: "3.0.0"},
		},
		"what is between does not wait": {
			"a version below the allowed one is passed by, and not blocked",
			resolve.Request{Installed: has("1.0.0")}, []resolve.Catalog{catalog("a", 0, "stable: 1.0.0", "stable: 1.1.0 > 1.0.0", "fast: 1.2.0 > 1.0.0")},
			Upgrades{Installed: "1.0.0", Allowed: "1.2.0", AllowedChannel: "fast", AllowedCatalog: "a", Newest: "1.2.0"},
		},
		"deprecated": {
			"the only newer one is deprecated: the extension stays",
			resolve.Request{Installed: has("1.0.0")}, []resolve.Catalog{catalog("a", 0, "stable: 1.0.0", "stable: 1.1.0 > 1.0.0", "!1.1.0")},
			Upgrades{Installed: "1.0.0", Allowed: "1.0.0", AllowedChannel: "stable", AllowedCatalog: "a", Newest: "1.1.0", Blocked: []Blocked{
				{"1.1.0", "a", Deprecated, "is deprecated: it was withdrawn"},
			}},
		},
		"priority": {
			"a catalog of higher priority wins against a higher version",
			resolve.Request{Installed: has("1.0.0")}, []resolve.Catalog{catalog("a", 1, path[:2]...), catalog("b", 0, "stable: 1.5.0 > 1.0.0")},
			Upgrades{Installed: "1.0.0", Allowed: "1.1.0", AllowedChannel: "stable", AllowedCatalog: "a", Newest: "1.5.0", Blocked: []Blocked{
				{"1.5.0", "b", Priority, "is in a catalog of lower priority"},
			}},
		},
		"tie": {
			"two catalogs of one priority: nothing comes before somebody says which",
			resolve.Request{Installed: has("1.0.0")}, []resolve.Catalog{catalog("a", 0, path[:2]...), catalog("b", 0, "stable: 1.5.0 > 1.0.0")},
			Upgrades{Installed: "1.0.0", Newest: "1.5.0", None: "a (priority 0) has 1.1.0, b (priority 0) has 1.5.0: give one of the catalogs a higher priority, or name one by its labels in selector",
				Blocked: []Blocked{
					{"1.5.0", "b", Tie, "a (priority 0) has 1.1.0, b (priority 0) has 1.5.0: give one of the catalogs a higher priority, or name one by its labels in selector"},
					{"1.1.0", "a", Tie, "a (priority 0) has 1.1.0, b (priority 0) has 1.5.0: give one of the catalogs a higher priority, or name one by its labels in selector"},
				}},
		},
		"another catalog": {
			"what only a catalog has that is not chosen is told",
			resolve.Request{Installed: has("1.0.0"), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "a"}}},
			[]resolve.Catalog{catalog("a", 0, path[:2]...), catalog("b", 9, "stable: 1.1.0 > 1.0.0", "stable: 1.5.0 > 1.1.0")},
			Upgrades{Installed: "1.0.0", Allowed: "1.1.0", AllowedChannel: "stable", AllowedCatalog: "a", Newest: "1.1.0", Blocked: []Blocked{
				{"1.5.0", "b", OtherCatalog, "only catalog b has it, and selector does not choose that catalog"},
			}},
		},
		"unreadable": {
			"what was chosen cannot be installed, and the next best is never taken",
			resolve.Request{}, []resolve.Catalog{catalog("a", 0, "stable: one")},
			Upgrades{None: `error getting resolved bundle version for bundle "p.vone": No Major.Minor.Patch elements found`},
		},
		"nothing is installed": {
			"above what would be installed there may be more",
			resolve.Request{Version: "<2"}, []resolve.Catalog{catalog("a", 0, path...)},
			Upgrades{Allowed: "1.2.0", AllowedChannel: "stable", AllowedCatalog: "a", Newest: "3.0.0", Blocked: []Blocked{
				{"3.0.0", "a", Range, "is not in the range <2"}, {"2.0.0", "a", Range, "is not in the range <2"},
			}},
		},
		"the catalog does not have it any more": {
			"what is installed is not in doubt, and that nothing leads on is said",
			resolve.Request{Installed: has("1.0.0")}, []resolve.Catalog{catalog("a", 0, "stable: 0.9.0")},
			Upgrades{Installed: "1.0.0", Newest: "0.9.0", None: "0.9.0 exists in channel stable but is no successor of 1.0.0: it neither replaces nor skips any version; it is lower, and only upgradeConstraintPolicy SelfCertified allows a downgrade"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.request.Package = "p"
			got, err := Of(c.request, c.catalogs)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, *got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", c.reason, diff)
			}
			chosen, _ := resolve.Resolve(c.request, c.catalogs)
			if (chosen != nil) != (got.Allowed != "") || chosen != nil && chosen.Version.String() != got.Allowed {
				t.Errorf("the resolver chooses %v", chosen)
			}
		})
	}
}

// TestBounds: the result for a package with a thousand versions is limited.
func TestBounds(t *testing.T) {
	lines := []string{"stable: 1.0.0"}
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf("stable: 2.0.%d", i))
	}
	got, err := Of(resolve.Request{Package: "p", Installed: has("1.0.0")}, []resolve.Catalog{catalog("a", 0, lines...)})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Blocked) != MaxBlocked || got.BlockedMore != 990 || got.Blocked[0].Version != "2.0.999" || !got.Available() || got.Comes() {
		t.Errorf("%d blocked and %d more, the first %v", len(got.Blocked), got.BlockedMore, got.Blocked[0])
	}
}

// TestUnknown: unreadable data cause an error, and are never reported as "there is none".
func TestUnknown(t *testing.T) {
	broken := catalog("a", 0, "stable: 1.0.0")
	broken.Err = fmt.Errorf("the disk is gone")
	for name, request := range map[string]resolve.Request{
		"a catalog": {}, "the range": {Version: "newest"}, "the installed version": {Installed: &resolve.Installed{Name: "p", Version: "x"}},
	} {
		catalogs := []resolve.Catalog{broken}
		if name != "a catalog" {
			catalogs = []resolve.Catalog{catalog("a", 0, "stable: 1.0.0")}
		}
		if got, err := Of(request, catalogs); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
