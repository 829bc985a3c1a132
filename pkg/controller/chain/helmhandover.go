package chain

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/text"
)

// helmManager is the field manager of ClusterExtensions that Helm applies.
const helmManager = "penstock-helm"

// isKept reports whether a revision was handed to Helm, and is neither archived nor deleted.
func isKept(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return rev.IsHanded(revision) && revision.DeletionTimestamp.IsZero() && revision.Spec.LifecycleState != olmv1alpha1.LifecycleStateArchived
}

// newOwnerOf returns the owner for the objects of a revision that is handed to Helm. The objects
// are deleted with the ClusterExtension, unless they must be kept.
func newOwnerOf(revision *olmv1alpha1.ClusterExtensionRevision) *targetclient.NewOwner {
	handed := &targetclient.NewOwner{Manager: helmManager, Operation: metav1.ManagedFieldsOperationApply}
	if owner := metav1.GetControllerOf(revision); owner != nil && revision.Spec.TeardownPolicy != olmv1alpha1.TeardownPolicyOrphan {
		handed.Owner = owner.DeepCopy()
		handed.Owner.BlockOwnerDeletion = nil
	}
	return handed
}

// handed describes a revision whose objects were handed to Helm. The request is fulfilled, and Held
// becomes True, once no object in the cluster belongs to the revision.
func (w *writer) handed(revision *olmv1alpha1.ClusterExtensionRevision, found finding) {
	for i := range w.status.Phases {
		phase := &w.status.Phases[i]
		*phase = olmv1alpha1.PhaseStatus{Name: phase.Name, State: olmv1alpha1.PhaseStateArchived, Objects: phase.Objects, StartedAt: phase.StartedAt, AvailableAt: phase.AvailableAt}
	}
	release := revision.Annotations[olmv1alpha1.HandedToHelmAnnotation]
	left := ""
	switch {
	case len(found.leaving) > 0:
		left = fmt.Sprintf("%s %s still to be handed to Helm (release %s): %s", text.Count(len(found.leaving), "object"), verb(len(found.leaving)), release, describe(found.leaving[0]))
	case found.remaining != nil:
		left = fmt.Sprintf("%s is still to be handed to Helm (release %s)", found.remaining, release)
	}
	message := "its objects belong to the Helm release " + release
	w.say(olmv1alpha1.ConditionAvailable, metav1.ConditionUnknown, reasonHanded, message)
	if !w.is(olmv1alpha1.ConditionSucceeded) {
		w.set(olmv1alpha1.ConditionSucceeded, false, reasonHanded, message)
	}
	person := first(found.leaving, func(f rollout.Failure) bool { return f.NeedsPerson })
	w.fail(person, first(found.leaving, func(f rollout.Failure) bool { return f.Stuck }))
	w.set(olmv1alpha1.ConditionStalled, false, reasonNotStalled, nothingStalls)
	if left != "" {
		w.set(olmv1alpha1.ConditionProgressing, true, reasonHanding, clip(left))
		w.set(olmv1alpha1.ConditionReady, false, reasonHanding, clip(left))
		return
	}
	w.set(olmv1alpha1.ConditionProgressing, false, reasonHanded, message)
	w.set(olmv1alpha1.ConditionReady, true, reasonHanded, message)
	w.set(olmv1alpha1.ConditionHeld, true, reasonHanded, message+": no revision is rolled out while the feature gate BoxcutterRuntime is off")
}
