package extension

import (
	_ "embed"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/penstock-project/penstock/pkg/definition"
)

// DefinitionName is the name of the CustomResourceDefinition.
const DefinitionName = "clusterextensions.olm.operatorframework.io"

//go:embed definition.yaml
var manifest []byte

// Definition is that of ClusterExtensions.
func Definition() definition.Definition {
	return definition.Definition{Name: DefinitionName, Resource: Resource, Kind: Kind.Kind, Manifest: manifest}
}

// Keeps tells whether the definition that a cluster has keeps the field of a source type,
// SourceCatalog, SourceImage or SourceChart. OLM's keeps only the first: kube-apiserver drops
// the others from what is stored, and refuses to write them.
func Keeps(found *apiextensionsv1.CustomResourceDefinition, sourceType string) bool {
	field := map[string]string{SourceCatalog: "catalog", SourceImage: "image", SourceChart: "chart"}[sourceType]
	i := slices.IndexFunc(found.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == Resource.Version && v.Served
	})
	if i < 0 || field == "" || found.Spec.Versions[i].Schema == nil {
		return false
	}
	source := found.Spec.Versions[i].Schema.OpenAPIV3Schema
	for _, name := range []string{"spec", "source"} {
		property, has := properties(source)[name]
		if !has {
			return false
		}
		source = &property
	}
	_, has := properties(source)[field]
	values := properties(source)["sourceType"].Enum
	allowed := len(values) == 0 || slices.ContainsFunc(values, func(v apiextensionsv1.JSON) bool { return string(v.Raw) == `"`+sourceType+`"` })
	return has && allowed
}

func properties(schema *apiextensionsv1.JSONSchemaProps) map[string]apiextensionsv1.JSONSchemaProps {
	if schema == nil {
		return nil
	}
	return schema.Properties
}
