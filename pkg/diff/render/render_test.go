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
