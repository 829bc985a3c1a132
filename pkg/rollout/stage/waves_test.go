package stage

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWavesAreWellFormed(t *testing.T) {
	seen := map[schema.GroupKind]string{}
	rests := 0
	for _, wave := range Waves() {
		if wave.Rest {
			rests++
		}
		sorted := slices.IsSortedFunc(wave.Kinds, func(a, b schema.GroupKind) int {
			return slices.Compare([]string{a.Group, a.Kind}, []string{b.Group, b.Kind})
		})
		if !sorted {
			t.Errorf("wave %s is not sorted by group and kind", wave.Name)
		}
		for _, kind := range wave.Kinds {
			if other, twice := seen[kind]; twice {
				t.Errorf("%s is in the waves %s and %s", kind, other, wave.Name)
			}
			seen[kind] = wave.Name
		}
	}
	if rests != 1 {
		t.Errorf("%d waves take the kinds of no wave, must be exactly one", rests)
	}
}

// TestWavesAreDocumented: docs/reference/stages.md has the same waves as Waves. Read the comment of
// Waves before you change the order.
func TestWavesAreDocumented(t *testing.T) {
	const page = "../../../docs/reference/stages.md"
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatalf("reading the page: %v", err)
	}
	var want []string
	for i, wave := range Waves() {
		groups := map[string][]string{}
		var order []string
		for _, kind := range wave.Kinds {
			if groups[kind.Group] == nil {
				order = append(order, kind.Group)
			}
			groups[kind.Group] = append(groups[kind.Group], kind.Kind)
		}
		var cells []string
		for _, group := range order {
			name := group
			if name == "" {
				name = "core"
			}
			cells = append(cells, fmt.Sprintf("%s: %s", name, strings.Join(groups[group], ", ")))
		}
		if wave.Rest {
			cells = append(cells, "every other kind")
		}
		want = append(want, fmt.Sprintf("| %d | %s | %s |", i+1, wave.Name, strings.Join(cells, "; ")))
	}
	var got []string
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, "| ") && line[2] >= '1' && line[2] <= '9' {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s has another table (-code +page):\n%s", page, diff)
	}
}
