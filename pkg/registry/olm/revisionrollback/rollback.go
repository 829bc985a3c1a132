package revisionrollback

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
)

// rollback describes a rollback from the newest revision to a target.
type rollback struct {
	chain          string
	target, newest *olm.ClusterExtensionRevision
	// number is the number of the revision that the rollback creates.
	number int64
}

// find returns the rollback to a revision. If from is given, it must be the newest revision, so
// that a repeated request does not roll back twice.
func (r *REST) find(ctx context.Context, name, from string) (rollback, error) {
	target, err := r.deps.Revisions.Stored(ctx, name)
	if err != nil {
		return rollback{}, err
	}
	wanted := rollback{target: target}
	wanted.chain, _, _ = olm.ChainOf(name)
	if wanted.newest, err = r.newest(ctx, wanted.chain); err != nil {
		return rollback{}, err
	}
	if wanted.newest == nil || wanted.newest.Spec.Revision <= target.Spec.Revision {
		return rollback{}, conflict(name, "it is the newest revision of its extension: there is nothing to roll back")
	}
	if from != "" && from != wanted.newest.Name {
		return rollback{}, conflict(name, fmt.Sprintf("%s is not the newest revision of its extension any more: %s is", from, wanted.newest.Name))
	}
	head, _, err := r.deps.Heads.Get(ctx, wanted.chain)
	if err != nil {
		return rollback{}, apierrors.NewInternalError(err)
	}
	wanted.number = max(head.Next(), wanted.newest.Spec.Revision+1)
	return wanted, nil
}

func (r *REST) newest(ctx context.Context, chain string) (*olm.ClusterExtensionRevision, error) {
	revisions, err := r.deps.Revisions.Chain(ctx, chain)
	if err != nil {
		return nil, err
	}
	var newest *olm.ClusterExtensionRevision
	for i := range revisions {
		if newest == nil || revisions[i].Spec.Revision > newest.Spec.Revision {
			newest = &revisions[i]
		}
	}
	return newest, nil
}

// revision returns the revision to create. Its content is the target's. Its owner, and the fields
// that may change over time, are those of the newest revision. For example, the target's policy to
// orphan its objects may be the result of its own deletion.
//
// Acknowledgements, such as for the loss of custom resources, applied to the target's own rollout
// and are not copied.
func (w rollback) revision(cause string) *olm.ClusterExtensionRevision {
	newest, target := w.newest.DeepCopy(), w.target.DeepCopy()
	revision := &olm.ClusterExtensionRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            olm.RevisionName(w.chain, w.number),
			Labels:          target.Labels,
			Annotations:     maps.Clone(target.Annotations),
			OwnerReferences: newest.OwnerReferences,
		},
		Spec: target.Spec,
	}
	for _, key := range append(clusterextensionrevision.ServerAnnotations(), corev1.LastAppliedConfigAnnotation, v1alpha1.AllowCRDDeletionAnnotation, v1alpha1.ReportDriftUntilAnnotation, v1alpha1.TakeOverFromAnnotation,
		v1alpha1.AcknowledgeDeletionAnnotation, v1alpha1.ApproveAnnotation, v1alpha1.ApproveNotBeforeAnnotation, v1alpha1.ReleaseHoldAnnotation, v1alpha1.ChangeCauseAnnotation) {
		delete(revision.Annotations, key)
	}
	maps.DeleteFunc(revision.Annotations, func(key, _ string) bool { return clusterextensionrevision.IsAcknowledgement(key) })
	if cause != "" {
		metav1.SetMetaDataAnnotation(&revision.ObjectMeta, v1alpha1.ChangeCauseAnnotation, cause)
	}
	revision.Spec.LifecycleState = olm.LifecycleStateActive
	revision.Spec.Revision = w.number
	revision.Spec.Previous = nil // the server sets it
	revision.Spec.ProgressDeadlineMinutes = newest.Spec.ProgressDeadlineMinutes
	revision.Spec.SuccessDelaySeconds = newest.Spec.SuccessDelaySeconds
	revision.Spec.MetricChecks = newest.Spec.MetricChecks
	revision.Spec.OnFailure = newest.Spec.OnFailure
	revision.Spec.TeardownPolicy = newest.Spec.TeardownPolicy
	revision.Spec.AdoptedTeardownPolicy = newest.Spec.AdoptedTeardownPolicy
	return revision
}
