package extensionset

import (
	_ "embed"

	"github.com/penstock-project/penstock/pkg/definition"
)

// DefinitionName is the name of the CustomResourceDefinition.
const DefinitionName = "clusterextensionsets.penstock.dev"

//go:embed definition.yaml
var manifest []byte

// Definition returns the CustomResourceDefinition of ClusterExtensionSets.
func Definition() definition.Definition {
	return definition.Definition{Name: DefinitionName, Resource: Resource, Kind: Kind.Kind, Manifest: manifest}
}
