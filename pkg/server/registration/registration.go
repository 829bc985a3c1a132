// Package registration makes the host send requests for Penstock's API to this process. It
// maintains the objects that this needs, and removes them when a user unregisters.
package registration

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	applyregistrationv1 "k8s.io/kube-aggregator/pkg/client/applyconfiguration/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/server/managedobject"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
)

const (
	// ServiceName is the name of the Service through which kube-apiserver reaches Penstock.
	ServiceName = "penstock"
	// ServiceAccount is the ServiceAccount of this process in a Pod.
	ServiceAccount = "penstock"
	// registeredAnnotation changes with every registration. A change of an APIService makes the
	// aggregator check its availability at once. Otherwise the check might take half a minute.
	registeredAnnotation = "penstock.dev/registered-at"

	// These priorities are lower than the host's priorities for CRDs (1000/100). If a group has
	// both, clients prefer the CRDs' version.
	groupPriorityMinimum = 900
	versionPriority      = 90

	availableTimeout = 30 * time.Second
	registerRetry    = 15 * time.Second
)

// Options holds the settings of a Registration.
type Options struct {
	Core       kubernetes.Interface
	Aggregator aggregator.Interface
	Dynamic    dynamic.Interface
	// Accounts are the identities of jobs, which are registered, too.
	Accounts *serviceaccounts.Accounts
	Jobs     []serviceaccounts.Job
	// Namespace is the namespace of the Service.
	Namespace string
	// Host and Port are the address of this process for kube-apiserver.
	Host string
	Port int
	// ExternalService is true if Penstock does not create the Service. Port is then the port of
	// that Service.
	ExternalService bool
	// Trust provides the CA bundle for the certificate, which is for the name of the Service.
	Trust    *Trust
	Versions []schema.GroupVersion
	// Webhooks are for kinds of the host.
	Webhooks []webhook.Webhook
}

// Registration makes the host send requests for our groups to this process. The registration stays
// when the process ends, because a restart or a second replica still needs the API; see Unregister.
type Registration struct {
	options Options
	now     func() time.Time
	owned   atomic.Bool
}

// New returns a registration. It sends no request.
func New(options Options) *Registration { return &Registration{options: options, now: time.Now} }

// EnsureNamespace creates the namespace of this process's objects.
func EnsureNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{FieldManager: managedobject.FieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}

// register writes the identities of jobs, the roles of users, the Service and the APIServices. Then
// it waits until the host reports the APIServices as available, and writes the webhooks. It can be
// repeated: correct objects are not changed, except for the time of registration.
func (r *Registration) register(ctx context.Context) error {
	leaving, err := whyLeaving(ctx, r.options.Core, r.options.Namespace)
	switch {
	case err != nil:
		return err
	case leaving != "":
		return errors.New(leaving)
	}
	if err := r.options.Accounts.Ensure(ctx, r.options.Jobs); err != nil {
		return err
	}
	if err := r.ensureFreezePolicy(ctx); err != nil {
		return err
	}
	if err := r.applyUserRoles(ctx); err != nil {
		return err
	}
	if err := r.applyDefinitions(ctx); err != nil {
		return err
	}
	if !r.options.ExternalService {
		if _, err := r.applyService(ctx); err != nil {
			return err
		}
	}
	for _, version := range r.options.Versions {
		if _, err := r.applyAPIService(ctx, version, r.options.Port, r.stamp()); err != nil {
			return err
		}
	}
	for _, version := range r.options.Versions {
		if err := r.waitAvailable(ctx, APIServiceName(version)); err != nil {
			return err
		}
	}
	// The webhooks come last, when the host reaches this process.
	return r.applyWebhooks(ctx)
}

// DefaultNamespace is the namespace of Penstock's objects in the host.
const DefaultNamespace = "penstock-system"

// Versions returns the group versions that are served and registered.
func Versions() []schema.GroupVersion {
	return []schema.GroupVersion{olmv1alpha1.SchemeGroupVersion, hcov1alpha1.SchemeGroupVersion, catalogv1alpha1.SchemeGroupVersion}
}

// APIServiceName returns the name of the APIService of a group version.
func APIServiceName(version schema.GroupVersion) string {
	return version.Version + "." + version.Group
}

// Objects returns the objects that a Keeper maintains.
func (r *Registration) Objects() []managedobject.Object {
	objects := r.options.Accounts.Limits()
	for _, j := range r.options.Jobs {
		objects = append(objects, r.options.Accounts.Objects(j)...)
	}
	objects = append(objects, r.freezeObjects()...)
	if !r.options.ExternalService {
		objects = append(objects, managedobject.Object{
			Resource: corev1.SchemeGroupVersion.WithResource("services"), Namespace: r.options.Namespace, Name: ServiceName,
			Apply: r.keepService,
		})
	}
	for _, d := range Definitions() {
		objects = append(objects, managedobject.Object{
			Resource: definitions(), Name: d.Name,
			Apply: func(ctx context.Context) (metav1.Object, error) { return r.keepDefinition(ctx, d) },
		})
	}
	for _, version := range r.options.Versions {
		objects = append(objects, managedobject.Object{
			Resource: apiregistrationv1.SchemeGroupVersion.WithResource("apiservices"), Name: APIServiceName(version), HasCABundle: true,
			Apply: func(ctx context.Context) (metav1.Object, error) { return r.keepAPIService(ctx, version) },
		})
	}
	return append(objects, managedobject.Object{
		Resource: admissionv1.SchemeGroupVersion.WithResource("validatingwebhookconfigurations"), Name: WebhookConfiguration, HasCABundle: true,
		Apply: r.keepWebhooks,
	}, managedobject.Object{
		Resource: admissionv1.SchemeGroupVersion.WithResource("mutatingwebhookconfigurations"), Name: WebhookConfiguration,
		Apply: r.keepMutatingWebhooks,
	})
}

func (r *Registration) stamp() string { return r.now().UTC().Format(time.RFC3339Nano) }

func (r *Registration) applyService(ctx context.Context) (*corev1.Service, error) {
	service := applycorev1.Service(ServiceName, r.options.Namespace).
		WithSpec(applycorev1.ServiceSpec().
			WithType(corev1.ServiceTypeExternalName).
			WithExternalName(r.options.Host).
			WithPorts(applycorev1.ServicePort().WithName("https").WithPort(int32(r.options.Port))))
	applied, err := r.options.Core.CoreV1().Services(r.options.Namespace).Apply(ctx, service, managedobject.ApplyOptions())
	if err != nil {
		return nil, fmt.Errorf("applying service %s/%s: %w", r.options.Namespace, ServiceName, err)
	}
	return applied, nil
}

// keepService creates a missing Service. It leaves an existing Service unchanged, because it may
// point to another replica that registered later.
func (r *Registration) keepService(ctx context.Context) (metav1.Object, error) {
	found, err := r.options.Core.CoreV1().Services(r.options.Namespace).Get(ctx, ServiceName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return r.applyService(ctx)
	}
	return found, err
}

func (r *Registration) applyAPIService(ctx context.Context, version schema.GroupVersion, port int, stamp string) (*apiregistrationv1.APIService, error) {
	name := APIServiceName(version)
	owner, err := r.owner(ctx)
	if err != nil {
		return nil, err
	}
	service := applyregistrationv1.APIService(name).
		WithOwnerReferences(owner...).
		WithAnnotations(map[string]string{registeredAnnotation: stamp}).
		WithSpec(applyregistrationv1.APIServiceSpec().
			WithGroup(version.Group).
			WithVersion(version.Version).
			WithGroupPriorityMinimum(groupPriorityMinimum).
			WithVersionPriority(versionPriority).
			WithInsecureSkipTLSVerify(false).
			WithCABundle(r.options.Trust.Bundle()...).
			WithService(applyregistrationv1.ServiceReference().
				WithNamespace(r.options.Namespace).WithName(ServiceName).WithPort(int32(port))))
	applied, err := r.options.Aggregator.ApiregistrationV1().APIServices().Apply(ctx, service, managedobject.ApplyOptions())
	if err != nil {
		return nil, fmt.Errorf("applying apiservice %s: %w", name, err)
	}
	return applied, nil
}

// keepAPIService restores an APIService. It keeps the port, which may belong to another replica
// that registered later.
func (r *Registration) keepAPIService(ctx context.Context, version schema.GroupVersion) (metav1.Object, error) {
	found, err := r.options.Aggregator.ApiregistrationV1().APIServices().Get(ctx, APIServiceName(version), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return r.applyAPIService(ctx, version, r.options.Port, r.stamp())
	}
	if err != nil {
		return nil, fmt.Errorf("reading apiservice %s: %w", APIServiceName(version), err)
	}
	port, stamp := r.options.Port, found.Annotations[registeredAnnotation]
	if stamp == "" {
		stamp = r.stamp()
	}
	ours := found.Spec.Service
	if ours != nil && ours.Port != nil && ours.Namespace == r.options.Namespace && ours.Name == ServiceName {
		port = int(*ours.Port)
	}
	return r.applyAPIService(ctx, version, port, stamp)
}

// waitAvailable watches an APIService until the host reports it as available. Its error contains
// the host's message.
func (r *Registration) waitAvailable(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, availableTimeout)
	defer cancel()
	lw := objectwatch.Source(r.options.Aggregator, r.options.Aggregator.ApiregistrationV1().APIServices(), name)
	said := "nothing yet"
	_, err := watchtools.UntilWithSync(ctx, lw, &apiregistrationv1.APIService{}, nil, func(event watch.Event) (bool, error) {
		service, ok := event.Object.(*apiregistrationv1.APIService)
		if !ok || event.Type == watch.Deleted {
			return false, nil
		}
		for _, condition := range service.Status.Conditions {
			if condition.Type == apiregistrationv1.Available {
				said = condition.Message
				return condition.Status == apiregistrationv1.ConditionTrue, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the host to reach apiservice %s at %s:%d (the host says: %s): %w", name, r.options.Host, r.options.Port, said, err)
	}
	return nil
}

// Run registers, and retries until it succeeds: a user may remove the obstacle while Penstock runs.
func (r *Registration) Run(ctx context.Context) error {
	log := klog.FromContext(ctx).WithName("registration")
	for {
		err := r.register(ctx)
		if err == nil {
			log.Info("The host cluster serves our API", "host", r.options.Host, "port", r.options.Port, "versions", r.options.Versions)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		log.Error(err, "Registration is not complete; trying again", "after", registerRetry)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(registerRetry):
		}
	}
}
