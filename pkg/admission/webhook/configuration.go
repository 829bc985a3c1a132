package webhook

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionapply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
)

// Address is the port of the Service at which the host reaches Penstock. The CA bundle verifies the
// certificate of the Service.
type Address struct {
	Namespace, Service string
	Port               int32
	CABundle           []byte
}

// hostService is the Service of kube-apiserver, in the namespace default. kube-apiserver reaches it
// without the network: it calls itself, with the credentials of its own requests (k8s.io/apiserver,
// util/webhook: NewDefaultAuthenticationInfoResolverWrapper).
const hostService = "kubernetes"

// Configuration registers the validating webhooks under one name.
//
// Objects in Penstock's namespace and in the namespaces of the control plane are excluded. So while
// Penstock is down, every object that it needs for a restart can be changed.
func Configuration(name string, webhooks []Webhook, at Address) *admissionapply.ValidatingWebhookConfigurationApplyConfiguration {
	configuration := admissionapply.ValidatingWebhookConfiguration(name)
	for _, w := range webhooks {
		if !w.Mutating {
			configuration.WithWebhooks(w.apply(at))
		}
	}
	return configuration
}

// MutatingConfiguration registers the mutating webhooks under one name.
func MutatingConfiguration(name string, webhooks []Webhook, at Address) *admissionapply.MutatingWebhookConfigurationApplyConfiguration {
	configuration := admissionapply.MutatingWebhookConfiguration(name)
	for _, w := range webhooks {
		if w.Mutating {
			configuration.WithWebhooks(w.applyMutating(at))
		}
	}
	return configuration
}

func (w Webhook) client(at Address) *admissionapply.WebhookClientConfigApplyConfiguration {
	service := admissionapply.ServiceReference().WithNamespace(at.Namespace).WithName(at.Service).WithPath(w.Path()).WithPort(at.Port)
	if w.Authenticated {
		// kube-apiserver verifies its own certificate as for its own requests.
		return admissionapply.WebhookClientConfig().WithService(service.WithNamespace(metav1.NamespaceDefault).WithName(hostService).WithPort(443))
	}
	return admissionapply.WebhookClientConfig().WithCABundle(at.CABundle...).WithService(service)
}

func (w Webhook) apply(at Address) *admissionapply.ValidatingWebhookApplyConfiguration {
	r := w.Registration
	out := admissionapply.ValidatingWebhook().
		WithName(w.Name + ".penstock.dev").
		WithClientConfig(w.client(at)).
		WithFailurePolicy(r.FailurePolicy).
		// Match other versions of a resource too.
		WithMatchPolicy(admissionregistrationv1.Equivalent).
		WithSideEffects(admissionregistrationv1.SideEffectClassNone).
		WithTimeoutSeconds(r.TimeoutSeconds).
		WithAdmissionReviewVersions("v1").
		WithNamespaceSelector(r.namespaces(at.Namespace)).
		WithRules(r.rules()...).
		WithMatchConditions(r.conditions()...)
	if r.ObjectLabel != "" {
		out.WithObjectSelector(r.objects())
	}
	return out
}

func (w Webhook) applyMutating(at Address) *admissionapply.MutatingWebhookApplyConfiguration {
	r := w.Registration
	out := admissionapply.MutatingWebhook().
		WithName(w.Name + ".penstock.dev").
		WithClientConfig(w.client(at)).
		WithFailurePolicy(r.FailurePolicy).
		WithMatchPolicy(admissionregistrationv1.Equivalent).
		WithSideEffects(admissionregistrationv1.SideEffectClassNone).
		WithTimeoutSeconds(r.TimeoutSeconds).
		WithAdmissionReviewVersions("v1").
		WithNamespaceSelector(r.namespaces(at.Namespace)).
		WithRules(r.rules()...).
		WithMatchConditions(r.conditions()...).
		WithReinvocationPolicy(admissionregistrationv1.NeverReinvocationPolicy)
	if r.Again {
		out.WithReinvocationPolicy(admissionregistrationv1.IfNeededReinvocationPolicy)
	}
	if r.ObjectLabel != "" {
		out.WithObjectSelector(r.objects())
	}
	return out
}

func (r Registration) objects() *metaapply.LabelSelectorApplyConfiguration {
	return metaapply.LabelSelector().WithMatchExpressions(
		metaapply.LabelSelectorRequirement().WithKey(r.ObjectLabel).WithOperator(metav1.LabelSelectorOpExists))
}

func (r Registration) rules() []*admissionapply.RuleWithOperationsApplyConfiguration {
	var out []*admissionapply.RuleWithOperationsApplyConfiguration
	for _, rule := range r.Rules {
		out = append(out, admissionapply.RuleWithOperations().
			WithAPIGroups(rule.APIGroups...).WithAPIVersions(rule.APIVersions...).WithResources(rule.Resources...).
			WithOperations(rule.Operations...).WithScope(*rule.Scope))
	}
	return out
}

func (r Registration) conditions() []*admissionapply.MatchConditionApplyConfiguration {
	var out []*admissionapply.MatchConditionApplyConfiguration
	for _, condition := range r.Conditions {
		out = append(out, admissionapply.MatchCondition().WithName(condition.Name).WithExpression(condition.Expression))
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
