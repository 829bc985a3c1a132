package applycheck

import (
	"encoding/json"
	"fmt"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
)

// OpenAPI is the types of one OpenAPI v3 document of a cluster. Several goroutines may use it.
type OpenAPI struct {
	types *smdschema.Schema
	names map[runtimeschema.GroupVersionKind]string
	// withStatus are the kinds that have the status subresource.
	withStatus map[runtimeschema.GroupVersionKind]bool
}

// NewOpenAPI parses a document as kube-apiserver serves it at /openapi/v3/apis/<group>/<version>.
func NewOpenAPI(document []byte) (*OpenAPI, error) {
	var read struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(document, &read); err != nil {
		return nil, fmt.Errorf("reading an OpenAPI document: %w", err)
	}
	converted, err := schemaconv.ToSchemaFromOpenAPI(read.Components.Schemas, false)
	if err != nil {
		return nil, fmt.Errorf("converting an OpenAPI document: %w", err)
	}
	o := &OpenAPI{types: &smdschema.Schema{Types: converted.Types}, names: map[runtimeschema.GroupVersionKind]string{}, withStatus: map[runtimeschema.GroupVersionKind]bool{}}
	for name, model := range read.Components.Schemas {
		for _, kind := range kindsOf(model.Extensions) {
			o.names[kind] = name
		}
	}
	for path, operations := range read.Paths {
		if !strings.HasSuffix(path, "/status") {
			continue
		}
		var status struct {
			Get struct {
				Kind runtimeschema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
			} `json:"get"`
		}
		if err := json.Unmarshal(operations, &status); err != nil {
			return nil, fmt.Errorf("reading path %s of an OpenAPI document: %w", path, err)
		}
		o.withStatus[status.Get.Kind] = true
	}
	return o, nil
}

// TypeOf implements Types.
func (o *OpenAPI) TypeOf(kind runtimeschema.GroupVersionKind) *Type {
	name, found := o.names[kind]
	if !found {
		return nil
	}
	t := named(o.types, name)
	if t != nil {
		t.hasStatus = o.withStatus[kind]
	}
	return t
}

func kindsOf(extensions spec.Extensions) []runtimeschema.GroupVersionKind {
	var kinds []runtimeschema.GroupVersionKind
	list, _ := extensions["x-kubernetes-group-version-kind"].([]any)
	for _, entry := range list {
		names, _ := entry.(map[string]any)
		group, _ := names["group"].(string)
		version, _ := names["version"].(string)
		kind, _ := names["kind"].(string)
		kinds = append(kinds, runtimeschema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	}
	return kinds
}
