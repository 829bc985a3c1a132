package server

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/governed"
	"github.com/penstock-project/penstock/pkg/admission/webhook/installlevel"
	"github.com/penstock-project/penstock/pkg/server/managedobject"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
)

// webhookConfiguration is what registers our webhooks in the host.
const webhookConfiguration = "penstock"

// webhooks are those for the host's kinds.
func (o *Options) webhooks() ([]webhook.Webhook, error) {
	resources, err := parseEach("--guard-install-levels", o.GuardInstallLevels, installlevel.ParseResource)
	if err != nil {
		return nil, err
	}
	all := []webhook.Webhook{governed.Webhook(
		serviceaccount.MakeUsername(o.Namespace, serviceaccounts.Engine().Name),
		serviceaccount.MakeUsername(o.Namespace, serviceAccount),
	)}
	if len(resources) > 0 {
		all = append(all, installlevel.Webhook(resources))
	}
	return all, nil
}

// withWebhooks answers reviews before anything else is done with a request. Whoever
// asks brings no credentials, so there is nothing to find out about them; and priority
// and fairness would have every review of the cluster queue with the requests of
// strangers. The paths are exact.
func withWebhooks(next http.Handler, webhooks map[string]http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if handler, ok := webhooks[r.URL.Path]; ok {
			handler.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// applyWebhooks registers them. Without the right to, they are not asked, and
// everything else goes on.
func (r *registration) applyWebhooks(ctx context.Context) error {
	_, err := r.writeWebhooks(ctx, r.port)
	if apierrors.IsForbidden(err) {
		klog.FromContext(ctx).Error(err, "The webhooks for kinds of the host are not registered",
			"remedy", "grant this process to create validatingwebhookconfigurations, and to patch "+webhookConfiguration)
		return nil
	}
	return err
}

func (r *registration) writeWebhooks(ctx context.Context, port int) (*admissionv1.ValidatingWebhookConfiguration, error) {
	configuration := webhook.Configuration(webhookConfiguration, r.webhooks, webhook.Address{
		Namespace: r.namespace, Service: serviceName, Port: int32(port), CABundle: r.trust.bundle(),
	})
	applied, err := r.core.AdmissionregistrationV1().ValidatingWebhookConfigurations().Apply(ctx, configuration,
		metav1.ApplyOptions{FieldManager: managedobject.FieldManager, Force: true})
	if err != nil {
		return nil, fmt.Errorf("applying validatingwebhookconfiguration %s: %w", webhookConfiguration, err)
	}
	return applied, nil
}

// keepWebhooks restores the registration, where that may be done. The port may be that of another replica,
// which registered later; it stays.
func (r *registration) keepWebhooks(ctx context.Context) (metav1.Object, error) {
	found, err := r.core.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, webhookConfiguration, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		// It was said at registration; nothing else is to wait for it.
		return &admissionv1.ValidatingWebhookConfiguration{}, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading validatingwebhookconfiguration %s: %w", webhookConfiguration, err)
	}
	port := r.port
	if err == nil {
		for _, one := range found.Webhooks {
			if service := one.ClientConfig.Service; service != nil && service.Port != nil && service.Namespace == r.namespace && service.Name == serviceName {
				port = int(*service.Port)
			}
		}
	}
	applied, err := r.writeWebhooks(ctx, port)
	if apierrors.IsForbidden(err) {
		return &admissionv1.ValidatingWebhookConfiguration{}, nil
	}
	return applied, err
}
