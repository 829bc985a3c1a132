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

// Row returns the history's row of a revision whose pack is root, but for its Counts.
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
	// Of an imported revision the requester is who imported it.
	if first := revision.Annotations[olmv1alpha1.RequestedByAnnotation]; first != "" {
		row.RequestedBy = first
	}
	// A proposal was made in nobody's name.
	if approver := revision.Annotations[olmv1alpha1.ApprovedByAnnotation]; approver != "" {
		row.RequestedBy = approver
	}
	if c := meta.FindStatusCondition(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded); c != nil && row.Result == olmv1alpha1.ResultSucceeded {
		row.CompletedAt = c.LastTransitionTime.UTC()
	}
	return row
}

// Result is how far a revision has come, "" when its conditions do not say. Once
// it is given up they do not: what they said before stays in history.
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

// Counts are those of the first of some revisions against the one behind it.
func Counts(revisions []olmv1alpha1.ClusterExtensionRevision) *store.Counts {
	own, others := references.Of(&revisions[0]), []manifest.Ref(nil)
	if len(revisions) > 1 {
		others = references.Of(&revisions[1])
	}
	changes := diff.Count(others, own)
	return &store.Counts{Objects: len(own), Added: changes.Added, Changed: changes.Changed, Removed: changes.Removed}
}
