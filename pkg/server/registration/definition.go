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
	"github.com/penstock-project/penstock/pkg/server/managedobject"
)

// definitions is the resource of CustomResourceDefinitions.
func definitions() schema.GroupVersionResource {
	return apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
}

// applyDefinition makes the host have ClusterCatalogs. A definition that somebody else
// installed is used as it is. Without the right to, there are none, and everything else goes
// on.
func (r *Registration) applyDefinition(ctx context.Context) error {
	_, err := r.keepDefinition(ctx)
	if apierrors.IsForbidden(err) {
		klog.FromContext(ctx).Error(err, "The definition of ClusterCatalogs is not installed",
			"remedy", "grant this process to create customresourcedefinitions, and to get and patch "+clustercatalog.DefinitionName+", or apply artifacts/deploy/definitions.yaml")
		return nil
	}
	return err
}

// keepDefinition makes the definition when it is gone, and restores it when it is ours.
func (r *Registration) keepDefinition(ctx context.Context) (metav1.Object, error) {
	client := r.options.Dynamic.Resource(definitions())
	found, err := client.Get(ctx, clustercatalog.DefinitionName, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading customresourcedefinition %s: %w", clustercatalog.DefinitionName, err)
	}
	if err == nil && (!clustercatalog.Ours(found, managedobject.FieldManager) || found.GetDeletionTimestamp() != nil) {
		return found, nil
	}
	content, err := yaml.YAMLToJSON(clustercatalog.DefinitionYAML())
	if err != nil {
		return nil, fmt.Errorf("encoding customresourcedefinition %s: %w", clustercatalog.DefinitionName, err)
	}
	// Made by somebody else meanwhile, it is theirs.
	if found == nil {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, fmt.Errorf("encoding customresourcedefinition %s: %w", clustercatalog.DefinitionName, err)
		}
		_, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: managedobject.FieldManager})
		if apierrors.IsAlreadyExists(err) {
			return client.Get(ctx, clustercatalog.DefinitionName, metav1.GetOptions{})
		}
		if err != nil {
			return nil, fmt.Errorf("creating customresourcedefinition %s: %w", clustercatalog.DefinitionName, err)
		}
	}
	force := true
	applied, err := client.Patch(ctx, clustercatalog.DefinitionName, types.ApplyPatchType, content,
		metav1.PatchOptions{FieldManager: managedobject.FieldManager, Force: &force})
	if err != nil {
		return nil, fmt.Errorf("applying customresourcedefinition %s: %w", clustercatalog.DefinitionName, err)
	}
	return applied, nil
}

// definition removes the definition of ClusterCatalogs if we installed it and there are none:
// with it would go what people declared.
func (u *unregistration) definition(ctx context.Context) error {
	client := u.dynamic.Resource(definitions())
	found, err := client.Get(ctx, clustercatalog.DefinitionName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading customresourcedefinition %s: %w", clustercatalog.DefinitionName, err)
	}
	if !clustercatalog.Ours(found, managedobject.FieldManager) {
		return nil
	}
	there, err := u.dynamic.Resource(clustercatalog.Resource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("listing ClusterCatalogs: %w", err)
	}
	if err == nil && len(there.Items) > 0 {
		return nil
	}
	uid, version := found.GetUID(), found.GetResourceVersion()
	err = client.Delete(ctx, clustercatalog.DefinitionName, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
	return u.gone("customresourcedefinition "+clustercatalog.DefinitionName, err)
}
