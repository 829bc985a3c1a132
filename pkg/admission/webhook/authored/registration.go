package authored

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/extension"
)

// timeoutSeconds allows for two passes through kube-apiserver. The answer takes a millisecond.
const timeoutSeconds = 5

// Registration registers for creations and changes of a resource that meet the conditions, without
// subresources and deletions. kube-apiserver calls the webhook again after changes by other webhooks.
func Registration(resource schema.GroupVersionResource, scope admissionregistrationv1.ScopeType,
	failure admissionregistrationv1.FailurePolicyType, conditions ...admissionregistrationv1.MatchCondition) webhook.Registration {
	return webhook.Registration{
		Rules: []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups: []string{resource.Group}, APIVersions: []string{resource.Version}, Resources: []string{resource.Resource}, Scope: ptr.To(scope)},
		}},
		Conditions:     conditions,
		FailurePolicy:  failure,
		TimeoutSeconds: timeoutSeconds,
		Again:          true,
	}
}

// Spec returns a CEL expression for the spec of object, which is "object" or "oldObject".
func Spec(object string) string {
	return "(has(" + object + ".spec) ? dyn(" + object + ".spec) : dyn(null))"
}

// SpecRegistration registers for writes of cluster-scoped objects that change the spec or the stamp.
// While Penstock is unavailable, kube-apiserver refuses such writes.
func SpecRegistration(resource schema.GroupVersionResource) webhook.Registration {
	stamp := func(object string) string {
		return "(has(" + object + ".metadata.annotations) && '" + extension.AuthorAnnotation + "' in " + object + ".metadata.annotations ? " +
			object + ".metadata.annotations['" + extension.AuthorAnnotation + "'] : '')"
	}
	return Registration(resource, admissionregistrationv1.ClusterScope, admissionregistrationv1.Fail, admissionregistrationv1.MatchCondition{
		Name:       "changes-what-an-author-answers-for",
		Expression: "request.operation == 'CREATE' || " + Spec("object") + " != " + Spec("oldObject") + " || " + stamp("object") + " != " + stamp("oldObject"),
	})
}
