package references

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKept(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		packs   []Pack
		refer   map[string][]string
		kept    []string
		missing []string
	}{
		"nothing":     {reason: "an empty store has nothing to keep"},
		"referred":    {reason: "what a record lists stays, and the rest goes", packs: []Pack{{Root: "a"}, {Root: "b"}}, refer: map[string][]string{"r": {"a"}}, kept: []string{"a"}},
		"base":        {reason: "a base stays as long as what needs it", packs: []Pack{{Root: "a"}, {Root: "b", Base: "a"}}, refer: map[string][]string{"r": {"b"}}, kept: []string{"a", "b"}},
		"dead delta":  {reason: "what nobody needs goes before its base", packs: []Pack{{Root: "a"}, {Root: "b", Base: "a"}}, kept: []string{"a"}},
		"reserved":    {reason: "what is being written stays, with its base", packs: []Pack{{Root: "a"}, {Root: "b", Base: "a", Reserved: true}}, kept: []string{"a", "b"}},
		"shared":      {reason: "one record is enough", packs: []Pack{{Root: "a"}}, refer: map[string][]string{"r": {"a"}, "s": {"a"}}, kept: []string{"a"}},
		"two":         {reason: "a plan refers to two", packs: []Pack{{Root: "a"}, {Root: "b"}}, refer: map[string][]string{"p": {"a", "b"}}, kept: []string{"a", "b"}},
		"absent":      {reason: "what is not there is missing, not kept", packs: []Pack{{Root: "a"}}, refer: map[string][]string{"r": {"b", ""}}, missing: []string{"b"}},
		"absent base": {reason: "a pack whose base is gone stays, for somebody to see", packs: []Pack{{Root: "b", Base: "a"}}, refer: map[string][]string{"r": {"b"}}, kept: []string{"b"}},
		"circle":      {reason: "damage must not hang", packs: []Pack{{Root: "a", Base: "b"}, {Root: "b", Base: "a"}}, refer: map[string][]string{"r": {"b"}}, kept: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := Set{}
			for key, roots := range tc.refer {
				set.Add(key, roots...)
			}
			if diff := cmp.Diff(tc.kept, slices.Sorted(maps.Keys(Kept(tc.packs, set)))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.missing, Missing(tc.packs, set)); diff != "" {
				t.Errorf("%s: missing (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
