package fences

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDependencies: docs/reference/dependencies.md lists exactly the modules that go.mod requires
// directly, in order, each with a reason.
func TestDependencies(t *testing.T) {
	var required []string
	for line := range strings.Lines(read(t, "..", "go.mod")) {
		if found := regexp.MustCompile(`^(?:require )?\s*(\S+\.\S+/\S+) v\S+\s*$`).FindStringSubmatch(line); found != nil {
			required = append(required, found[1])
		}
	}
	slices.Sort(required)
	page, _, _ := strings.Cut(read(t, "..", "docs/reference/dependencies.md"), "\n## ")
	var listed []string
	for _, item := range regexp.MustCompile("(?m)^- `(\\S+)`: (\\S.*)$").FindAllStringSubmatch(page, -1) {
		listed = append(listed, item[1])
	}
	if len(required) < 20 {
		t.Fatalf("go.mod requires %d modules directly", len(required))
	}
	if diff := cmp.Diff(required, listed); diff != "" {
		t.Errorf("the page lists other modules than go.mod requires (-go.mod +page):\n%s", diff)
	}
}
