package configurationplan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

func TestHistoryTable(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	item := func(action v1alpha1.ItemAction, name string, state v1alpha1.ItemState) v1alpha1.PlanRunItem {
		return v1alpha1.PlanRunItem{Action: action, TargetRef: v1alpha1.TargetRef{Kind: "Pump", Name: name}, State: state}
	}
	history := &v1alpha1.PlanHistory{Runs: []v1alpha1.PlanRun{
		{Run: 2, StartedAt: at, PlanHash: "sha256:b", Approval: v1alpha1.PlanApproval{Username: "gitops", Mode: v1alpha1.ApprovalStanding}, Items: []v1alpha1.PlanRunItem{item(v1alpha1.ItemUpdate, "main", v1alpha1.ItemInProgress)}},
		{Run: 1, StartedAt: at, EndedAt: &at, Outcome: v1alpha1.PhaseFailed, PlanHash: "sha256:a", Approval: v1alpha1.PlanApproval{Username: "ada", Comment: "CHG-1", Mode: v1alpha1.ApprovalExplicit},
			Items: []v1alpha1.PlanRunItem{item(v1alpha1.ItemCreate, "spare", v1alpha1.ItemCompleted), item(v1alpha1.ItemUpdate, "main", v1alpha1.ItemFailed)}},
	}}
	table, err := historyTable{}.ConvertToTable(t.Context(), history, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]any{
		{int64(1), "Failed", "1/2", "2026-03-01T12:00:00Z", "2026-03-01T12:00:00Z", "ada", "CHG-1", "Create Pump/spare: Completed, Update Pump/main: Failed", "sha256:a"},
		{int64(2), "InProgress", "0/1", "2026-03-01T12:00:00Z", "", "gitops (standing)", "", "Update Pump/main: InProgress", "sha256:b"},
	}
	if diff := cmp.Diff(want, cellsOf(table)); diff != "" {
		t.Errorf("the newest is last (-want +got):\n%s", diff)
	}
	if len(table.ColumnDefinitions) != len(want[0]) {
		t.Errorf("%d columns", len(table.ColumnDefinitions))
	}
}

func TestDiffTable(t *testing.T) {
	target := v1alpha1.TargetRef{Kind: "Pump", Namespace: "water", Name: "main"}
	diff := &v1alpha1.PlanDiff{Items: []v1alpha1.PlanDiffItem{
		{Name: "set-up", TargetRef: target, Stale: true, Diff: "--- a\n+++ b\n@@ -1 +1,2 @@\n spec:\n-  x: 1\n+  x: 2\n+  y: 3\n"},
		{Name: "look", TargetRef: target, Message: "you cannot get pumps main"},
	}}
	table, err := diffTable{}.ConvertToTable(t.Context(), diff, &metav1.TableOptions{NoHeaders: true})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]any{
		{"set-up", "Pump", "water", "main", "+2/-1", "yes", ""},
		{"look", "Pump", "water", "main", "+0/-0", "", "you cannot get pumps main"},
	}
	if got := cmp.Diff(want, cellsOf(table)); got != "" {
		t.Errorf("(-want +got):\n%s", got)
	}
	if len(table.ColumnDefinitions) != 0 {
		t.Error("there are headers, unasked for")
	}
}

func cellsOf(table *metav1.Table) [][]any {
	var rows [][]any
	for _, row := range table.Rows {
		rows = append(rows, row.Cells)
	}
	return rows
}
