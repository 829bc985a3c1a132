package objectmeta

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReasonPending is that of a condition nobody has found out about yet.
const ReasonPending = "Pending"

// Unobserved is the condition of a new object that no controller has looked at. Tools
// that wait for objects (kstatus, and so Flux) take one without conditions for ready.
func Unobserved(condition string, created metav1.Time) metav1.Condition {
	return metav1.Condition{
		Type: condition, Status: metav1.ConditionUnknown, Reason: ReasonPending,
		Message: "Penstock has not looked at it yet", LastTransitionTime: created,
	}
}
