package applycheck

import (
	"fmt"
	"maps"

	apiextensionsopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	aggregatoropenapi "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// extensionTypes returns the types of CustomResourceDefinitions and APIServices, for which
// client-go has no apply configurations. Their API servers build their own types from the same
// definitions.
func extensionTypes() (*smdschema.Schema, error) {
	ref := func(name string) spec.Ref { return spec.MustCreateRef("#/components/schemas/" + name) }
	definitions := apiextensionsopenapi.GetOpenAPIDefinitions(ref)
	maps.Copy(definitions, aggregatoropenapi.GetOpenAPIDefinitions(ref))
	models := map[string]*spec.Schema{}
	for _, root := range []string{
		"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
		"io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService",
	} {
		addModel(models, definitions, root)
	}
	converted, err := schemaconv.ToSchemaFromOpenAPI(models, false)
	if err != nil {
		return nil, fmt.Errorf("converting the types of definitions and APIServices: %w", err)
	}
	return &smdschema.Schema{Types: converted.Types}, nil
}

// addModel adds a type and all types that it refers to.
func addModel(models map[string]*spec.Schema, definitions map[string]common.OpenAPIDefinition, name string) {
	definition, found := definitions[name]
	if _, known := models[name]; known || !found {
		return
	}
	models[name] = &definition.Schema
	for _, dependency := range definition.Dependencies {
		addModel(models, definitions, dependency)
	}
}
