package clusterextensionrevision

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/status"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/chainversion"
)

// The transaction that writes a revision also writes its history: at its creation, at a new result
// in status, and at its deletion. The controllers check the history and add missing rows, such as
// those of imports or of an older Penstock.

// StatusREST serves the subresource status of revisions.
type StatusREST struct {
	*status.REST
	revisions *REST
}

// Update writes status, and records a new result in the history.
func (s *StatusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, force bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	ctx = chainversion.Referring(ctx)
	return s.REST.Update(ctx, name, info, create, func(ctx context.Context, obj, old runtime.Object) error {
		if update != nil {
			if err := update(ctx, obj, old); err != nil {
				return err
			}
		}
		if options != nil && dryrun.IsDryRun(options.DryRun) {
			return nil
		}
		return s.revisions.noteResult(ctx, obj.(*olm.ClusterExtensionRevision), old.(*olm.ClusterExtensionRevision))
	}, force, options)
}

// noteResult adds a changed result in status to the history, in the same write.
func (r *REST) noteResult(ctx context.Context, revision, before *olm.ClusterExtensionRevision) error {
	precondition := chainversion.From(ctx)
	precondition.Accompany(nil)
	name, _, ok := olm.ChainOf(revision.Name)
	if !ok || slices.Equal(results(revision), results(before)) {
		return nil
	}
	row, err := rowOf(revision, nil)
	if err != nil {
		return asStatus(err)
	}
	row.Counts = nil // keep the counts of the creation
	precondition.Accompany(orLater(ctx, revision, r.heads.Note(name, row, row.Result == v1alpha1.ResultSucceeded)))
	return nil
}

// orLater makes a history write optional: if it fails, the revision is still written. Status must
// report an extension's fault even if the fault is in the history, and users must be able to delete
// such a revision. The controllers write the history later, or report the reason in status.
func orLater(ctx context.Context, revision *olm.ClusterExtensionRevision, note *store.CompanionWrite) *store.CompanionWrite {
	return &store.CompanionWrite{Key: note.Key, Known: note.Known, Change: func(found store.Value) ([]byte, error) {
		record, err := note.Change(found)
		if err != nil {
			klog.FromContext(ctx).Error(err, "The history entry of a revision could not be written with the revision", "revision", revision.Name)
			return nil, nil
		}
		return record, nil
	}}
}

// results returns the conditions that determine the result in a history row.
func results(revision *olm.ClusterExtensionRevision) []bool {
	var out []bool
	for _, kind := range []string{v1alpha1.ConditionSucceeded, v1alpha1.ConditionFailing, v1alpha1.ConditionStalled, v1alpha1.ConditionProgressing} {
		out = append(out, meta.IsStatusConditionTrue(revision.Status.Conditions, kind))
	}
	return out
}

// recordRemoval records a revision's deletion in the history, in the write that removes the last
// finalizer. If the history cannot be written, Penstock itself keeps its finalizer.
func (r *REST) recordRemoval(ctx context.Context, revision *olm.ClusterExtensionRevision) error {
	name, _, ok := olm.ChainOf(revision.Name)
	if !ok || revision.DeletionTimestamp == nil || len(revision.Finalizers) > 0 {
		return nil
	}
	row, err := rowOf(revision, nil)
	if err != nil {
		return asStatus(err)
	}
	row.Counts, row.DeletedAt = nil, revision.DeletionTimestamp.UTC()
	note := r.heads.Note(name, row, row.Result == v1alpha1.ResultSucceeded)
	if who, _ := genericrequest.UserFrom(ctx); !request.IsInternal(ctx, who) {
		note = orLater(ctx, revision, note)
	}
	chainversion.From(ctx).Accompany(note)
	return nil
}

// rowOf returns the history row of a revision. others are revisions of its chain, in any order.
func rowOf(revision *olm.ClusterExtensionRevision, others []olm.ClusterExtensionRevision) (chain.Row, error) {
	compared := []olm.ClusterExtensionRevision{*revision}
	for i := range others {
		older := others[i].Spec.Revision < revision.Spec.Revision
		switch {
		case older && len(compared) == 1:
			compared = append(compared, others[i])
		case older && others[i].Spec.Revision > compared[1].Spec.Revision:
			compared[1] = others[i]
		}
	}
	external, err := rev.FromHub(compared...)
	if err != nil {
		return chain.Row{}, err
	}
	row := rev.Row(&external[0], rootOf(revision))
	row.Revision, row.UID, row.Counts = revision.Spec.Revision, revision.UID, rev.Counts(external)
	return row, nil
}
