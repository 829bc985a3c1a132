package clustercatalog

import (
	_ "embed"

	"github.com/penstock-project/penstock/pkg/definition"
)

// DefinitionName is the name of the CustomResourceDefinition.
const DefinitionName = "clustercatalogs.olm.operatorframework.io"

//go:embed definition.yaml
var manifest []byte

// Definition is that of ClusterCatalogs.
func Definition() definition.Definition {
	return definition.Definition{Name: DefinitionName, Resource: Resource, Kind: "ClusterCatalog", Manifest: manifest}
}
