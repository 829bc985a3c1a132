package objectmeta

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReasonPending is the reason of a condition that no controller has determined yet.
const ReasonPending = "Pending"

// Unobserved returns the condition of a new object that no controller has processed. Tools that
// wait for objects (kstatus, and so Flux) treat an object without conditions as ready.
func Unobserved(condition string, created metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: condition, Status: metav1.ConditionUnknown, Reason: ReasonPending,
		Message: "Penstock has not looked at it yet", LastTransitionTime: created,
	}
}
