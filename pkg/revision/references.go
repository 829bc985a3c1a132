package revision

import (
	"slices"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest/release"
	"github.com/penstock-project/penstock/pkg/revision/references"
	"github.com/penstock-project/penstock/pkg/store/pack"
)

// IsLayer is true for revisions whose objects are wanted in the cluster.
func IsLayer(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.DeletionTimestamp.IsZero() && revision.Spec.LifecycleState != olmv1alpha1.LifecycleStateArchived && !IsHanded(revision)
}

// IsHanded is true for revisions whose objects were handed to Helm.
func IsHanded(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Annotations[olmv1alpha1.HandedToHelmAnnotation] != ""
}

// LeavesObjects is true for revisions that are no layer any more and whose objects stay: of those
// that are being deleted, and those that were handed to Helm.
func LeavesObjects(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return IsHanded(revision) || !revision.DeletionTimestamp.IsZero() && revision.Spec.TeardownPolicy == olmv1alpha1.TeardownPolicyOrphan
}

// PackRoot names the pack of a revision: it follows from what the revision refers to.
func PackRoot(revision *olmv1alpha1.ClusterExtensionRevision) string {
	return pack.Root(references.Of(revision))
}

// Mark returns the way in which an object is rolled out, from the entry of a revision.
func Mark(entry olmv1alpha1.RevisionObject) release.Mark {
	return release.Mark{CreateOnly: entry.CreateOnly, Level: int(entry.InstallLevel)}
}

// HasLevels is true for a revision with an object that is not of the first level.
func HasLevels(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return slices.ContainsFunc(revision.Spec.Phases, func(phase olmv1alpha1.RevisionPhase) bool {
		return slices.ContainsFunc(phase.Objects, func(object olmv1alpha1.RevisionObject) bool { return object.InstallLevel > 0 })
	})
}
