package chain

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/manifest"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

// Heads keeps the numbers and the history of chains.
type Heads interface {
	// Get returns the head of a chain, and whether there is one.
	Get(ctx context.Context, chain string) (store.Head, bool, error)
	// Confirm notes that a revision exists, and what history keeps of it.
	Confirm(ctx context.Context, chain string, number int64, uid types.UID, row store.Row) error
	// Release lifts the hold that a revision is the reason of.
	Release(ctx context.Context, chain string, revision types.UID) error
	// Succeed is Confirm for a revision that succeeded: for ever, whatever becomes of
	// the revision and its row.
	Succeed(ctx context.Context, chain string, number int64, uid types.UID, row store.Row) error
}

// rowOf is what history keeps of a revision whose pack is root, but for its
// counts.
func rowOf(revision *olmv1alpha1.ClusterExtensionRevision, root string) store.Row {
	row := store.Row{
		PackRoot:  root,
		CreatedAt: revision.CreationTimestamp.UTC(),
		Version:   revision.Annotations[olmv1alpha1.VersionAnnotation],
		Cause:     revision.Annotations[olmv1alpha1.ChangeCauseAnnotation],
		Result:    result(revision),
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
	if c := meta.FindStatusCondition(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded); c != nil && row.Result == olmv1alpha1.ResultSucceeded {
		row.CompletedAt = c.LastTransitionTime.UTC()
	}
	return row
}

// result is how far a revision has come, "" when its conditions do not say. Once
// it is given up they do not: what they said before stays in history.
func result(revision *olmv1alpha1.ClusterExtensionRevision) string {
	for _, candidate := range []struct{ condition, result string }{
		{olmv1alpha1.ConditionSucceeded, olmv1alpha1.ResultSucceeded},
		{olmv1alpha1.ConditionFailing, olmv1alpha1.ResultFailing},
		{olmv1alpha1.ConditionStalled, olmv1alpha1.ResultStalled},
		{olmv1alpha1.ConditionProgressing, olmv1alpha1.ResultProgressing},
	} {
		if !isLayer(revision) && candidate.result != olmv1alpha1.ResultSucceeded {
			return ""
		}
		if meta.IsStatusConditionTrue(revision.Status.Conditions, candidate.condition) {
			return candidate.result
		}
	}
	return ""
}

// counts are those of the first of some revisions against the one behind it.
func counts(revisions []olmv1alpha1.ClusterExtensionRevision) *store.Counts {
	own, others := refs(&revisions[0]), []manifest.Ref(nil)
	if len(revisions) > 1 {
		others = refs(&revisions[1])
	}
	changes := diff.Count(others, own)
	return &store.Counts{Objects: len(own), Added: changes.Added, Changed: changes.Changed, Removed: changes.Removed}
}

// number makes sure that the numbers of all revisions are known to be used, which
// they are as a rule. What history lacks of a revision that has no result yet is
// written with its first one, at the end of the pass.
func (v *visit) number(ctx context.Context) error {
	for i := range v.revisions {
		revision := &v.revisions[i]
		known := v.known[revision.UID]
		row := rowOf(revision, known.root)
		if row.Result != "" || !isLayer(revision) {
			if err := v.note(ctx, i, row); err != nil {
				return err
			}
			continue
		}
		if known.numbered {
			continue
		}
		if err := v.Heads.Confirm(ctx, v.chain, revision.Spec.Revision, revision.UID, row); err != nil {
			return err
		}
		known.numbered = true
	}
	return nil
}

// confirm makes sure that history says of all revisions what is known by now.
func (v *visit) confirm(ctx context.Context) error {
	for i := range v.revisions {
		if err := v.note(ctx, i, rowOf(&v.revisions[i], v.known[v.revisions[i].UID].root)); err != nil {
			return err
		}
	}
	return nil
}

// retire notes when a revision was deleted, before it goes.
func (v *visit) retire(ctx context.Context, i int) error {
	revision := &v.revisions[i]
	row := rowOf(revision, v.known[revision.UID].root)
	row.DeletedAt = revision.DeletionTimestamp.UTC()
	return v.note(ctx, i, row)
}

// note writes the row of the i-th revision, unless it is what was written last.
func (v *visit) note(ctx context.Context, i int, row store.Row) error {
	revision := &v.revisions[i]
	known := v.known[revision.UID]
	if known.written == row {
		return nil
	}
	complete, write := row, v.Heads.Confirm
	complete.Counts = counts(v.revisions[i:])
	if row.Result == olmv1alpha1.ResultSucceeded {
		write = v.Heads.Succeed
	}
	if err := write(ctx, v.chain, revision.Spec.Revision, revision.UID, complete); err != nil {
		return err
	}
	known.written = row
	return nil
}
