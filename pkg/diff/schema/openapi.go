package schema

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NewOpenAPI returns the types that OpenAPI v3 documents of an API server
// describe, as it serves them at /openapi/v3/apis/<group>/<version>.
func NewOpenAPI(documents ...[]byte) (Schema, error) {
	kinds := make(openAPIKinds)
	for i, content := range documents {
		var document struct {
			Components struct {
				Schemas map[string]map[string]any `json:"schemas"`
			} `json:"components"`
		}
		if err := json.Unmarshal(content, &document); err != nil {
			return nil, fmt.Errorf("reading OpenAPI document %d: %w", i, err)
		}
		for _, definition := range document.Components.Schemas {
			for _, kind := range kindsOf(definition) {
				kinds[kind] = &jsonType{schema: definition, definitions: document.Components.Schemas}
			}
		}
	}
	return kinds, nil
}

type openAPIKinds map[schema.GroupVersionKind]*jsonType

// TypeOf returns the type of a kind that one of the documents describes, or nil.
func (k openAPIKinds) TypeOf(kind schema.GroupVersionKind) Type {
	if t, ok := k[kind]; ok {
		return t
	}
	return nil
}

func kindsOf(definition map[string]any) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	list, _ := definition["x-kubernetes-group-version-kind"].([]any)
	for _, entry := range list {
		names, _ := entry.(map[string]any)
		group, _ := names["group"].(string)
		version, _ := names["version"].(string)
		kind, _ := names["kind"].(string)
		kinds = append(kinds, schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
	}
	return kinds
}
