package registration

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/server/managedobject"
)

// WebhookConfiguration is the name of our webhook configurations in the host.
const WebhookConfiguration = "penstock"

// applyWebhooks registers the webhooks. Without the right to do so, it logs that and continues: the
// host then does not call them.
func (r *Registration) applyWebhooks(ctx context.Context) error {
	_, err := r.writeWebhooks(ctx, r.options.Port)
	if err == nil {
		_, err = r.writeMutatingWebhooks(ctx)
	}
	if apierrors.IsForbidden(err) {
		klog.FromContext(ctx).Error(err, "The webhooks for kinds of the host are not registered",
			"remedy", "grant this process to create validatingwebhookconfigurations and mutatingwebhookconfigurations, and to patch "+WebhookConfiguration)
		return nil
	}
	return err
}

func (r *Registration) writeWebhooks(ctx context.Context, port int) (*admissionv1.ValidatingWebhookConfiguration, error) {
	owner, err := r.owner(ctx)
	if err != nil {
		return nil, err
	}
	configuration := webhook.Configuration(WebhookConfiguration, r.options.Webhooks, webhook.Address{
		Namespace: r.options.Namespace, Service: ServiceName, Port: int32(port), CABundle: r.options.Trust.Bundle(),
	}).WithOwnerReferences(owner...)
	applied, err := r.options.Core.AdmissionregistrationV1().ValidatingWebhookConfigurations().Apply(ctx, configuration,
		managedobject.ApplyOptions())
	if err != nil {
		return nil, fmt.Errorf("applying validatingwebhookconfiguration %s: %w", WebhookConfiguration, err)
	}
	return applied, nil
}

// keepWebhooks restores the registration, if this process has the right. It keeps the port, which
// may belong to another replica that registered later.
func (r *Registration) keepWebhooks(ctx context.Context) (metav1.Object, error) {
	found, err := r.options.Core.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, WebhookConfiguration, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		// The missing right was logged at registration, and must not block other objects.
		return &admissionv1.ValidatingWebhookConfiguration{}, nil
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading validatingwebhookconfiguration %s: %w", WebhookConfiguration, err)
	}
	port := r.options.Port
	if err == nil {
		for _, one := range found.Webhooks {
			if service := one.ClientConfig.Service; service != nil && service.Port != nil && service.Namespace == r.options.Namespace && service.Name == ServiceName {
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

// writeMutatingWebhooks writes the webhooks that change objects. They all go through
// kube-apiserver, so they do not depend on our port and certificate.
func (r *Registration) writeMutatingWebhooks(ctx context.Context) (*admissionv1.MutatingWebhookConfiguration, error) {
	owner, err := r.owner(ctx)
	if err != nil {
		return nil, err
	}
	configuration := webhook.MutatingConfiguration(WebhookConfiguration, r.options.Webhooks, webhook.Address{Namespace: r.options.Namespace}).
		WithOwnerReferences(owner...)
	applied, err := r.options.Core.AdmissionregistrationV1().MutatingWebhookConfigurations().Apply(ctx, configuration, managedobject.ApplyOptions())
	if err != nil {
		return nil, fmt.Errorf("applying mutatingwebhookconfiguration %s: %w", WebhookConfiguration, err)
	}
	return applied, nil
}

// keepMutatingWebhooks restores the mutating webhooks, if this process has the right.
func (r *Registration) keepMutatingWebhooks(ctx context.Context) (metav1.Object, error) {
	applied, err := r.writeMutatingWebhooks(ctx)
	if apierrors.IsForbidden(err) {
		// The missing right was logged at registration.
		return &admissionv1.MutatingWebhookConfiguration{}, nil
	}
	return applied, err
}
