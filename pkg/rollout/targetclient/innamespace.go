package targetclient

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/penstock-project/penstock/pkg/manifest"
)

const (
	// maxOfKind is the largest number of objects of a kind that are read in a namespace.
	maxOfKind = 250
	// maxDefinitions is the largest number of CustomResourceDefinitions that are read from a
	// cluster.
	maxDefinitions = 2000
)

// listed is a kind that is listed in a namespace.
type listed struct {
	manifest.Ref
	resource schema.GroupVersionResource
	// selector restricts the list by label; empty for all objects.
	selector string
}

func builtin(gv schema.GroupVersion, kind, resource string) listed {
	return listed{Ref: manifest.Ref{ID: manifest.ID{Group: gv.Group, Kind: kind}, Version: gv.Version}, resource: gv.WithResource(resource)}
}

// worthNaming returns the built-in kinds whose objects all count: workloads and claims.
func worthNaming() []listed {
	return []listed{
		builtin(corev1.SchemeGroupVersion, "PersistentVolumeClaim", "persistentvolumeclaims"),
		builtin(appsv1.SchemeGroupVersion, "Deployment", "deployments"),
		builtin(appsv1.SchemeGroupVersion, "StatefulSet", "statefulsets"),
		builtin(appsv1.SchemeGroupVersion, "DaemonSet", "daemonsets"),
		builtin(batchv1.SchemeGroupVersion, "CronJob", "cronjobs"),
	}
}

// worthSelecting returns built-in kinds of which every namespace has many objects, so only selected
// objects count.
func worthSelecting(selector string) []listed {
	kinds := []listed{
		builtin(corev1.SchemeGroupVersion, "ConfigMap", "configmaps"),
		builtin(corev1.SchemeGroupVersion, "Secret", "secrets"),
		builtin(corev1.SchemeGroupVersion, "Service", "services"),
		builtin(corev1.SchemeGroupVersion, "ServiceAccount", "serviceaccounts"),
		builtin(rbacv1.SchemeGroupVersion, "Role", "roles"),
		builtin(rbacv1.SchemeGroupVersion, "RoleBinding", "rolebindings"),
		builtin(networkingv1.SchemeGroupVersion, "Ingress", "ingresses"),
		builtin(networkingv1.SchemeGroupVersion, "NetworkPolicy", "networkpolicies"),
	}
	for i := range kinds {
		kinds[i].selector = selector
	}
	return kinds
}

// InNamespace returns the metadata of a namespace's important contents: workloads,
// PersistentVolumeClaims, custom resources, and the objects of some other kinds that the selector
// selects. It sends one request per kind, two for discovery, and one for the names of all
// CustomResourceDefinitions. It reads the first maxOfKind objects of each kind.
//
// It skips kinds of other API servers, because such a server may list an object in every namespace
// and store it in none.
func (c *Client) InNamespace(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	custom, err := c.customResources(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the objects in namespace %s: %w", namespace, err)
	}
	var found []metav1.PartialObjectMetadata
	for _, kind := range append(append(worthNaming(), worthSelecting(selector)...), custom...) {
		list, err := c.metadata.Resource(kind.resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: maxOfKind, LabelSelector: kind.selector})
		if apierrors.IsNotFound(err) {
			continue // the kind is not served any more
		}
		if err != nil {
			return nil, fmt.Errorf("listing the objects in namespace %s: listing %s: %w", namespace, kind.GroupKind(), c.redactor.Error(kind.ID, err))
		}
		for i := range list.Items {
			found = append(found, *named(kind.Ref, &list.Items[i]))
		}
	}
	return found, nil
}

// customResources returns the namespaced kinds of all CustomResourceDefinitions.
func (c *Client) customResources(ctx context.Context) ([]listed, error) {
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	names, err := c.metadata.Resource(definitions).List(ctx, metav1.ListOptions{Limit: maxDefinitions})
	if err != nil {
		return nil, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	defined := make(map[string]bool, len(names.Items))
	for i := range names.Items {
		defined[names.Items[i].Name] = true
	}
	served, err := c.kinds.discovery.ServerPreferredNamespacedResourcesWithContext(ctx)
	// A failed group is ignored: it is served through an APIService and has no
	// CustomResourceDefinition.
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("asking which kinds are served: %w", err)
	}
	var kinds []listed
	for _, list := range served {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if defined[resource.Name+"."+gv.Group] {
				kinds = append(kinds, builtin(gv, resource.Kind, resource.Name))
			}
		}
	}
	return kinds, nil
}

// InNamespace is Client.InNamespace.
func (a Accounted) InNamespace(ctx context.Context, namespace, selector string) ([]metav1.PartialObjectMetadata, error) {
	return a.Client.InNamespace(Because(ctx, Guard), namespace, selector)
}
