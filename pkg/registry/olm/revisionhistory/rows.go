package revisionhistory

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// history combines the head of a chain with its stored revisions. Stored revisions are more
// current. Only the head has deleted revisions, and the progress of a rollout before the next
// revision replaced it.
func history(head chain.Head, revisions []olm.ClusterExtensionRevision) *v1alpha1.RevisionHistory {
	out := &v1alpha1.RevisionHistory{ObjectMeta: metav1.ObjectMeta{Name: head.Name}, Revisions: []v1alpha1.RevisionRecord{}}
	if head.Hold != nil {
		out.Hold = &v1alpha1.RevisionHold{Revision: olm.RevisionName(head.Name, head.Hold.Revision), OwnerGeneration: head.Hold.OwnerGeneration}
	}
	rows := map[types.UID]chain.Row{}
	for _, row := range head.Rows {
		rows[row.UID] = row
	}
	sorted := slices.SortedFunc(slices.Values(revisions), func(a, b olm.ClusterExtensionRevision) int {
		return cmp.Compare(a.Spec.Revision, b.Spec.Revision)
	})
	for i := range sorted {
		var before *olm.ClusterExtensionRevision
		if i > 0 {
			before = &sorted[i-1]
		}
		record := existing(&sorted[i], rows[sorted[i].UID], i == len(sorted)-1)
		if record.Changes == nil && isBefore(head, before, &sorted[i]) {
			record.Changes = changes(before, &sorted[i])
		}
		out.Revisions = append(out.Revisions, record)
		delete(rows, sorted[i].UID)
	}
	for _, row := range rows {
		out.Revisions = append(out.Revisions, gone(head.Name, row))
	}
	slices.SortFunc(out.Revisions, func(a, b v1alpha1.RevisionRecord) int { return cmp.Compare(a.Revision, b.Revision) })
	return out
}

// existing returns the record of an existing revision. row is empty if the head does not have the
// revision.
func existing(revision *olm.ClusterExtensionRevision, row chain.Row, newest bool) v1alpha1.RevisionRecord {
	record := v1alpha1.RevisionRecord{
		Name: revision.Name, Revision: revision.Spec.Revision,
		Version:   revision.Annotations[v1alpha1.VersionAnnotation],
		State:     string(revision.Spec.LifecycleState),
		Result:    result(revision, row, newest),
		CreatedAt: timeOf(revision.CreationTimestamp.Time),
		Cause:     revision.Annotations[v1alpha1.ChangeCauseAnnotation],
		// Only the server sets the annotation.
		RollbackOf: revision.Annotations[v1alpha1.RollbackOfAnnotation],
	}
	if record.Result == v1alpha1.ResultSucceeded {
		record.CompletedAt = completedAt(revision, row)
	}
	if revision.DeletionTimestamp != nil {
		record.State = v1alpha1.StateDeleting
		record.DeletedAt = timeOf(revision.DeletionTimestamp.Time)
	}
	if requester := revision.Status.RequestedBy; requester != nil {
		record.RequestedBy = requester.Username
	}
	// The status of an imported revision names the importer. The annotation names the original
	// requester.
	if first := revision.Annotations[v1alpha1.RequestedByAnnotation]; first != "" {
		record.RequestedBy = first
	}
	// A proposal has no requester; its approver counts as the requester.
	if approver := revision.Annotations[v1alpha1.ApprovedByAnnotation]; approver != "" {
		record.RequestedBy = approver
		if at, err := time.Parse(time.RFC3339, revision.Annotations[v1alpha1.ApprovedAtAnnotation]); err == nil {
			record.ApprovedAt = timeOf(at)
		}
	}
	setCounts(&record, row.Counts)
	objects := int32(len(clusterextensionrevision.Refs(revision)))
	record.Objects = &objects
	return record
}

// completedAt returns the time at which a revision completed for the first time. An imported
// revision completed in another cluster, perhaps never in this one.
func completedAt(revision *olm.ClusterExtensionRevision, row chain.Row) *metav1.Time {
	if !row.CompletedAt.IsZero() {
		return timeOf(row.CompletedAt)
	}
	if succeeded := meta.FindStatusCondition(revision.Status.Conditions, v1alpha1.ConditionSucceeded); succeeded != nil {
		return timeOf(succeeded.LastTransitionTime.Time)
	}
	return nil
}

func gone(name string, row chain.Row) v1alpha1.RevisionRecord {
	record := v1alpha1.RevisionRecord{
		Name: olm.RevisionName(name, row.Revision), Revision: row.Revision, Version: row.Version,
		State: v1alpha1.StateDeleted, Result: lastResult(row),
		CreatedAt: timeOf(row.CreatedAt), CompletedAt: timeOf(row.CompletedAt), DeletedAt: timeOf(row.DeletedAt),
		RequestedBy: row.RequestedBy, Cause: row.Cause,
	}
	if row.RollbackOf != 0 {
		record.RollbackOf = olm.RevisionName(name, row.RollbackOf)
	}
	setCounts(&record, row.Counts)
	return record
}

// result returns the rollout result of a stored revision.
func result(revision *olm.ClusterExtensionRevision, row chain.Row, newest bool) string {
	is := func(condition string) bool {
		return meta.IsStatusConditionTrue(revision.Status.Conditions, condition)
	}
	switch {
	case is(v1alpha1.ConditionSucceeded):
		return v1alpha1.ResultSucceeded
	case revision.DeletionTimestamp != nil || revision.Spec.LifecycleState == olm.LifecycleStateArchived || !newest:
		// Its rollout has ended, and its conditions do not show the progress.
		return lastResult(row)
	case is(v1alpha1.ConditionFailing):
		return v1alpha1.ResultFailing
	case is(v1alpha1.ConditionStalled):
		return v1alpha1.ResultStalled
	case is(v1alpha1.ConditionProgressing):
		return v1alpha1.ResultProgressing
	}
	return ""
}

// lastResult returns the result of a revision whose rollout has ended.
func lastResult(row chain.Row) string {
	switch row.Result {
	case "", v1alpha1.ResultProgressing:
		return v1alpha1.ResultIncomplete
	default:
		return row.Result
	}
}

// repairs returns the reverted changes in an inventory.
func repairs(name string, inventory chain.Inventory) []v1alpha1.RepairRecord {
	var records []v1alpha1.RepairRecord
	for _, r := range inventory.Repairs {
		records = append(records, v1alpha1.RepairRecord{
			Object:   v1alpha1.ObjectName{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name},
			Revision: olm.RevisionName(name, r.Revision), Manager: r.Manager, Message: r.Lost,
			Count: int32(r.Count), FirstAt: metav1.NewTime(r.First), LastAt: metav1.NewTime(r.Last),
		})
	}
	return records
}

// isBefore reports whether before is the direct predecessor of a revision. It is not if the direct
// predecessor was deleted. before may be nil.
func isBefore(head chain.Head, before, revision *olm.ClusterExtensionRevision) bool {
	lowest := int64(0)
	if before != nil {
		lowest = before.Spec.Revision
	}
	return !slices.ContainsFunc(head.Rows, func(row chain.Row) bool {
		return row.Revision > lowest && row.Revision < revision.Spec.Revision
	})
}

// changes computes the counts of a revision that are not in the head yet, because the controllers
// write them later.
func changes(before, revision *olm.ClusterExtensionRevision) *v1alpha1.ChangeCounts {
	var others []manifest.Ref
	if before != nil {
		others = clusterextensionrevision.Refs(before)
	}
	counts := diff.Count(others, clusterextensionrevision.Refs(revision))
	return &v1alpha1.ChangeCounts{Added: int32(counts.Added), Changed: int32(counts.Changed), Removed: int32(counts.Removed)}
}

func setCounts(record *v1alpha1.RevisionRecord, counts *chain.Counts) {
	if counts == nil {
		return
	}
	objects := int32(counts.Objects)
	record.Objects = &objects
	record.Changes = &v1alpha1.ChangeCounts{Added: int32(counts.Added), Changed: int32(counts.Changed), Removed: int32(counts.Removed)}
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	out := metav1.NewTime(t)
	return &out
}
