package bundle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// objectName returns the name of the webhook's configuration: generateName without a trailing dash.
// In old bundles, generateName was a prefix.
func (w webhook) objectName() string { return strings.TrimSuffix(w.GenerateName, "-") }

// service returns the reference by which the API server calls a webhook.
func (in *installation) service(w webhook) admissionv1.ServiceReference {
	port := w.port()
	return admissionv1.ServiceReference{
		Namespace: in.options.InstallNamespace, Name: serviceName(w.DeploymentName), Path: w.WebhookPath, Port: &port,
	}
}

// webhookServers returns the names of the Deployments that serve webhooks, sorted.
func (in *installation) webhookServers() []string {
	var names []string
	for _, one := range in.csv.Spec.Webhooks {
		names = append(names, one.DeploymentName)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// services adds a Service for each Deployment that serves webhooks, with all ports that its
// webhooks use.
func (in *installation) services() error {
	for _, name := range in.webhookServers() {
		var ports []corev1.ServicePort
		for _, one := range in.csv.Spec.Webhooks {
			if one.DeploymentName != name {
				continue
			}
			port := corev1.ServicePort{Name: strconv.Itoa(int(one.port())), Port: one.port(), TargetPort: intstr.FromInt32(one.port())}
			if one.TargetPort != nil {
				port.TargetPort = *one.TargetPort
			}
			ports = append(ports, port)
		}
		slices.SortFunc(ports, func(a, b corev1.ServicePort) int {
			return cmp.Or(cmp.Compare(a.Port, b.Port), strings.Compare(a.TargetPort.String(), b.TargetPort.String()))
		})
		service := &corev1.Service{
			TypeMeta: typed("v1", "Service"), ObjectMeta: in.namespaced(serviceName(name)),
			Spec: corev1.ServiceSpec{Ports: slices.Compact(ports), Selector: selected(in.deployment(name).Spec)},
		}
		in.options.Certificates.annotateService(service, certificateName(service.Name))
		if kept, err := in.ownService(service, name); err != nil || kept {
			if err != nil {
				return err
			}
			continue
		}
		if err := in.addFrom(service, []any{"spec", "webhookdefinitions"}); err != nil {
			return err
		}
	}
	return nil
}

// ownService keeps a Service of the bundle that has the name of the generated Service: the bundle's
// author chose its selector. It adds the annotations for the certificate.
func (in *installation) ownService(made *corev1.Service, deployment string) (kept bool, err error) {
	at, is := in.places[manifest.ID{Kind: "Service", Namespace: made.Namespace, Name: made.Name}]
	if !is {
		return false, nil
	}
	one := &in.made[at]
	content, err := raw(one.Object)
	if err != nil {
		return false, err
	}
	for key, value := range made.Annotations {
		child(child(content, "metadata"), "annotations")[key] = value
	}
	var missing []string
	for _, wanted := range made.Spec.Ports {
		if !slices.ContainsFunc(objectsOf(child(content, "spec")["ports"]), func(port map[string]any) bool { return fmt.Sprint(port["port"]) == fmt.Sprint(wanted.Port) }) {
			missing = append(missing, strconv.Itoa(int(wanted.Port)))
		}
	}
	text := fmt.Sprintf("the bundle's Service is kept, and none is made for the webhooks of Deployment %s", deployment)
	if len(missing) > 0 {
		text += ": it lacks their port " + strings.Join(missing, ", ") + ", so the API server cannot call them"
	}
	in.warn(*one, nil, "%s", text)
	one.Object, err = manifest.Canonical(content)
	return true, err
}

// conversions warns of definitions whose conversion Service is not in the bundle.
func (in *installation) conversions() error {
	made := map[string]bool{}
	for _, deployment := range in.webhookServers() {
		made[serviceName(deployment)] = true
	}
	for _, one := range slices.Clone(in.made) {
		if !one.IsDefinition() {
			continue
		}
		content, err := raw(one.Object)
		if err != nil {
			return err
		}
		service, names := convertedBy(content)
		if !names || service.Namespace == in.options.InstallNamespace && made[service.Name] {
			continue
		}
		if _, is := in.places[manifest.ID{Kind: "Service", Namespace: service.Namespace, Name: service.Name}]; is {
			continue
		}
		in.warn(one, []any{"spec", "conversion"}, "spec.conversion.webhook.clientConfig.service is Service %s/%s, which the bundle does not have: unless the cluster has it, custom resources of this definition can be neither read nor deleted",
			service.Namespace, service.Name)
	}
	return nil
}

func convertedBy(definition map[string]any) (service manifest.ID, names bool) {
	at := any(definition)
	for _, field := range []string{"spec", "conversion"} {
		of, _ := at.(map[string]any)
		at = of[field]
	}
	conversion, _ := at.(map[string]any)
	if conversion["strategy"] != "Webhook" {
		return manifest.ID{}, false
	}
	for _, field := range []string{"webhook", "clientConfig", "service"} {
		of, _ := at.(map[string]any)
		at = of[field]
	}
	found, _ := at.(map[string]any)
	name, _ := found["name"].(string)
	namespace, _ := found["namespace"].(string)
	return manifest.ID{Kind: "Service", Namespace: namespace, Name: name}, name != ""
}

// selected returns the labels in the selector of a Deployment.
func selected(spec map[string]any) map[string]string {
	labels := map[string]string{}
	// child is not used here, because it would add missing fields to the ClusterServiceVersion.
	selector, _ := spec["selector"].(map[string]any)
	matched, _ := selector["matchLabels"].(map[string]any)
	for key, value := range matched {
		if text, ok := value.(string); ok {
			labels[key] = text
		}
	}
	return labels
}

// webhookConfigurations adds a configuration for each admission webhook.
func (in *installation) webhookConfigurations() error {
	for i, one := range in.csv.Spec.Webhooks {
		meta := metav1.ObjectMeta{Name: one.objectName()}
		in.options.Certificates.annotateCaller(&meta, in.options.InstallNamespace, certificateName(serviceName(one.DeploymentName)))
		service := in.service(one)
		client := admissionv1.WebhookClientConfig{Service: &service}
		var configuration any
		switch one.Type {
		case validatingWebhook:
			configuration = &admissionv1.ValidatingWebhookConfiguration{
				TypeMeta: typed(admissionAPI, "ValidatingWebhookConfiguration"), ObjectMeta: meta,
				Webhooks: []admissionv1.ValidatingWebhook{{
					Name: one.GenerateName, ClientConfig: client, Rules: one.Rules, FailurePolicy: one.FailurePolicy, MatchPolicy: one.MatchPolicy,
					NamespaceSelector: in.watched(), ObjectSelector: one.ObjectSelector, SideEffects: one.SideEffects,
					TimeoutSeconds: one.TimeoutSeconds, AdmissionReviewVersions: one.AdmissionReviewVersions,
				}},
			}
		case mutatingWebhook:
			configuration = &admissionv1.MutatingWebhookConfiguration{
				TypeMeta: typed(admissionAPI, "MutatingWebhookConfiguration"), ObjectMeta: meta,
				Webhooks: []admissionv1.MutatingWebhook{{
					Name: one.GenerateName, ClientConfig: client, Rules: one.Rules, FailurePolicy: one.FailurePolicy, MatchPolicy: one.MatchPolicy,
					NamespaceSelector: in.watched(), ObjectSelector: one.ObjectSelector, SideEffects: one.SideEffects,
					TimeoutSeconds: one.TimeoutSeconds, AdmissionReviewVersions: one.AdmissionReviewVersions, ReinvocationPolicy: one.ReinvocationPolicy,
				}},
			}
		default:
			continue
		}
		if err := in.addFrom(configuration, webhookPath(i)); err != nil {
			return err
		}
	}
	return nil
}

const admissionAPI = "admissionregistration.k8s.io/v1"

// watched returns the selector of the watched namespace; nil if the operator watches all.
func (in *installation) watched() *metav1.LabelSelector {
	if in.config.WatchNamespace == "" {
		return nil
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: []string{in.config.WatchNamespace},
	}}}
}

// customResourceDefinitions adds the bundle's definitions, with the conversion by its webhooks.
func (in *installation) customResourceDefinitions() error {
	converters := map[string]webhook{}
	for _, one := range in.csv.Spec.Webhooks {
		if one.Type == conversionWebhook {
			for _, name := range one.ConversionCRDs {
				converters[name] = one
			}
		}
	}
	for _, one := range in.definitions {
		if converter, found := converters[one.Name]; found {
			content, err := raw(one.Object)
			if err != nil {
				return err
			}
			if child(content, "spec")["preserveUnknownFields"] == true {
				return in.refuse(one, []any{"spec", "preserveUnknownFields"}, "spec.preserveUnknownFields is true, must be false for a definition with a %s", conversionWebhook)
			}
			in.convert(content, converter)
			if one.Object, err = manifest.Canonical(content); err != nil {
				return fmt.Errorf("%s: %w", one.ID, err)
			}
		}
		if err := in.place(one); err != nil {
			return err
		}
	}
	return nil
}

// convert sets a webhook as the conversion of a definition.
func (in *installation) convert(content map[string]any, by webhook) {
	service := in.service(by)
	path := "/"
	if service.Path != nil {
		path = *service.Path
	}
	versions := make([]any, len(by.AdmissionReviewVersions))
	for i, one := range by.AdmissionReviewVersions {
		versions[i] = one
	}
	child(content, "spec")["conversion"] = map[string]any{
		"strategy": "Webhook",
		"webhook": map[string]any{
			"clientConfig": map[string]any{"service": map[string]any{
				"namespace": service.Namespace, "name": service.Name, "path": path, "port": int64(*service.Port),
			}},
			"conversionReviewVersions": versions,
		},
	}
	var meta metav1.ObjectMeta
	in.options.Certificates.annotateCaller(&meta, service.Namespace, certificateName(service.Name))
	for key, value := range meta.Annotations {
		child(child(content, "metadata"), "annotations")[key] = value
	}
}
