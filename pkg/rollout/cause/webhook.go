package cause

import (
	"regexp"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// noEndpoints matches kube-apiserver's error about a webhook whose Service has no ready endpoint
// (k8s.io/kube-aggregator and k8s.io/apiserver, webhook/error.go). The error's URL contains the
// Service.
var noEndpoints = regexp.MustCompile(
	`failed calling webhook "([a-z0-9.-]{1,253})".*https?://([a-z0-9-]{1,63})\.([a-z0-9-]{1,63})\.svc[:/].*(no endpoints available for service|service "[a-z0-9-]{1,63}" not found)`)

// OfRefusal returns a cause if an object was refused because a webhook's Service has no ready
// endpoint.
func OfRefusal(id manifest.ID, written string) (Cause, bool) {
	found := noEndpoints.FindStringSubmatch(written)
	if found == nil {
		return Cause{}, false
	}
	c := Cause{Reason: NoEndpoints, Object: id, Related: &manifest.ID{Kind: "Service", Namespace: found[3], Name: found[2]}}
	c.Facts = "of webhook " + found[1] + " has no ready Pod behind it"
	return c, true
}

// WebhookServices returns the Services that a ValidatingWebhookConfiguration or a
// MutatingWebhookConfiguration calls, without duplicates, in their order.
func WebhookServices(configuration map[string]any) []manifest.ID {
	webhooks, _ := configuration["webhooks"].([]any)
	var services []manifest.ID
	known := map[manifest.ID]bool{}
	for _, element := range webhooks {
		webhook, _ := element.(map[string]any)
		client, _ := webhook["clientConfig"].(map[string]any)
		service, _ := client["service"].(map[string]any)
		name, _ := service["name"].(string)
		namespace, _ := service["namespace"].(string)
		id := manifest.ID{Kind: "Service", Namespace: namespace, Name: name}
		if name != "" && !known[id] {
			known[id] = true
			services = append(services, id)
		}
	}
	return services
}

// IsWebhookConfiguration reports whether an object makes the API server call webhooks.
func IsWebhookConfiguration(id manifest.ID) bool {
	return id.Group == "admissionregistration.k8s.io" &&
		(id.Kind == "ValidatingWebhookConfiguration" || id.Kind == "MutatingWebhookConfiguration")
}

// OfEndpoints returns a cause if a Service that an object calls has no ready endpoint.
func OfEndpoints(id, service manifest.ID, slices []discoveryv1.EndpointSlice) (Cause, bool) {
	for _, slice := range slices {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				return Cause{}, false
			}
		}
	}
	return Cause{Reason: NoEndpoints, Object: id, Related: &service, Facts: "has no ready Pod behind it"}, true
}
