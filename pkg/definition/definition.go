// Package definition knows the CustomResourceDefinitions that Penstock installs where they are
// absent: the definition of a package, and whether the definition in a cluster is still ours.
package definition

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// The label of a definition that we installed.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedByUs    = "penstock"
)

// Definition is a CustomResourceDefinition that we bring.
type Definition struct {
	// Name is the name of the CustomResourceDefinition.
	Name string
	// Resource is the defined resource, and Kind the name that people use.
	Resource schema.GroupVersionResource
	Kind     string
	// Manifest is the CustomResourceDefinition as YAML. It has the label by which it is
	// ours.
	Manifest []byte
}

// YAML is the CustomResourceDefinition as a manifest.
func (d Definition) YAML() []byte { return slices.Clone(d.Manifest) }

// Decode reads the CustomResourceDefinition.
func (d Definition) Decode() (*apiextensionsv1.CustomResourceDefinition, error) {
	read := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(d.Manifest, read); err != nil {
		return nil, fmt.Errorf("reading customresourcedefinition %s: %w", d.Name, err)
	}
	return read, nil
}

// Ours is true when Penstock installed a definition and no other program has
// applied its own over it since. Only then Penstock may change or remove it.
// Manager is the field manager by which we write.
func Ours(found metav1.Object, manager string) bool {
	if found.GetLabels()[managedByLabel] != managedByUs {
		return false
	}
	return !slices.ContainsFunc(found.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		// kube-apiserver writes the status.
		return entry.Manager != manager && entry.Subresource == ""
	})
}
