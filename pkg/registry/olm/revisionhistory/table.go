package revisionhistory

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/printing"
)

// table prints tables of histories: one row for each revision, newest last, at the end of a
// command's output.
type table struct{}

const unknown = "<unknown>"

func columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Revision", Type: "integer", Description: "Number of the revision."},
		{Name: "Version", Type: "string", Description: "Version of the extension."},
		{Name: "State", Type: "string", Description: "Active, Paused, Archived, Deleting or Deleted."},
		{Name: "Result", Type: "string", Description: "Result of its rollout, so far or when it was given up."},
		{Name: "Changes", Type: "string", Description: "Objects added, changed and removed against the revision before."},
		{Name: "Objects", Type: "string", Description: "Number of objects."},
		{Name: "Created", Type: "string", Description: "When it was created."},
		{Name: "Completed", Type: "string", Description: "When its rollout was complete for the first time."},
		{Name: "By", Type: "string", Description: "User who created it."},
		{Name: "Cause", Type: "string", Description: "Why it was created."},
	}
}

// ConvertToTable prints a history.
func (table) ConvertToTable(ctx context.Context, object, options runtime.Object) (*metav1.Table, error) {
	if list, ok := object.(*v1alpha1.RevisionHistoryList); ok {
		return extensions(list, options), nil
	}
	found, ok := object.(*v1alpha1.RevisionHistory)
	if !ok {
		return nil, fmt.Errorf("printing a table of history: got a %T", object)
	}
	out := &metav1.Table{}
	for i := range found.Revisions {
		record := &found.Revisions[i]
		out.Rows = append(out.Rows, printing.Row(cells(record), &v1alpha1.RevisionHistory{ObjectMeta: metav1.ObjectMeta{Name: record.Name}}))
	}
	if hold := found.Hold; hold != nil {
		warning.AddWarning(ctx, "", holdText(hold))
	}
	return printing.Headed(out, options, columns()), nil
}

func cells(record *v1alpha1.RevisionRecord) []any {
	changes := unknown
	if c := record.Changes; c != nil {
		changes = fmt.Sprintf("+%d ~%d -%d", c.Added, c.Changed, c.Removed)
	}
	cause := record.Cause
	if record.RollbackOf != "" {
		cause = strings.TrimSuffix("rollback to "+record.RollbackOf+": "+cause, ": ")
	}
	return []any{
		record.Revision, record.Version, record.State, record.Result, changes, objectsOf(record),
		clock(record.CreatedAt), clock(record.CompletedAt), record.RequestedBy, cause,
	}
}

func objectsOf(record *v1alpha1.RevisionRecord) string {
	if record.Objects == nil {
		return unknown
	}
	return fmt.Sprint(*record.Objects)
}

// newestOf returns the newest existing revision of a history, and the version or number of the last
// revision that succeeded.
func newestOf(found *v1alpha1.RevisionHistory) (newest v1alpha1.RevisionRecord, succeeded string) {
	for i := range found.Revisions {
		record := found.Revisions[i]
		if record.State == v1alpha1.StateDeleted {
			continue
		}
		newest = record
		if record.Result == v1alpha1.ResultSucceeded {
			succeeded = cmp.Or(record.Version, fmt.Sprint(record.Revision))
		}
	}
	return newest, succeeded
}

// clock prints a time instead of an age, so that users can compare the history with logs and chats.
func clock(at *metav1.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

func holdText(hold *v1alpha1.RevisionHold) string {
	text := "held since the rollback " + hold.Revision + ": its owner makes no new revision until "
	if hold.OwnerGeneration > 0 {
		text += fmt.Sprintf("its generation is above %d, or ", hold.OwnerGeneration)
	}
	extension, _, _ := olm.ChainOf(hold.Revision)
	return text + "the hold is released: kubectl penstock resume " + extension
}
