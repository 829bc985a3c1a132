package revision

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/revision/references"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

// Row returns the history row of a revision whose pack is root, without Counts.
func Row(revision *olmv1alpha1.ClusterExtensionRevision, root string) store.Row {
	row := store.Row{
		PackRoot:  root,
		CreatedAt: revision.CreationTimestamp.UTC(),
		Version:   revision.Annotations[olmv1alpha1.VersionAnnotation],
		Cause:     revision.Annotations[olmv1alpha1.ChangeCauseAnnotation],
		Result:    Result(revision),
	}
	if _, number, ok := olm.ChainOf(revision.Annotations[olmv1alpha1.RollbackOfAnnotation]); ok {
		row.RollbackOf = number
	}
	if revision.Status.RequestedBy != nil {
		row.RequestedBy = revision.Status.RequestedBy.Username
	}
	// The status of an imported revision names the importer. The annotation names the original
	// requester.
	if first := revision.Annotations[olmv1alpha1.RequestedByAnnotation]; first != "" {
		row.RequestedBy = first
	}
	// A proposal has no requester; its approver counts as the requester.
	if approver := revision.Annotations[olmv1alpha1.ApprovedByAnnotation]; approver != "" {
		row.RequestedBy = approver
	}
	if c := meta.FindStatusCondition(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded); c != nil && row.Result == olmv1alpha1.ResultSucceeded {
		row.CompletedAt = c.LastTransitionTime.UTC()
	}
	return row
}

// Result returns the state of a revision according to its conditions, or "" if they do not show it.
// The conditions of a revision that is no longer rolled out show only success; its history row
// keeps other results.
func Result(revision *olmv1alpha1.ClusterExtensionRevision) string {
	for _, candidate := range []struct{ condition, result string }{
		{olmv1alpha1.ConditionSucceeded, olmv1alpha1.ResultSucceeded},
		{olmv1alpha1.ConditionFailing, olmv1alpha1.ResultFailing},
		{olmv1alpha1.ConditionStalled, olmv1alpha1.ResultStalled},
		{olmv1alpha1.ConditionProgressing, olmv1alpha1.ResultProgressing},
	} {
		if !IsLayer(revision) && candidate.result != olmv1alpha1.ResultSucceeded {
			return ""
		}
		if meta.IsStatusConditionTrue(revision.Status.Conditions, candidate.condition) {
			return candidate.result
		}
	}
	return ""
}

// Counts returns the object counts of the first revision compared with the second.
func Counts(revisions []olmv1alpha1.ClusterExtensionRevision) *store.Counts {
	own, others := references.Of(&revisions[0]), []manifest.Ref(nil)
	if len(revisions) > 1 {
		others = references.Of(&revisions[1])
	}
	changes := diff.Count(others, own)
	return &store.Counts{Objects: len(own), Added: changes.Added, Changed: changes.Changed, Removed: changes.Removed}
}
