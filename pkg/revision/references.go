package revision

import (
	"slices"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest/release"
	"github.com/penstock-project/penstock/pkg/revision/references"
	"github.com/penstock-project/penstock/pkg/store/pack"
)

// IsLayer reports whether the objects of a revision must be in the cluster.
func IsLayer(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.DeletionTimestamp.IsZero() && revision.Spec.LifecycleState != olmv1alpha1.LifecycleStateArchived && !IsHanded(revision)
}

// IsHanded reports whether the objects of a revision were handed to Helm.
func IsHanded(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Annotations[olmv1alpha1.HandedToHelmAnnotation] != ""
}

// LeavesObjects reports whether the objects of a former layer stay in the cluster. They stay if the
// revision was handed to Helm, or is being deleted with policy Orphan.
func LeavesObjects(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return IsHanded(revision) || !revision.DeletionTimestamp.IsZero() && revision.Spec.TeardownPolicy == olmv1alpha1.TeardownPolicyOrphan
}

// PackRoot returns the root of a revision's pack, computed from its references.
func PackRoot(revision *olmv1alpha1.ClusterExtensionRevision) string {
	return pack.Root(references.Of(revision))
}

// Mark returns the rollout instructions of an object from its entry in a revision.
func Mark(entry olmv1alpha1.RevisionObject) release.Mark {
	return release.Mark{CreateOnly: entry.CreateOnly, Level: int(entry.InstallLevel)}
}

// HasLevels reports whether a revision has an object above the first install level.
func HasLevels(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return slices.ContainsFunc(revision.Spec.Phases, func(phase olmv1alpha1.RevisionPhase) bool {
		return slices.ContainsFunc(phase.Objects, func(object olmv1alpha1.RevisionObject) bool { return object.InstallLevel > 0 })
	})
}
