package render_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/diff/render"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestYAML: what is printed reads as what was written.
func TestYAML(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		value := map[string]any{"v": difftest.AnyValue(4).Draw(rt, "value")}
		written, err := json.Marshal(value)
		if err != nil {
			rt.Fatal(err)
		}
		never := func() bool { return false }
		n, err := tree.NewComparer(nil, nil, never).Parse(&manifest.Object{JSON: written})
		if err != nil {
			rt.Fatal(err)
		}
		all := render.Limits{Bytes: 1 << 30, LineBytes: 1 << 30, ContextLines: 3}
		hunks := render.NewUnified(tree.Delta{Op: tree.Added, New: n}, all, never).Hunks
		var document string
		for i, line := range splitLines(hunks) {
			if i > 0 {
				document += line[1:] + "\n"
			}
		}
		var want, got any
		if err := json.Unmarshal(written, &want); err != nil {
			rt.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(document), &got); err != nil {
			rt.Fatalf("%v in\n%s", err, document)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatalf("-written, +read:\n%s\n%s", diff, document)
		}
	})
}

func splitLines(s string) []string {
	var lines []string
	for len(s) > 0 {
		end := slices.Index([]byte(s), '\n')
		lines, s = append(lines, s[:end]), s[end+1:]
	}
	return lines
}

// TestLimits: what does not fit is counted, and any number of context lines is
// allowed.
func TestLimits(t *testing.T) {
	never := func() bool { return false }
	comparer := tree.NewComparer(nil, nil, never)
	parse := func(content string) *tree.Node {
		n, err := comparer.Parse(&manifest.Object{JSON: []byte(content)})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	d := comparer.Compare(parse(`{"a":1,"b":1,"c":1,"d":1,"e":1}`), parse(`{"a":1,"b":1,"c":"longer","d":1,"e":1}`))
	for name, tc := range map[string]struct {
		reason  string
		limits  render.Limits
		hunks   string
		leftOut int
	}{
		"All":       {"", render.Limits{Bytes: 99, LineBytes: 99, ContextLines: 1}, "@@ -2,3 +2,3 @@\n b: 1\n-c: 1\n+c: longer\n d: 1\n", 0},
		"NoContext": {"a diff may have none", render.Limits{Bytes: 99, LineBytes: 99}, "@@ -3 +3 @@\n-c: 1\n+c: longer\n", 0},
		"LongLine":  {"the rest of a line is counted in bytes", render.Limits{Bytes: 99, LineBytes: 4}, "@@ -3 +3 @@\n-c: 1\n+c: l ... (5 bytes more)\n", 0},
		"NoRoom":    {"lines that do not fit are counted", render.Limits{Bytes: 8, LineBytes: 99}, "@@ -3 +2,0 @@\n-c: 1\n", 1},
	} {
		got := render.NewUnified(d, tc.limits, never)
		want := render.Unified{Hunks: tc.hunks, AddedLines: 1, RemovedLines: 1, LeftOut: tc.leftOut}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s: -want, +got:\n%s", name, tc.reason, diff)
		}
	}
}
