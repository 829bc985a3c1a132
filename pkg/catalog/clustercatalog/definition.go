package clustercatalog

import (
	_ "embed"

	"github.com/penstock-project/penstock/pkg/definition"
)

// DefinitionName is the name of the CustomResourceDefinition.
const DefinitionName = "clustercatalogs.olm.operatorframework.io"

//go:embed definition.yaml
var manifest []byte

// Definition returns the CustomResourceDefinition of ClusterCatalogs.
func Definition() definition.Definition {
	return definition.Definition{Name: DefinitionName, Resource: Resource, Kind: "ClusterCatalog", Manifest: manifest}
}
