package screens

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Target is the object of an item of a plan, in its present state.
type Target struct {
	Asked string             `json:"asked"`
	Ref   v1alpha1.TargetRef `json:"ref"`
	// Manifest is YAML, without the values of a Secret; empty if the object does not exist.
	Manifest string `json:"manifest,omitempty"`
	// Hidden is true when values were left out.
	Hidden bool `json:"hidden,omitempty"`
	// Managers have set the fields of the object.
	Managers []Manager `json:"managers,omitempty"`
}

// target reads the object of an item of a plan. The plan must list the object.
func (a *API) target(ctx context.Context, r *http.Request) (any, error) {
	plan, err := a.penstock.HcoV1alpha1().ConfigurationPlans().Get(ctx, r.PathValue("name"), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	wanted := r.PathValue("item")
	for i := range plan.Status.Items {
		if plan.Status.Items[i].Name == wanted {
			return a.readTarget(ctx, plan.Status.Items[i].TargetRef)
		}
	}
	return nil, &Refusal{Status: http.StatusNotFound, Reason: "NotFound", Message: fmt.Sprintf("plan %s has no item %q any more", plan.Name, wanted)}
}

func (a *API) readTarget(ctx context.Context, ref v1alpha1.TargetRef) (any, error) {
	now := metav1.Now()
	out := Target{Asked: when(&now), Ref: ref}
	object, err := a.live(ctx, ref)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return out, nil
	}
	out.Managers = managersOf(object.GetManagedFields())
	out.Manifest, out.Hidden, err = shown(object)
	return out, err
}

// shown returns an object as YAML without its managed fields, and whether values of a Secret were
// left out.
func shown(object *unstructured.Unstructured) (manifest string, hidden bool, err error) {
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	hidden = withoutSecrets(object.Object)
	raw, err := yaml.Marshal(object.Object)
	if err != nil {
		return "", false, fmt.Errorf("encoding %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return string(raw), hidden, nil
}

// live returns an object of the cluster, or nil if the object or its kind does not exist.
func (a *API) live(ctx context.Context, ref v1alpha1.TargetRef) (*unstructured.Unstructured, error) {
	resource, err := a.resourceOf(ref)
	if err != nil || resource.Empty() {
		return nil, err
	}
	object, err := a.host.Resource(resource).Namespace(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return object, err
}

// resourceOf returns the resource of a kind; empty if the cluster does not serve the kind.
func (a *API) resourceOf(ref v1alpha1.TargetRef) (schema.GroupVersionResource, error) {
	version, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return schema.GroupVersionResource{}, fmt.Errorf("reading the apiVersion of %s %s: %w", ref.Kind, ref.Name, err)
	}
	list, err := a.penstock.Discovery().ServerResourcesForGroupVersion(ref.APIVersion)
	if apierrors.IsNotFound(err) {
		return schema.GroupVersionResource{}, nil
	}
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	for _, one := range list.APIResources {
		if one.Kind == ref.Kind && !strings.Contains(one.Name, "/") {
			return version.WithResource(one.Name), nil
		}
	}
	return schema.GroupVersionResource{}, nil
}
