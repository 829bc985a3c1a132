package render_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/diff/render"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestYAML: the printed text decodes to the original value.
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

// TestLimits: lines that do not fit are counted, and any number of context lines is allowed.
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
		"LongLine":  {"of a line that does not fit, the rest is counted in bytes, and the line is left out", render.Limits{Bytes: 99, LineBytes: 4}, "@@ -3 +3 @@\n-c: 1\n+(3 bytes) ... lo ... (2 bytes) ... er\n", 1},
		"NoRoom":    {"lines that do not fit are counted", render.Limits{Bytes: 8, LineBytes: 99}, "@@ -3 +2,0 @@\n-c: 1\n", 1},
	} {
		got := render.NewUnified(d, tc.limits, never)
		want := render.Unified{Hunks: tc.hunks, AddedLines: 1, RemovedLines: 1, LeftOut: tc.leftOut}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s: -want, +got:\n%s", name, tc.reason, diff)
		}
	}
}

// TestLongLines: a line that is too long is shortened to the part that differs. If that part is too
// long, the line counts as omitted.
func TestLongLines(t *testing.T) {
	never := func() bool { return false }
	comparer := tree.NewComparer(nil, nil, never)
	rapid.Check(t, func(rt *rapid.T) {
		part := rapid.StringOfN(rapid.SampledFrom([]rune("aé1 ")), 0, 200, -1)
		head, tail, before, after := part.Draw(rt, "head"), part.Draw(rt, "tail"), part.Draw(rt, "before"), part.Draw(rt, "after")
		limit := rapid.IntRange(8, 300).Draw(rt, "limit")
		parse := func(text string) *tree.Node {
			raw, err := json.Marshal(map[string]any{"v": "x" + head + text + tail + "x"})
			if err != nil {
				rt.Fatal(err)
			}
			n, err := comparer.Parse(&manifest.Object{JSON: raw})
			if err != nil {
				rt.Fatal(err)
			}
			return n
		}
		got := render.NewUnified(comparer.Compare(parse(before), parse(after)), render.Limits{Bytes: 1 << 20, LineBytes: limit}, never)
		lines := splitLines(got.Hunks)
		if before == after {
			return
		}
		if len(lines) != 3 {
			rt.Fatalf("%d lines: %s", len(lines), got.Hunks)
		}
		if lines[1][1:] == lines[2][1:] && got.LeftOut == 0 {
			rt.Fatalf("the lines look alike, and nothing is said to be left out:\n%s", got.Hunks)
		}
		if got.LeftOut == 0 && len(before) <= len(after) && !strings.Contains(lines[2], strings.Trim(unlike(head+after+tail, head+before+tail), " ")) {
			rt.Fatalf("%q differs from %q, and is not shown whole:\n%s", after, before, got.Hunks)
		}
		for _, line := range lines[1:] {
			if len(line) > limit+80 || !utf8.ValidString(line) {
				rt.Fatalf("a line of %d bytes: %q", len(line), line)
			}
		}
	})
}

// TestLookalikes: a lookalike letter in a changed line is escaped, or named by a remark where text
// cannot be escaped. Normal text of another script has no remark.
func TestLookalikes(t *testing.T) {
	never := func() bool { return false }
	comparer := tree.NewComparer(nil, nil, never)
	const cyrillic = "\u0430dmin"
	for name, tc := range map[string]struct {
		old, new string
		want     string
	}{
		"Line":      {"admin", cyrillic, `\u0430dmin`},
		"Block":     {"user: admin\nb: c\n", "user: " + cyrillic + "\nb: c\n", "+  user: " + cyrillic + "\n\\ the line above has letters that look like other letters: U+0430\n"},
		"Removed":   {"user: " + cyrillic + "\nb: c\n", "user: admin\nb: c\n", "-  user: " + cyrillic + "\n\\ the line above has letters that look like other letters: U+0430\n"},
		"NewBlock":  {"", "user: " + cyrillic + "\nb: c\n", "+  user: " + cyrillic + "\n\\ the line above has"},
		"Honest":    {"a\nb\n", "a\n\u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440\n", "+  \u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440\n"},
		"Unchanged": {cyrillic + "\nb\n", cyrillic + "\nc\n", "   " + cyrillic + "\n-  b\n+  c\n"},
	} {
		parse := func(text string) *tree.Node {
			raw, err := json.Marshal(map[string]any{"v": text})
			if err != nil {
				t.Fatal(err)
			}
			n, err := comparer.Parse(&manifest.Object{JSON: raw})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		got := render.NewUnified(comparer.Compare(parse(tc.old), parse(tc.new)), render.Limits{Bytes: 1 << 20, LineBytes: 1000, ContextLines: 3}, never).Hunks
		if !strings.Contains(got, tc.want) || (name == "Honest" || name == "Unchanged") && strings.Contains(got, "look like") {
			t.Errorf("%s: want %q in\n%s", name, tc.want, got)
		}
	}
}

// unlike returns text without its common beginning and end with other.
func unlike(text, other string) string {
	from, back := 0, 0
	for from < min(len(text), len(other)) && text[from] == other[from] {
		from++
	}
	for back < min(len(text), len(other))-from && text[len(text)-1-back] == other[len(other)-1-back] {
		back++
	}
	return strings.ToValidUTF8(text[from:len(text)-back], "")
}
