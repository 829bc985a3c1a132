package registration

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/definition"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
	"github.com/penstock-project/penstock/pkg/metriccheck"
	"github.com/penstock-project/penstock/pkg/server/managedobject"
)

func definitions() schema.GroupVersionResource {
	return apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
}

// Definitions returns the CustomResourceDefinitions that Penstock installs.
func Definitions() []definition.Definition {
	return []definition.Definition{clustercatalog.Definition(), extension.Definition(), chartkind.Definition(), maintenancewindow.Definition(), metriccheck.Definition(), extensionset.Definition()}
}

// applyDefinitions installs the CustomResourceDefinitions of user-facing kinds. It uses a
// definition of another owner unchanged. Without the right to install them, it logs that and
// continues.
func (r *Registration) applyDefinitions(ctx context.Context) error {
	for _, d := range Definitions() {
		_, err := r.keepDefinition(ctx, d)
		switch {
		case apierrors.IsForbidden(err):
			klog.FromContext(ctx).Error(err, "A definition is not installed", "kind", d.Kind,
				"remedy", "grant this process to create customresourcedefinitions, and to get and patch "+d.Name+", or apply artifacts/deploy/definitions.yaml")
		case err != nil:
			return err
		}
	}
	return nil
}

// keepDefinition creates a missing definition, and restores Penstock's own definition.
func (r *Registration) keepDefinition(ctx context.Context, d definition.Definition) (metav1.Object, error) {
	client := r.options.Dynamic.Resource(definitions())
	found, err := client.Get(ctx, d.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading customresourcedefinition %s: %w", d.Name, err)
	}
	if err == nil && (!definition.Ours(found, managedobject.FieldManager) || found.GetDeletionTimestamp() != nil) {
		return found, nil
	}
	content, err := yaml.YAMLToJSON(d.YAML())
	if err != nil {
		return nil, fmt.Errorf("encoding customresourcedefinition %s: %w", d.Name, err)
	}
	// Create fails if another user has created the definition meanwhile. That user then owns it.
	if found == nil {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, fmt.Errorf("encoding customresourcedefinition %s: %w", d.Name, err)
		}
		_, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: managedobject.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			return client.Get(ctx, d.Name, metav1.GetOptions{})
		}
		if err != nil {
			return nil, fmt.Errorf("creating customresourcedefinition %s: %w", d.Name, err)
		}
	}
	force := true
	applied, err := client.Patch(ctx, d.Name, types.ApplyPatchType, content,
		metav1.PatchOptions{FieldManager: managedobject.FieldManager, Force: &force})
	if err != nil {
		return nil, fmt.Errorf("applying customresourcedefinition %s: %w", d.Name, err)
	}
	return applied, nil
}

// definitions removes the definitions that Penstock installed and that have no objects. Deleting a
// definition would delete its objects.
func (u *unregistration) definitions(ctx context.Context) error {
	for _, d := range Definitions() {
		if err := u.definition(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (u *unregistration) definition(ctx context.Context, d definition.Definition) error {
	client := u.dynamic.Resource(definitions())
	found, err := client.Get(ctx, d.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading customresourcedefinition %s: %w", d.Name, err)
	}
	if !definition.Ours(found, managedobject.FieldManager) {
		return nil
	}
	there, err := u.dynamic.Resource(d.Resource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("listing %s: %w", d.Resource.Resource, err)
	}
	if err == nil && len(there.Items) > 0 {
		return nil
	}
	uid, version := found.GetUID(), found.GetResourceVersion()
	err = client.Delete(ctx, d.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	return u.gone("customresourcedefinition "+d.Name, err)
}
