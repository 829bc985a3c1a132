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
	// The rows of the catalogue stand between these lines.
	begin, end = "<!-- begin: pkg/metrics -->\n", "<!-- end: pkg/metrics -->\n"
)

// The page says what the catalogue says. With PENSTOCK_UPDATE set it is made so.
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
	want := table()
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

// table is the catalogue as the page shows it.
func table() string {
	out := &strings.Builder{}
	fmt.Fprint(out, "| name | type | labels | exposed by | meaning |\n|---|---|---|---|---|\n")
	for _, m := range Catalogue() {
		where := "the leader"
		if m.EveryReplica {
			where = "every replica"
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Type, strings.Join(m.Labels, ", "), where, m.Help)
	}
	return out.String()
}
