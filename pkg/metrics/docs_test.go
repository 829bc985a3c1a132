package metrics

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	page = "../../docs/reference/metrics.md"
	// The items of the catalogue are between these lines.
	begin, end = "<!-- begin: pkg/metrics -->\n", "<!-- end: pkg/metrics -->\n"
)

// TestPage compares the page with the catalogue. With PENSTOCK_UPDATE set it writes the page.
func TestPage(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	got, after, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("%s has not the lines %q and %q", page, begin, end)
	}
	want := list()
	if os.Getenv("PENSTOCK_UPDATE") != "" {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s is not what the catalogue says; PENSTOCK_UPDATE=1 go test -run TestPage ./pkg/metrics makes it so (-want +got):\n%s", page, diff)
	}
}

func list() string {
	out := &strings.Builder{}
	for _, every := range []bool{false, true} {
		where := "The leader exposes"
		if every {
			where = "\nEvery replica exposes"
		}
		fmt.Fprintf(out, "%s, each with its type and labels:\n\n", where)
		for _, m := range Catalogue() {
			if m.EveryReplica == every {
				kind := string(m.Type)
				if len(m.Labels) > 0 {
					kind += "; " + strings.Join(m.Labels, ", ")
				}
				fmt.Fprintf(out, "- `%s` (%s): %s\n", m.Name, kind, m.Help)
			}
		}
	}
	return out.String()
}
