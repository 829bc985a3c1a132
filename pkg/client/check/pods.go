package check

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
	"github.com/penstock-project/penstock/pkg/rollout/cause/gather"
)

// deploymentName and deploymentNamespace identify the Deployment of the manifests and the chart.
const deploymentName, deploymentNamespace = "penstock", "penstock-system"

// pods returns the reasons why Pods of Penstock are not ready, in the words of `kubectl penstock why`.
func (in *installation) pods(ctx context.Context) []Result {
	const name = "pods"
	id := manifest.ID{Group: "apps", Kind: "Deployment", Namespace: deploymentNamespace, Name: deploymentName}
	if service := in.services[v1alpha1.GroupName]; service != nil && service.Spec.Service != nil {
		id.Namespace = service.Spec.Service.Namespace
	}
	deployment := &unstructured.Unstructured{}
	err := in.get(ctx, fmt.Sprintf("/apis/apps/v1/namespaces/%s/deployments/%s", id.Namespace, id.Name), deployment)
	switch {
	case apierrors.IsNotFound(err):
		return []Result{{name, Skipped, fmt.Sprintf("there is no Deployment %s/%s: Penstock runs outside the cluster", id.Namespace, id.Name), ""}}
	case err != nil:
		result := missing(err)
		result.Name = name
		return []Result{result}
	}
	wanted, _, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	ready, _, _ := unstructured.NestedInt64(deployment.Object, "status", "readyReplicas")
	current, _, _ := unstructured.NestedInt64(deployment.Object, "status", "updatedReplicas")
	found := fmt.Sprintf("%d of %d ready", min(ready, current), wanted)
	if ready >= wanted && current >= wanted && wanted > 0 {
		return []Result{{name, OK, found, ""}}
	}
	result := Result{name, Failed, found, fmt.Sprintf("correct what it names; `kubectl describe pods --namespace %s` says more", id.Namespace)}
	subject := cause.Subject{ID: id, UID: deployment.GetUID(), Live: deployment, Manifest: deployment.Object}
	why, known, err := gather.New(in).Explain(ctx, subject)
	switch {
	case known:
		result.Found += ": " + why.String()
	case err != nil:
		result.Found += "; " + missing(err).Found
	case wanted == 0:
		result.Next = fmt.Sprintf("kubectl scale deployment %s --namespace %s --replicas=1", id.Name, id.Namespace)
	}
	return []Result{result}
}

// List implements gather.Lister.
func (in *installation) List(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	root := "/apis/" + resource.Group
	if resource.Group == "" {
		root = "/api"
	}
	request := in.client.Get().AbsPath(root, resource.Version, "namespaces", namespace, resource.Resource).VersionedParams(&options, metav1.ParameterCodec)
	list := &unstructured.UnstructuredList{}
	return list, in.read(ctx, request, list)
}
