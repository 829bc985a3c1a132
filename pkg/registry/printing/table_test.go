package printing

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func TestTable(t *testing.T) {
	left := int64(7)
	list := &olm.ClusterExtensionRevisionList{
		ListMeta: metav1.ListMeta{ResourceVersion: "12", Continue: "more", RemainingItemCount: &left},
		Items:    []olm.ClusterExtensionRevision{{ObjectMeta: metav1.ObjectMeta{Name: "a-1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "a-2"}}},
	}
	columns := []metav1.TableColumnDefinition{{Name: "Name", Type: "string"}}
	name := func(r *olm.ClusterExtensionRevision) []any { return []any{r.Name} }

	table, err := Table("revisions", list, &metav1.TableOptions{}, columns, name)
	if err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 2 || table.Rows[1].Cells[0] != "a-2" || len(table.ColumnDefinitions) != 1 {
		t.Errorf("a list of two gave %d rows under %d columns: %v", len(table.Rows), len(table.ColumnDefinitions), table.Rows)
	}
	if table.ResourceVersion != "12" || table.Continue != "more" || table.RemainingItemCount != &left {
		t.Errorf("the list's place in the whole is lost: %+v", table.ListMeta)
	}

	one, err := Table("revisions", &list.Items[0], &metav1.TableOptions{NoHeaders: true}, columns, name)
	if err != nil {
		t.Fatal(err)
	}
	if len(one.Rows) != 1 || one.ColumnDefinitions != nil {
		t.Errorf("one without headers gave %d rows under %d columns", len(one.Rows), len(one.ColumnDefinitions))
	}

	if _, err := Table("revisions", &v1alpha1.RevisionRollback{}, nil, columns, name); err == nil || !strings.Contains(err.Error(), "revisions: got a *v1alpha1.RevisionRollback") {
		t.Errorf("a table of something else: %v", err)
	}
}

// TestTextTable: equal cells share their memory. Other cells do not.
func TestTextTable(t *testing.T) {
	rows := [][]string{{"a-1", "Active", ""}, {"a-2", "Active", "x"}, {"a-3"}, {"a-3", "Paused", "x"}, {"a-3", "Paused", "y"}}
	list := &olm.ClusterExtensionRevisionList{Items: make([]olm.ClusterExtensionRevision, len(rows))}
	next := 0
	table, err := TextTable("revisions", list, nil, make([]metav1.TableColumnDefinition, 3), func(_ *olm.ClusterExtensionRevision, cells []string) {
		copy(cells, rows[next])
		next++
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		for column, got := range table.Rows[i].Cells {
			want := ""
			if column < len(row) {
				want = row[column]
			}
			if got != want {
				t.Errorf("row %d, column %d: %q, want %q", i, column, got, want)
			}
		}
	}
}

func TestAge(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	clock := testingclock.NewFakePassiveClock(now)
	if got := Age(clock, metav1.NewTime(now.Add(-90*time.Minute))); got != "90m" {
		t.Errorf("90 minutes print as %q", got)
	}
	if got := Age(clock, metav1.Time{}); got != "<unknown>" {
		t.Errorf("no time prints as %q", got)
	}
	// Ages grow. A creation one second in the future counts as a clock difference; later creations
	// are invalid.
	for since, want := range map[time.Duration]string{
		0: "0s", 119 * time.Second: "119s", 121 * time.Second: "2m1s", 47 * time.Hour: "47h", 400 * 24 * time.Hour: "400d",
		-time.Second: "0s", -5 * time.Second: "<invalid>", -24 * time.Hour: "<invalid>",
	} {
		if got := Age(clock, metav1.NewTime(now.Add(-since))); got != want {
			t.Errorf("after %s: %s, want %s", since, got, want)
		}
	}
}
