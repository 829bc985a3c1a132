// Package difftest has shared code for the tests of pkg/diff and its subpackages.
package difftest

import (
	"strings"
	"sync"
	"testing"
	"unicode"

	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/diff/review"
	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// builtin loads the types only once, because that takes a while.
var builtin = sync.OnceValues(schema.NewBuiltin)

// Builtin returns the types of Kubernetes.
func Builtin(t testing.TB) schema.Schema {
	t.Helper()
	types, err := builtin()
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// Digester returns a digester with a key for tests.
func Digester() manifest.Digester {
	return manifest.Digester{SecretKey: []byte("the key of a test")}
}

// Object parses a manifest in YAML.
func Object(t testing.TB, text string) *manifest.Object {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	parsed, err := Digester().FromJSON(data)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return &parsed
}

// TB is the interface of testing and rapid that helpers need.
type TB interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// CheckPrintable fails if a text could move a terminal's cursor.
func CheckPrintable(t TB, what, s string) {
	t.Helper()
	for _, r := range s {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
			t.Errorf("%s has %U", what, r)
			return
		}
	}
}

// CheckNotes fails unless every note is one printable line of limited length.
func CheckNotes(t TB, notes []review.Note) {
	t.Helper()
	for _, note := range notes {
		CheckPrintable(t, "a note", note.String())
		if strings.Contains(note.String(), "\n") || len(note.Message) > 8<<10 {
			t.Errorf("a note is no line: %q", note)
		}
	}
}

// AnyValue generates JSON from few words, so that two values often share parts.
func AnyValue(depth int) *rapid.Generator[any] {
	word := rapid.SampledFrom([]string{"a", "b", "c.d/e", "name", "", "true", "1", "- x", "x: y", "line 1\nline 2\n", "line 1\nline 3", " lead\nx", "é\u202e\x1b", "\U000e0001", "--flag=1", "--flag=2", "a:1", "a:2"})
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 4
		}
		switch kind {
		case 0, 1:
			return word.Draw(t, "word")
		case 2:
			return int64(rapid.IntRange(-1, 2).Draw(t, "number"))
		case 3:
			return rapid.SampledFrom([]any{true, false, 0.5, 1e300}).Draw(t, "other")
		case 4:
			return rapid.SliceOfN(AnyValue(depth-1), 0, 5).Draw(t, "list")
		case 5:
			// A list whose items may have keys.
			names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID).Draw(t, "names")
			list := make([]any, 0, len(names))
			for _, name := range names {
				list = append(list, map[string]any{"name": name, "v": AnyValue(depth-1).Draw(t, "v")})
			}
			return list
		default:
			return rapid.MapOfN(word, AnyValue(depth-1), 0, 4).Draw(t, "object")
		}
	})
}
