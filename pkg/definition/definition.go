// Package definition describes the CustomResourceDefinitions that Penstock installs where they are
// absent. It reports whether the definition in a cluster is still the one that Penstock installed.
package definition

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// The label of a definition that Penstock installed.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedByUs    = "penstock"
)

// Definition is a CustomResourceDefinition that Penstock installs.
type Definition struct {
	// Name is the name of the CustomResourceDefinition.
	Name string
	// Resource is the defined resource. Kind is its name for users.
	Resource schema.GroupVersionResource
	Kind     string
	// Manifest is the CustomResourceDefinition as YAML, with Penstock's label.
	Manifest []byte
}

// YAML returns a copy of the manifest.
func (d Definition) YAML() []byte { return slices.Clone(d.Manifest) }

// Decode parses the CustomResourceDefinition.
func (d Definition) Decode() (*apiextensionsv1.CustomResourceDefinition, error) {
	read := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(d.Manifest, read); err != nil {
		return nil, fmt.Errorf("reading customresourcedefinition %s: %w", d.Name, err)
	}
	return read, nil
}

// Ours reports whether Penstock installed a definition and no other client has applied it since.
// Only then Penstock may change or remove it. Manager is Penstock's field manager.
func Ours(found metav1.Object, manager string) bool {
	if found.GetLabels()[managedByLabel] != managedByUs {
		return false
	}
	return !slices.ContainsFunc(found.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		// kube-apiserver's entry for the status subresource does not count.
		return entry.Manager != manager && entry.Subresource == ""
	})
}
