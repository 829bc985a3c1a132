package clusterextensionrevision

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Unreadable returns the revision that replaces an unreadable record in lists and watches. It has
// the values that its name implies, so that it belongs to its chain.
func Unreadable(name string, why error) runtime.Object {
	revision := &olm.ClusterExtensionRevision{ObjectMeta: objectmeta.Unreadable(name, why)}
	if chain, number, ok := olm.ChainOf(name); ok {
		revision.Labels = map[string]string{v1alpha1.ChainLabel: chain}
		revision.Spec.Revision = number
	}
	// Paused prevents a rollout, even by a component that does not recognize an unreadable
	// revision.
	revision.Spec.LifecycleState = olm.LifecycleStatePaused
	revision.Spec.CollisionProtection = olm.CollisionProtectionPrevent
	revision.Spec.TeardownPolicy = olm.TeardownPolicyOrphan
	revision.Spec.OnFailure = olm.OnFailureNone
	revision.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: objectmeta.ReasonUnreadable,
		Message: "the record cannot be read: " + revision.Annotations[objectmeta.UnreadableAnnotation],
	}}
	return revision
}
