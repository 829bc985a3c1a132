package registration

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/server/managedobject"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
)

// Unregister removes every object that registration of these versions created in a host, so that
// the host sends no requests to Penstock. It keeps the store and all rolled out objects. It calls
// removed with each removed object.
//
// It marks the namespace first, so that a running or restarted process does not register again.
// Each step can be repeated.
func Unregister(ctx context.Context, config *rest.Config, namespace string, versions []schema.GroupVersion, now time.Time, removed func(what string)) error {
	u, err := newUnregistration(config, namespace, versions, removed)
	if err != nil {
		return err
	}
	// Objects that block other users are removed first. Webhooks without a server refuse users'
	// writes. An APIService without a server blocks the deletion of namespaces.
	return steps(ctx,
		func(ctx context.Context) error { return u.mark(ctx, now) },
		u.webhooks, u.apiServices, u.jobs, u.profiles, u.userRoles, u.definitions, u.service)
}

// Withdraw removes the objects that make a host send requests to an ended process outside of the
// cluster. The rest of the registration stays for an installation in the cluster. It calls removed
// with each removed object.
func Withdraw(ctx context.Context, config *rest.Config, namespace string, versions []schema.GroupVersion, removed func(what string)) error {
	u, err := newUnregistration(config, namespace, versions, removed)
	if err != nil {
		return err
	}
	return steps(ctx, u.webhooks, u.apiServices, u.service)
}

func newUnregistration(config *rest.Config, namespace string, versions []schema.GroupVersion, removed func(what string)) (*unregistration, error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	services, err := aggregator.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &unregistration{core: core, aggregator: services, dynamic: objects, namespace: namespace, versions: versions, removed: removed}, nil
}

func steps(ctx context.Context, all ...func(context.Context) error) error {
	for _, step := range all {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

type unregistration struct {
	core       kubernetes.Interface
	aggregator aggregator.Interface
	dynamic    dynamic.Interface
	namespace  string
	versions   []schema.GroupVersion
	removed    func(what string)
}

// mark records in the namespace that a user removed the registration.
func (u *unregistration) mark(ctx context.Context, now time.Time) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{unregisteredAnnotation: now.UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return fmt.Errorf("encoding the mark: %w", err)
	}
	_, err = u.core.CoreV1().Namespaces().Patch(ctx, u.namespace, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: managedobject.FieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("marking namespace %s: %w", u.namespace, err)
	}
	return nil
}

// webhooks removes configurations with a webhook that points to our Service.
func (u *unregistration) webhooks(ctx context.Context) error {
	admission := u.core.AdmissionregistrationV1()
	validating, err := admission.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing webhooks: %w", err)
	}
	for _, found := range validating.Items {
		ours := false
		for _, hook := range found.Webhooks {
			ours = ours || u.leadsHere(hook.ClientConfig.Service)
		}
		if !ours {
			continue
		}
		err := admission.ValidatingWebhookConfigurations().Delete(ctx, found.Name, metav1.DeleteOptions{})
		if err := u.gone("validatingwebhookconfiguration "+found.Name, err); err != nil {
			return err
		}
	}
	mutating, err := admission.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing webhooks: %w", err)
	}
	for _, found := range mutating.Items {
		ours := false
		for _, hook := range found.Webhooks {
			ours = ours || u.leadsHere(hook.ClientConfig.Service)
		}
		if !ours {
			continue
		}
		err := admission.MutatingWebhookConfigurations().Delete(ctx, found.Name, metav1.DeleteOptions{})
		if err := u.gone("mutatingwebhookconfiguration "+found.Name, err); err != nil {
			return err
		}
	}
	return nil
}

func (u *unregistration) leadsHere(service *admissionv1.ServiceReference) bool {
	return service != nil && service.Namespace == u.namespace && service.Name == ServiceName || webhook.IsOurs(service)
}

// apiServices removes the APIServices of these versions. An APIService that points elsewhere
// belongs to another owner.
func (u *unregistration) apiServices(ctx context.Context) error {
	for _, version := range u.versions {
		name := APIServiceName(version)
		found, err := u.aggregator.ApiregistrationV1().APIServices().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("reading apiservice %s: %w", name, err)
		}
		service := found.Spec.Service
		if service == nil || service.Namespace != u.namespace || service.Name != ServiceName {
			return fmt.Errorf("apiservice %s does not lead to service %s/%s: it belongs to another API, or to Penstock in another namespace (--namespace)",
				name, u.namespace, ServiceName)
		}
		err = u.aggregator.ApiregistrationV1().APIServices().Delete(ctx, name, metav1.DeleteOptions{})
		if err := u.gone("apiservice "+name, err); err != nil {
			return err
		}
	}
	return nil
}

// jobs removes the identities of jobs: first their rights, then their limits. It also removes the
// policy of freezes.
func (u *unregistration) jobs(ctx context.Context) error {
	admission, roles := u.core.AdmissionregistrationV1(), u.core.RbacV1()
	var options metav1.DeleteOptions
	var names []string
	for _, j := range serviceaccounts.Jobs() {
		names = append(names, j.Name)
	}
	names = append(names, serviceaccounts.LimitsName, olmv1alpha1.FreezeConfigMap)
	for _, name := range names {
		for _, remove := range []struct {
			what string
			do   func() error
		}{
			{"clusterrolebinding " + name, func() error { return roles.ClusterRoleBindings().Delete(ctx, name, options) }},
			{"clusterrole " + name, func() error { return roles.ClusterRoles().Delete(ctx, name, options) }},
			{"serviceaccount " + u.namespace + "/" + name, func() error {
				return u.core.CoreV1().ServiceAccounts(u.namespace).Delete(ctx, name, options)
			}},
			{"validatingadmissionpolicybinding " + name, func() error {
				return admission.ValidatingAdmissionPolicyBindings().Delete(ctx, name, options)
			}},
			{"validatingadmissionpolicy " + name, func() error {
				return admission.ValidatingAdmissionPolicies().Delete(ctx, name, options)
			}},
		} {
			if err := u.gone(remove.what, remove.do()); err != nil {
				return err
			}
		}
	}
	return nil
}

// service removes the Service that registration created. A Service with its own addresses belongs
// to the user who installed Penstock.
func (u *unregistration) service(ctx context.Context) error {
	found, err := u.core.CoreV1().Services(u.namespace).Get(ctx, ServiceName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && found.Spec.Type != corev1.ServiceTypeExternalName {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading service %s/%s: %w", u.namespace, ServiceName, err)
	}
	err = u.core.CoreV1().Services(u.namespace).Delete(ctx, ServiceName, metav1.DeleteOptions{})
	return u.gone("service "+u.namespace+"/"+ServiceName, err)
}

// gone reports a removed object. A missing object is not an error.
func (u *unregistration) gone(what string, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting %s: %w", what, err)
	}
	u.removed(what)
	return nil
}
