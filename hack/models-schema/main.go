// Command models-schema prints the OpenAPI v2 schemas of our API types. applyconfiguration-gen
// reads the list types and keys from them. Only hack/update-codegen.sh runs it.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/penstock-project/penstock/pkg/generated/openapi"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	ref := func(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) }
	schemas := spec.Definitions{}
	for name, definition := range openapi.GetOpenAPIDefinitions(ref) {
		schemas[name] = inV2(definition.Schema)
	}
	swagger := &spec.Swagger{SwaggerProps: spec.SwaggerProps{
		Swagger:     "2.0",
		Info:        &spec.Info{InfoProps: spec.InfoProps{Title: "Penstock", Version: "unversioned"}},
		Definitions: schemas,
	}}
	if err := json.NewEncoder(os.Stdout).Encode(swagger); err != nil {
		return fmt.Errorf("writing schemas: %w", err)
	}
	return nil
}

// inV2 returns the v2 form of a v3 schema. IntOrString and similar types contain it; otherwise both
// forms are equal.
func inV2(schema spec.Schema) spec.Schema {
	if v2, ok := schema.Extensions[common.ExtensionV2Schema].(spec.Schema); ok {
		return v2
	}
	return schema
}
