package order

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/extension"
)

// extensions returns installed and available extensions, by name, with their requirements.
func extensions(t *testing.T, requires map[string]string) (map[string]*Extension, Find, Requires) {
	t.Helper()
	all := map[string]*Extension{}
	for name, value := range requires {
		all[name] = &Extension{Name: name, Installed: true, Available: true, Version: "1.5.0"}
		if value != "" {
			parsed, err := extension.ParseRequires(value)
			if err != nil {
				t.Fatal(err)
			}
			all[name].Requires = parsed
		}
	}
	find := func(name string) *Extension { return all[name] }
	return all, find, func(name string) []extension.Requirement {
		if found := find(name); found != nil {
			return found.Requires
		}
		return nil
	}
}

func everything(string) bool { return true }

// TestHidden: about a hidden extension, a message only reports that the requirement is not met.
func TestHidden(t *testing.T) {
	all, find, requires := extensions(t, map[string]string{"a": "b>=2, c, d", "b": "", "c": "a", "other": "a<1"})
	all["c"].Installed = false
	nothing := func(string) bool { return false }
	said := map[string]bool{}
	for range 2 {
		said[Unmet(*all["a"], find, requires, nothing)] = true
		all["b"].Version, all["b"].Available, all["c"] = "1.0.0", false, nil
	}
	if len(said) != 1 {
		t.Errorf("what others are makes a difference: %v", said)
	}
	if got := Breaks(*all["a"], "1.0.0", []Extension{*all["other"]}, "", nothing); strings.Contains(got, "other") || !strings.HasPrefix(got, "1 installed extensions do not allow 1.0.0; to continue") {
		t.Errorf("it says %q", got)
	}
}

// TestUnmet: every required extension must exist in the same cluster, be installed in the range,
// and be available.
func TestUnmet(t *testing.T) {
	for name, tc := range map[string]struct {
		requires string
		change   func(all map[string]*Extension)
		want     string
	}{
		"Met":              {"b, c>=1.5", nil, ""},
		"Absent":           {"z", nil, "it requires z, and there is no ClusterExtension z: create it"},
		"Range":            {"b>=2", nil, "it requires b>=2, and ClusterExtension b has 1.5.0"},
		"TwoConditions":    {"b>=1 <1.5", nil, "it requires b>=1 <1.5, and ClusterExtension b has 1.5.0"},
		"NotInstalled":     {"b", func(all map[string]*Extension) { all["b"].Installed = false }, "it requires b, and ClusterExtension b is not installed yet"},
		"NotAvailable":     {"b", func(all map[string]*Extension) { all["b"].Available = false }, "it requires b, and ClusterExtension b is not available now"},
		"AnotherTarget":    {"b", func(all map[string]*Extension) { all["b"].Target = "far" }, "it requires b, and ClusterExtension b is rolled out into another cluster"},
		"SameTarget":       {"b", func(all map[string]*Extension) { all["a"].Target, all["b"].Target = "far", "far" }, ""},
		"VersionUnknown":   {"b>=1", func(all map[string]*Extension) { all["b"].Version = "" }, "it requires b>=1, and the version of ClusterExtension b is not known"},
		"AnyUnknown":       {"b", func(all map[string]*Extension) { all["b"].Version = "" }, ""},
		"TwoMissing":       {"y, z", nil, "it requires y, and there is no ClusterExtension y: create it; z, and there is no ClusterExtension z: create it"},
		"MetCycle":         {"back", nil, ""},
		"CycleThatWaits":   {"back", func(all map[string]*Extension) { all["back"].Installed = false }, "it requires back, and ClusterExtension back is not installed yet; a, back require each other, so that none begins: change annotation penstock.dev/requires of one"},
		"CycleElsewhere":   {"ring", func(all map[string]*Extension) { all["ring"].Installed = false }, "it requires ring, and ClusterExtension ring is not installed yet"},
		"UnavailableRange": {"b<1", func(all map[string]*Extension) { all["b"].Available = false }, "it requires b<1, and ClusterExtension b has 1.5.0"},
	} {
		t.Run(name, func(t *testing.T) {
			all, find, requires := extensions(t, map[string]string{"a": tc.requires, "b": "", "c": "", "back": "c, a", "ring": "gnir", "gnir": "ring"})
			if tc.change != nil {
				tc.change(all)
			}
			if got := Unmet(*all["a"], find, requires, everything); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestCycle: cycles of any length are found. A diamond or a chain is not a cycle.
func TestCycle(t *testing.T) {
	ring := map[string]string{"end": "", "diamond": "left, right", "left": "end", "right": "end"}
	const length = 1000
	for i := range length {
		ring[fmt.Sprint("in-", i)] = fmt.Sprint("in-", (i+1)%length)
		ring[fmt.Sprint("chain-", i)] = fmt.Sprint("chain-", i+1)
	}
	all, _, requires := extensions(t, ring)
	for name, want := range map[string]int{"in-0": length, "in-7": length, "chain-0": 0, "diamond": 0, "end": 0} {
		cycle := Cycle(name, all[name].Requires, requires, 0)
		if len(cycle) != want || want > 0 && cycle[0] != name {
			t.Errorf("%s: a cycle of %d, want %d", name, len(cycle), want)
		}
	}
	asked := 0
	Unmet(*all["chain-0"], func(string) *Extension { return nil }, func(name string) []extension.Requirement { asked++; return requires(name) }, everything)
	if asked > maxLooked {
		t.Errorf("the pass of an extension that waits looks at %d others of a chain, want at most %d", asked, maxLooked)
	}
	itself, _ := extension.ParseRequires("itself")
	if cycle := Cycle("itself", itself, requires, 0); len(cycle) != 1 {
		t.Errorf("an extension that requires itself: %v", cycle)
	}
}

// TestBreaks: only extensions that are installed in the same cluster and do not allow the version
// count. An acknowledgement is valid for these extensions and this version.
func TestBreaks(t *testing.T) {
	all, _, _ := extensions(t, map[string]string{"a": "", "low": "a<2", "any": "a", "other": "b"})
	far := Extension{Name: "far", Target: "far", Installed: true, Requires: all["low"].Requires}
	coming := Extension{Name: "coming", Requires: all["low"].Requires}
	breaks := func(version, acknowledged string, more ...Extension) string {
		list := append([]Extension{*all["a"], *all["low"], *all["any"], *all["other"], far, coming}, more...)
		return Breaks(*all["a"], version, list, acknowledged, everything)
	}
	if got := breaks("1.9.0", ""); got != "" {
		t.Errorf("all allow 1.9.0, and it says %q", got)
	}
	got := breaks("2.0.0", "")
	if !strings.HasPrefix(got, "1 installed extensions do not allow 2.0.0, such as low (requires a<2); to continue") {
		t.Errorf("it says %q", got)
	}
	_, id, _ := strings.Cut(got, "=")
	if got := breaks("2.0.0", id); got != "" {
		t.Errorf("it is acknowledged, and says %q", got)
	}
	if breaks("2.1.0", id) == "" || breaks("2.0.0", id, Extension{Name: "third", Installed: true, Requires: all["low"].Requires}) == "" {
		t.Error("the acknowledgement counts for another version, or for more extensions")
	}
	if got := breaks("", ""); !strings.HasPrefix(got, "2 installed extensions require it, such as any (requires a), low (requires a<2)") {
		t.Errorf("of a deletion it says %q", got)
	}
}
