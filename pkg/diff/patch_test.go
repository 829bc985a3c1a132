package diff

import (
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/diff/render"
	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// checkPatch applies the unified diff to the YAML of the old object, in which equal values have the
// new spelling. The result must decode to the new object.
func checkPatch(t difftest.TB, old, new *manifest.Object, types schema.Schema, change Change) {
	t.Helper()
	comparer := tree.NewComparer(types, nil, func() bool { return false })
	before, err := comparer.Parse(old)
	if err != nil {
		t.Fatal(err)
	}
	after, err := comparer.Parse(new)
	if err != nil {
		t.Fatal(err)
	}
	patched, err := patch(oldLines(comparer.Compare(before, after)), change.Unified)
	if err != nil {
		t.Fatalf("%s: %v\n%s", change.ID, err, change.Unified)
	}
	data, err := yaml.YAMLToJSON([]byte(strings.Join(patched, "\n") + "\n"))
	if err != nil {
		t.Fatalf("%s: no YAML: %v\n%s", change.ID, err, strings.Join(patched, "\n"))
	}
	made := *new
	made.Digest, made.JSON = "", data
	if got := nodes(t, types, &made, new); !tree.Equal(got[0], got[1]) {
		t.Errorf("%s: the unified diff does not lead to the new object\n%s", change.ID, change.Unified)
	}
}

func oldLines(d tree.Delta) []string {
	whole := render.NewUnified(d, render.Limits{Bytes: 1 << 30, LineBytes: 1 << 30, ContextLines: 1 << 29}, func() bool { return false })
	var lines []string
	for _, line := range strings.Split(whole.Hunks, "\n") {
		if line != "" && (line[0] == ' ' || line[0] == '-') {
			lines = append(lines, line[1:])
		}
	}
	return lines
}

// patch applies a unified diff to lines as strictly as patch(1) without fuzz.
func patch(lines []string, unified string) ([]string, error) {
	var out []string
	at := 0
	for _, line := range strings.Split(strings.TrimSuffix(unified, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		case strings.HasPrefix(line, "@@ -"):
			start, rest, _ := strings.Cut(strings.TrimPrefix(line, "@@ -"), " ")
			first, count, hasCount := strings.Cut(start, ",")
			from, err := strconv.Atoi(first)
			if err != nil {
				return nil, err
			}
			if hasCount && count == "0" {
				from++
			}
			out = append(out, lines[at:from-1]...)
			at = from - 1
			added, _, _ := strings.Cut(strings.TrimPrefix(rest, "+"), ",")
			if to, err := strconv.Atoi(strings.Fields(added)[0]); err != nil || to != len(out)+1 && !strings.Contains(rest, ",0") {
				return nil, errorAt("hunk says new line "+added+", is "+strconv.Itoa(len(out)+1), line)
			}
		case line == "" || strings.HasPrefix(line, `\`):
			return nil, errorAt("not a line of a diff", line)
		case line[0] == '+':
			out = append(out, line[1:])
		default:
			if at >= len(lines) || lines[at] != line[1:] {
				return nil, errorAt("the old document has no such line at "+strconv.Itoa(at+1), line)
			}
			if line[0] == ' ' {
				out = append(out, line[1:])
			}
			at++
		}
	}
	return append(out, lines[at:]...), nil
}

type patchError string

func (e patchError) Error() string { return string(e) }

func errorAt(problem, line string) error { return patchError(problem + ": " + line) }
