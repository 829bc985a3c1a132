package webhook

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionapply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
)

// Address is where the host finds us: a port of a Service, whose certificate the
// bundle verifies.
type Address struct {
	Namespace, Service string
	Port               int32
	CABundle           []byte
}

// Configuration registers webhooks under one name.
//
// Nothing in our own namespace and in those of the control plane is sent to us, so
// that when we are down everything can be repaired that it takes to bring us back.
func Configuration(name string, webhooks []Webhook, at Address) *admissionapply.ValidatingWebhookConfigurationApplyConfiguration {
	configuration := admissionapply.ValidatingWebhookConfiguration(name)
	for _, w := range webhooks {
		configuration.WithWebhooks(w.apply(at))
	}
	return configuration
}

func (w Webhook) apply(at Address) *admissionapply.ValidatingWebhookApplyConfiguration {
	r := w.Registration
	out := admissionapply.ValidatingWebhook().
		WithName(w.Name + ".penstock.dev").
		WithClientConfig(admissionapply.WebhookClientConfig().WithCABundle(at.CABundle...).
			WithService(admissionapply.ServiceReference().
				WithNamespace(at.Namespace).WithName(at.Service).WithPath(w.Path()).WithPort(at.Port))).
		WithFailurePolicy(r.FailurePolicy).
		// Also through other versions of a resource.
		WithMatchPolicy(admissionregistrationv1.Equivalent).
		WithSideEffects(admissionregistrationv1.SideEffectClassNone).
		WithTimeoutSeconds(r.TimeoutSeconds).
		WithAdmissionReviewVersions("v1").
		WithNamespaceSelector(r.namespaces(at.Namespace))
	if r.ObjectLabel != "" {
		out.WithObjectSelector(metaapply.LabelSelector().WithMatchExpressions(
			metaapply.LabelSelectorRequirement().WithKey(r.ObjectLabel).WithOperator(metav1.LabelSelectorOpExists)))
	}
	for _, rule := range r.Rules {
		out.WithRules(admissionapply.RuleWithOperations().
			WithAPIGroups(rule.APIGroups...).WithAPIVersions(rule.APIVersions...).WithResources(rule.Resources...).
			WithOperations(rule.Operations...).WithScope(*rule.Scope))
	}
	for _, condition := range r.Conditions {
		out.WithMatchConditions(admissionapply.MatchCondition().WithName(condition.Name).WithExpression(condition.Expression))
	}
	return out
}

func (r Registration) namespaces(ours string) *metaapply.LabelSelectorApplyConfiguration {
	selector := metaapply.LabelSelector().WithMatchExpressions(metaapply.LabelSelectorRequirement().
		WithKey("kubernetes.io/metadata.name").WithOperator(metav1.LabelSelectorOpNotIn).
		WithValues(metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease", ours))
	if r.NamespaceLabel != "" {
		selector.WithMatchLabels(map[string]string{r.NamespaceLabel: "true"})
	}
	return selector
}
