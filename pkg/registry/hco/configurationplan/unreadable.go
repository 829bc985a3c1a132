package configurationplan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
)

// Unreadable returns the plan that replaces an unreadable record in lists and watches.
func Unreadable(name string, why error) runtime.Object {
	plan := &hco.ConfigurationPlan{ObjectMeta: objectmeta.Unreadable(name, why)}
	plan.Spec.Action = hco.ActionIgnore
	plan.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: objectmeta.ReasonUnreadable,
		Message: "the record cannot be read: " + plan.Annotations[objectmeta.UnreadableAnnotation],
	}}
	return plan
}
