package chain

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	store "github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/pack"
)

// changeCauseAnnotation is where people say why, as they do on Deployments.
const changeCauseAnnotation = "kubernetes.io/change-cause"

// Heads keeps the numbers and the history of chains.
type Heads interface {
	Confirm(ctx context.Context, chain string, number int64, uid types.UID, row store.Row) error
}

// historian writes rows of history, each once.
type historian struct {
	heads Heads

	mu      sync.Mutex
	written map[types.UID]store.Row
}

func newHistorian(heads Heads) *historian {
	return &historian{heads: heads, written: map[types.UID]store.Row{}}
}

// write notes a revision in the history of its chain, and so that its number is
// used for ever.
func (h *historian) write(ctx context.Context, chain string, revision *olmv1alpha1.ClusterExtensionRevision) error {
	row := rowOf(revision)
	h.mu.Lock()
	known := h.written[revision.UID] == row
	h.mu.Unlock()
	if known {
		return nil
	}
	if err := h.heads.Confirm(ctx, chain, revision.Spec.Revision, revision.UID, row); err != nil {
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

func rowOf(revision *olmv1alpha1.ClusterExtensionRevision) store.Row {
	row := store.Row{
		PackRoot:  pack.Root(refs(revision)),
		CreatedAt: revision.CreationTimestamp.UTC(),
		Cause:     revision.Annotations[changeCauseAnnotation],
	}
	if revision.Status.RequestedBy != nil {
		row.RequestedBy = revision.Status.RequestedBy.Username
	}
	if meta.IsStatusConditionTrue(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded) {
		row.Result = olmv1alpha1.ConditionSucceeded
	}
	return row
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
		if err := v.historian.write(ctx, v.chain, &v.revisions[i]); err != nil {
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
