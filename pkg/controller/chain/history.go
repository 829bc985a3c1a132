package chain

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/manifest"
	store "github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/pack"
)

// Heads keeps the numbers and the history of chains.
type Heads interface {
	Confirm(ctx context.Context, chain string, number int64, uid types.UID, row store.Row) error
}

// historian writes rows of history, each once.
type historian struct {
	heads Heads

	mu sync.Mutex
	// written are the rows as they were written last, without counts: those
	// never change.
	written map[types.UID]store.Row
}

func newHistorian(heads Heads) *historian {
	return &historian{heads: heads, written: map[types.UID]store.Row{}}
}

// write notes a revision in the history of its chain, and so that its number is
// used for ever. before is the revision before it, nil for none.
func (h *historian) write(ctx context.Context, chain string, revision, before *olmv1alpha1.ClusterExtensionRevision) error {
	row := rowOf(revision)
	h.mu.Lock()
	known := h.written[revision.UID] == row
	h.mu.Unlock()
	if known {
		return nil
	}
	complete := row
	complete.Counts = counts(revision, before)
	if err := h.heads.Confirm(ctx, chain, revision.Spec.Revision, revision.UID, complete); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.written[revision.UID] = row
	if !row.DeletedAt.IsZero() {
		delete(h.written, revision.UID)
	}
	return nil
}

// rowOf is what history keeps of a revision, but for its counts.
func rowOf(revision *olmv1alpha1.ClusterExtensionRevision) store.Row {
	row := store.Row{
		PackRoot:  pack.Root(refs(revision)),
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

func counts(revision, before *olmv1alpha1.ClusterExtensionRevision) *store.Counts {
	own, others := refs(revision), []manifest.Ref(nil)
	if before != nil {
		others = refs(before)
	}
	changes := diff.Count(others, own)
	return &store.Counts{Objects: len(own), Added: changes.Added, Changed: changes.Changed, Removed: changes.Removed}
}

// refs lists what a revision refers to, in its order.
func refs(revision *olmv1alpha1.ClusterExtensionRevision) []manifest.Ref {
	var out []manifest.Ref
	for _, phase := range revision.Spec.Phases {
		for _, object := range phase.Objects {
			out = append(out, ref(object))
		}
	}
	return out
}

// confirm makes sure that the numbers of all revisions are known to be used.
func (v *visit) confirm(ctx context.Context) error {
	for i := range v.revisions {
		var before *olmv1alpha1.ClusterExtensionRevision
		if i+1 < len(v.revisions) {
			before = &v.revisions[i+1]
		}
		if err := v.historian.write(ctx, v.chain, &v.revisions[i], before); err != nil {
			return err
		}
	}
	return nil
}

// retire notes when a revision was deleted, before it goes.
func (v *visit) retire(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision) error {
	row := rowOf(revision)
	row.DeletedAt = revision.DeletionTimestamp.UTC()
	return v.Heads.Confirm(ctx, v.chain, revision.Spec.Revision, revision.UID, row)
}
