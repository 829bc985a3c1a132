package targetadmission

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// kept is what matching needs of a configuration of webhooks, or of a policy. Its fields are
// those of all versions of the API that served these kinds.
type kept struct {
	Webhooks []struct {
		Rules             []admissionregistrationv1.RuleWithOperations `json:"rules,omitempty"`
		MatchPolicy       *admissionregistrationv1.MatchPolicyType     `json:"matchPolicy,omitempty"`
		NamespaceSelector *metav1.LabelSelector                        `json:"namespaceSelector,omitempty"`
		MatchConditions   []admissionregistrationv1.MatchCondition     `json:"matchConditions,omitempty"`
	} `json:"webhooks,omitempty"`
	Spec struct {
		MatchConstraints *struct {
			ResourceRules     []admissionregistrationv1.NamedRuleWithOperations `json:"resourceRules,omitempty"`
			MatchPolicy       *admissionregistrationv1.MatchPolicyType          `json:"matchPolicy,omitempty"`
			NamespaceSelector *metav1.LabelSelector                             `json:"namespaceSelector,omitempty"`
		} `json:"matchConstraints,omitempty"`
		ParamKind        *admissionregistrationv1.ParamKind        `json:"paramKind,omitempty"`
		MatchConditions  []admissionregistrationv1.MatchCondition  `json:"matchConditions,omitempty"`
		Validations      []admissionregistrationv1.Validation      `json:"validations,omitempty"`
		AuditAnnotations []admissionregistrationv1.AuditAnnotation `json:"auditAnnotations,omitempty"`
	} `json:"spec"`
}

// keep leaves out what is large: whom a webhook is called at, with its authority, and
// managedFields.
func keep(delivered any) (any, error) {
	live, is := delivered.(*unstructured.Unstructured)
	if !is {
		return delivered, nil
	}
	trimmed := &unstructured.Unstructured{Object: map[string]any{}}
	trimmed.SetName(live.GetName())
	trimmed.SetResourceVersion(live.GetResourceVersion())
	trimmed.SetGroupVersionKind(live.GroupVersionKind())
	for _, field := range []string{"spec", "webhooks"} {
		if value, found := live.Object[field]; found {
			trimmed.Object[field] = runtime.DeepCopyJSONValue(value)
		}
	}
	hooks, _ := trimmed.Object["webhooks"].([]any)
	for _, hook := range hooks {
		if fields, is := hook.(map[string]any); is {
			delete(fields, "clientConfig")
		}
	}
	return trimmed, nil
}

// constraint is a webhook or a policy that may have a say in what its rules match.
type constraint struct {
	rules []admissionregistrationv1.NamedRuleWithOperations
	// namespaces are requirements of names of namespaces.
	namespaces labels.Requirements
}

// everything is the constraint of what cannot be read.
func everything() constraint {
	all := admissionregistrationv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}}
	return constraint{rules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationAll}, Rule: all,
	}}}}
}

// constraintsOf are those that an object makes for a request. Whether a policy is bound is not
// looked at.
func constraintsOf(live *unstructured.Unstructured, request request) []constraint {
	var read kept
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &read); err != nil {
		return []constraint{everything()}
	}
	var all []constraint
	for _, hook := range read.Webhooks {
		if request.excluded(hook.MatchConditions) {
			continue
		}
		var named []admissionregistrationv1.NamedRuleWithOperations
		for _, rule := range hook.Rules {
			named = append(named, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: rule})
		}
		all = append(all, newConstraint(named, hook.MatchPolicy, hook.NamespaceSelector))
	}
	if _, policy := live.Object["spec"]; !policy {
		return all
	}
	// With parameters there are other ways to refuse: that there are none.
	if read.Spec.ParamKind == nil && (request.excluded(read.Spec.MatchConditions) || len(read.Spec.AuditAnnotations) == 0 && request.passes(read.Spec.Validations)) {
		return all
	}
	if read.Spec.MatchConstraints == nil {
		return append(all, everything())
	}
	return append(all, newConstraint(read.Spec.MatchConstraints.ResourceRules, read.Spec.MatchConstraints.MatchPolicy, read.Spec.MatchConstraints.NamespaceSelector))
}

// newConstraint keeps of a selector of namespaces what their names decide.
func newConstraint(given []admissionregistrationv1.NamedRuleWithOperations, policy *admissionregistrationv1.MatchPolicyType, selector *metav1.LabelSelector) constraint {
	var c constraint
	for _, rule := range given {
		if policy == nil || *policy != admissionregistrationv1.Exact {
			// Versions of a resource are the same one; and group extensions had what is in
			// others now (k8s.io/kubernetes/pkg/kubeapiserver, cohabitating resources).
			rule.APIVersions = []string{"*"}
			if slices.Contains(rule.APIGroups, "extensions") {
				rule.APIGroups = []string{"*"}
			}
		}
		c.rules = append(c.rules, rule)
	}
	if selector == nil {
		return c
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return c
	}
	required, _ := parsed.Requirements()
	for _, one := range required {
		if one.Key() == corev1.LabelMetadataName {
			c.namespaces = append(c.namespaces, one)
		}
	}
	return c
}

// concerns is true for updates of an object that may match. Selectors of objects, and other
// labels of namespaces, count as if they matched.
func (c constraint) concerns(id manifest.ID, resource schema.GroupVersionResource) bool {
	if id.Namespace != "" {
		name := labels.Set{corev1.LabelMetadataName: id.Namespace}
		for _, one := range c.namespaces {
			if !one.Matches(name) {
				return false
			}
		}
	}
	kind := resource.GroupVersion().WithKind(id.Kind)
	update := admission.NewAttributesRecord(nil, nil, kind, id.Namespace, id.Name, resource, "", admission.Update, nil, false, nil)
	return slices.ContainsFunc(c.rules, func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
		if len(rule.ResourceNames) > 0 && !slices.Contains(rule.ResourceNames, id.Name) {
			return false
		}
		matcher := rules.Matcher{Rule: rule.RuleWithOperations, Attr: update}
		return matcher.Matches()
	})
}
