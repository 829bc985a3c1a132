package clustercatalog

import (
	_ "embed"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// DefinitionName is the name of the CustomResourceDefinition.
const DefinitionName = "clustercatalogs.olm.operatorframework.io"

// The label of a definition that we installed.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedByUs    = "penstock"
)

//go:embed definition.yaml
var definition []byte

// DefinitionYAML is the CustomResourceDefinition as a manifest.
func DefinitionYAML() []byte { return slices.Clone(definition) }

// Definition is the CustomResourceDefinition.
func Definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	read := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(definition, read); err != nil {
		return nil, fmt.Errorf("reading the definition of ClusterCatalogs: %w", err)
	}
	return read, nil
}

// Ours tells whether we installed a definition, and nobody else has applied one of theirs
// over it since: then we may change and remove it. Manager is the field manager by which we
// write.
func Ours(found metav1.Object, manager string) bool {
	if found.GetLabels()[managedByLabel] != managedByUs {
		return false
	}
	return !slices.ContainsFunc(found.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		// kube-apiserver writes the status.
		return entry.Manager != manager && entry.Subresource == ""
	})
}
