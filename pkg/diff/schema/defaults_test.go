package schema

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the list of defaults")

// TestDefaultsAreOfTypes finds rows of the table without a type, which are never used.
func TestDefaultsAreOfTypes(t *testing.T) {
	types := newBuiltin(t)
	for name, fields := range builtinDefaults() {
		known, ok := types.named(name).(*builtinType)
		if !ok {
			t.Errorf("no type %s", name)
			continue
		}
		for field := range fields {
			if _, ok := known.atom.Map.FindField(field); !ok {
				t.Errorf("%s has no field %s", name, field)
			}
		}
	}
}

// TestDocumentedDefaults compares the list in docs/reference/diff.md with the code; with -update it
// writes the list.
func TestDocumentedDefaults(t *testing.T) {
	const file = "testdata/defaults.txt"
	want := defaultsTable(t)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(have)); diff != "" {
		t.Errorf("run the test with -update: -code, +file:\n%s", diff)
	}
}

func newBuiltin(t testing.TB) *builtin {
	t.Helper()
	types, err := NewBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	return types.(*builtin)
}

func defaultsTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("# Defaults of Kubernetes that a diff knows. {} is an object whose fields all have defaults.\n")
	all := builtinDefaults()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var parts []string
		for _, field := range slices.Sorted(maps.Keys(all[name])) {
			value := all[name][field]
			spelled := "depends on other fields"
			if _, isComputed := value.(computed); !isComputed {
				encoded, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				spelled = string(encoded)
			}
			parts = append(parts, fmt.Sprintf("%s %s", field, spelled))
		}
		short := strings.TrimPrefix(name, "io.k8s.api.")
		fmt.Fprintf(&b, "%s: %s\n", short, strings.Join(parts, ", "))
	}
	return b.String()
}

func BenchmarkNewBuiltin(b *testing.B) {
	for b.Loop() {
		if _, err := NewBuiltin(); err != nil {
			b.Fatal(err)
		}
	}
}
