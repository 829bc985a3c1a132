package server

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	generatedopenapi "github.com/penstock-project/penstock/pkg/generated/openapi"
)

func addOpenAPI(config *genericapiserver.RecommendedConfig, scheme *runtime.Scheme, programVersion string) {
	namer := openapi.NewDefinitionNamer(scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Title = "Penstock"
	config.OpenAPIConfig.Info.Version = programVersion
	config.OpenAPIV3Config.Info = config.OpenAPIConfig.Info
	config.OpenAPIConfig.PostProcessSpec = hideStrategicV2
	config.OpenAPIV3Config.PostProcessSpec = hideStrategicV3
}

// hideStrategicV3 removes strategic merge patches from the published operations, although the
// library serves them. For types that publish them, kubectl expects compiled-in types, and fails:
// `kubectl apply --dry-run=client` prints "applying patch locally: expected a struct, but received
// a nil". Without them, kubectl sends merge patches, as for custom resources.
func hideStrategicV3(published *spec3.OpenAPI) (*spec3.OpenAPI, error) {
	if published.Paths == nil {
		return published, nil
	}
	for _, path := range published.Paths.Paths {
		if path.Patch != nil && path.Patch.RequestBody != nil {
			delete(path.Patch.RequestBody.Content, string(types.StrategicMergePatchType))
		}
	}
	return published, nil
}

// hideStrategicV2 does the same for OpenAPI v2.
func hideStrategicV2(published *spec.Swagger) (*spec.Swagger, error) {
	if published.Paths == nil {
		return published, nil
	}
	for _, path := range published.Paths.Paths {
		if path.Patch == nil {
			continue
		}
		var consumes []string
		for _, mediaType := range path.Patch.Consumes {
			if mediaType != string(types.StrategicMergePatchType) {
				consumes = append(consumes, mediaType)
			}
		}
		path.Patch.Consumes = consumes
	}
	return published, nil
}
