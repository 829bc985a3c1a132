package configurationplan

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/registry/printing"
)

// historyTable prints the runs of plans: one row for each run, newest last, at the end of a
// command's output.
type historyTable struct{}

// diffTable prints the current effect of a plan: one row for each item.
type diffTable struct{}

var (
	_ rest.TableConvertor = historyTable{}
	_ rest.TableConvertor = diffTable{}
)

// ConvertToTable prints a history.
func (historyTable) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	history, ok := object.(*v1alpha1.PlanHistory)
	if !ok {
		return nil, fmt.Errorf("printing a table of what a plan did: got a %T", object)
	}
	out := &metav1.Table{}
	for i := len(history.Runs) - 1; i >= 0; i-- {
		out.Rows = append(out.Rows, printing.Row(runCells(&history.Runs[i]), &v1alpha1.PlanHistory{ObjectMeta: history.ObjectMeta}))
	}
	return printing.Headed(out, options, []metav1.TableColumnDefinition{
		{Name: "Run", Type: "integer", Description: "Number of the execution."},
		{Name: "Outcome", Type: "string", Description: "Phase in which the run ended, and the run that it has undone."},
		{Name: "Items", Type: "string", Description: "Items that are done, of all items."},
		{Name: "Started", Type: "string", Description: "When it began."},
		{Name: "Ended", Type: "string", Description: "When it ended."},
		{Name: "Approved by", Type: "string", Description: "User who approved the plan; standing when Apply was set before there was a plan."},
		{Name: "Comment", Type: "string", Description: "Comment of the approver."},
		{Name: "Targets", Type: "string", Priority: 1, Description: "Result for each target, and its progress."},
		{Name: "Hash", Type: "string", Priority: 1, Description: "Hash of the plan that was executed."},
	}), nil
}

func runCells(run *v1alpha1.PlanRun) []any {
	outcome := string(run.Outcome)
	if outcome == "" {
		outcome = string(v1alpha1.PhaseInProgress)
	}
	outcome = v1alpha1.PhaseText(outcome, run.RestoreRun)
	var items []string
	done := 0
	for _, item := range run.Items {
		if governance.Done(item.State) {
			done++
		}
		items = append(items, fmt.Sprintf("%s %s/%s: %s", item.Action, item.TargetRef.Kind, item.TargetRef.Name, item.State))
	}
	by := strings.Join(governance.Approvers(&run.Approval), ", ")
	if run.Approval.Mode == v1alpha1.ApprovalStanding {
		by += " (standing)"
	}
	ended := ""
	if run.EndedAt != nil {
		ended = stamp3339(*run.EndedAt)
	}
	return []any{
		run.Run, outcome, fmt.Sprintf("%d/%d", done, len(run.Items)), stamp3339(run.StartedAt), ended, by, run.Approval.Comment,
		strings.Join(items, ", "), run.PlanHash,
	}
}

// stamp3339 prints a time instead of an age, so that users can compare records with logs.
func stamp3339(at metav1.Time) string { return at.UTC().Format(time.RFC3339) }

// ConvertToTable prints a diff.
func (diffTable) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	diff, ok := object.(*v1alpha1.PlanDiff)
	if !ok {
		return nil, fmt.Errorf("printing a table of what a plan would change: got a %T", object)
	}
	out := &metav1.Table{}
	for _, item := range diff.Items {
		added, removed := count(item.Diff)
		stale := "" // empty also if the caller must not know it
		if item.Stale {
			stale = "yes"
		}
		out.Rows = append(out.Rows, printing.Row([]any{
			item.Name, item.TargetRef.Kind, item.TargetRef.Namespace, item.TargetRef.Name, fmt.Sprintf("+%d/-%d", added, removed), stale, item.Message,
		}, &v1alpha1.PlanDiff{ObjectMeta: diff.ObjectMeta}))
	}
	return printing.Headed(out, options, []metav1.TableColumnDefinition{
		{Name: "Item", Type: "string", Description: "Name of the item."},
		{Name: "Kind", Type: "string", Description: "Kind of its target."},
		{Name: "Namespace", Type: "string", Description: "Namespace of its target."},
		{Name: "Name", Type: "string", Description: "Name of its target."},
		{Name: "+/-", Type: "string", Description: "Lines that it adds and removes; -o yaml has the diff."},
		{Name: "Stale", Type: "string", Description: "Whether the target was changed since the plan was computed."},
		{Name: "Message", Type: "string", Description: "Why there is no diff."},
	}), nil
}

// count returns the numbers of added and removed lines of a unified diff, without its headers.
func count(diff string) (added, removed int) {
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return added, removed
}
