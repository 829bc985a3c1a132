// Package overview summarises extensions from their revisions, for lists and first screens. It is
// pure.
package overview

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

// Extension is an extension with the revisions that the caller has read.
type Extension struct {
	Name string
	// Revisions are the revisions, newest first; empty for a ClusterExtension without revisions.
	Revisions []*v1alpha1.ClusterExtensionRevision
	// Asked is the state of its ClusterExtension's request; nil if there is none, or if it is
	// unknown.
	Asked *Asked
}

// Of groups revisions by extension, sorted by name. It omits revisions with invalid names, which do
// not exist in a cluster.
func Of(revisions []*v1alpha1.ClusterExtensionRevision) []Extension {
	groups := map[string]int{}
	var all []Extension
	for _, revision := range revisions {
		name, _, ok := olm.ChainOf(revision.Name)
		if !ok {
			continue
		}
		at, known := groups[name]
		if !known {
			at = len(all)
			groups[name] = at
			all = append(all, Extension{Name: name})
		}
		all[at].Revisions = append(all[at].Revisions, revision)
	}
	for _, one := range all {
		slices.SortFunc(one.Revisions, func(a, b *v1alpha1.ClusterExtensionRevision) int {
			return cmp.Compare(b.Spec.Revision, a.Spec.Revision)
		})
	}
	slices.SortFunc(all, func(a, b Extension) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Newest returns the revision with the highest number; nil without a revision.
func (e Extension) Newest() *v1alpha1.ClusterExtensionRevision {
	if len(e.Revisions) == 0 {
		return nil
	}
	return e.Revisions[0]
}

// Proposed returns the newest revision if it is paused and was never rolled out: it waits for a
// review. Otherwise it returns nil.
func (e Extension) Proposed() *v1alpha1.ClusterExtensionRevision {
	if newest := e.Newest(); newest != nil && Untried(newest) {
		return newest
	}
	return nil
}

// Untried reports whether a revision is paused and was never rolled out.
func Untried(revision *v1alpha1.ClusterExtensionRevision) bool {
	return revision.Spec.LifecycleState == v1alpha1.LifecycleStatePaused && revision.DeletionTimestamp == nil &&
		!Is(revision, v1alpha1.ConditionSucceeded) && available(revision) == 0
}

// Current returns the revision that shows the state of the extension: the newest revision that is
// not a proposal. If there are only proposals, it returns the newest. It returns nil without a
// revision.
func (e Extension) Current() *v1alpha1.ClusterExtensionRevision {
	if e.Proposed() != nil && len(e.Revisions) > 1 {
		return e.Revisions[1]
	}
	return e.Newest()
}

// OfClusterExtension reports whether a ClusterExtension owns a revision. Its user sets fields and
// annotations, and creates no revisions.
func OfClusterExtension(revision *v1alpha1.ClusterExtensionRevision) bool {
	owner := metav1.GetControllerOf(revision)
	return owner != nil && owner.Kind == extension.Kind.Kind
}

// Version returns the version that a revision installs, or empty.
func Version(revision *v1alpha1.ClusterExtensionRevision) string {
	return revision.Annotations[v1alpha1.VersionAnnotation]
}

// State returns the lifecycle state, or Deleting.
func State(revision *v1alpha1.ClusterExtensionRevision) string {
	if revision.DeletionTimestamp != nil {
		return v1alpha1.StateDeleting
	}
	return string(revision.Spec.LifecycleState)
}

// Objects returns the number of available objects of a revision, and the number of all objects.
func Objects(revision *v1alpha1.ClusterExtensionRevision) (ready, all int) {
	for i := range revision.Spec.Phases {
		all += len(revision.Spec.Phases[i].Objects)
	}
	return available(revision), all
}

// Superseded returns the number of objects whose content is from a newer revision.
func Superseded(revision *v1alpha1.ClusterExtensionRevision) int {
	superseded := 0
	for i := range revision.Status.Phases {
		superseded += int(revision.Status.Phases[i].Superseded)
	}
	return superseded
}

func available(revision *v1alpha1.ClusterExtensionRevision) int {
	ready := 0
	for i := range revision.Status.Phases {
		ready += int(revision.Status.Phases[i].Available)
	}
	return ready
}

// Is reports whether a condition is True.
func Is(revision *v1alpha1.ClusterExtensionRevision, conditionType string) bool {
	return meta.IsStatusConditionTrue(revision.Status.Conditions, conditionType)
}

// Observed reports whether the status is about the current generation of the spec.
func Observed(revision *v1alpha1.ClusterExtensionRevision) bool {
	return revision.Status.ObservedGeneration >= revision.Generation
}

// reasonFrozen is the reason of the condition Progressing while the cluster is frozen.
const reasonFrozen = "Frozen"

// NeedsPerson returns the condition that needs a user, or nil. The revision fails, is stalled, was
// not rolled back as requested, or is frozen. Last comes a revision that holds its owner, because
// its rollout continues.
func NeedsPerson(revision *v1alpha1.ClusterExtensionRevision) *metav1.Condition {
	conditions := revision.Status.Conditions
	for _, conditionType := range []string{v1alpha1.ConditionFailing, v1alpha1.ConditionStalled} {
		if found := meta.FindStatusCondition(conditions, conditionType); found != nil && found.Status == metav1.ConditionTrue {
			return found
		}
	}
	if found := meta.FindStatusCondition(conditions, v1alpha1.ConditionRolledBack); found != nil && found.Status == metav1.ConditionFalse {
		return found
	}
	if found := meta.FindStatusCondition(conditions, v1alpha1.ConditionProgressing); found != nil && found.Reason == reasonFrozen {
		return found
	}
	if found := meta.FindStatusCondition(conditions, v1alpha1.ConditionHeld); found != nil && found.Status == metav1.ConditionTrue {
		return found
	}
	return nil
}

// ReasonAnnotation holds the reason that a user gave for pausing, resuming or archiving a revision.
// Clients set and show it.
const ReasonAnnotation = v1alpha1.LifecycleReasonAnnotation

// Before returns the newest active revision before the given one, for comparison with a proposal.
// It is nil if none is active.
func (e Extension) Before(revision *v1alpha1.ClusterExtensionRevision) *v1alpha1.ClusterExtensionRevision {
	for _, earlier := range e.Revisions {
		if earlier.Spec.Revision < revision.Spec.Revision && earlier.Spec.LifecycleState == v1alpha1.LifecycleStateActive && earlier.DeletionTimestamp == nil {
			return earlier
		}
	}
	return nil
}
