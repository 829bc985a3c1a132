package clusterextensionrevision

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Unreadable is the revision that lists and watches have in the place of one whose
// record cannot be read. It has what follows from its name, so that who looks for its
// chain finds it there.
func Unreadable(name string, why error) runtime.Object {
	revision := &olm.ClusterExtensionRevision{ObjectMeta: objectmeta.Unreadable(name, why)}
	if chain, number, ok := olm.ChainOf(name); ok {
		revision.Labels = map[string]string{v1alpha1.ChainLabel: chain}
		revision.Spec.Revision = number
	}
	// Nothing is rolled out of it, also by who does not know what it is.
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
