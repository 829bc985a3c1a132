package profile

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Definitions is the resource of CustomResourceDefinitions.
func Definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// Source has what profiles look at: watches, or requests. Its errors say what could not be
// read.
type Source interface {
	// Definition returns a CustomResourceDefinition, nil when there is none.
	Definition(ctx context.Context, name string) (*unstructured.Unstructured, error)
	// Objects returns the objects of a definition that is served, as this resource, in
	// any order.
	Objects(ctx context.Context, definition string, resource schema.GroupVersionResource) ([]*unstructured.Unstructured, error)
}

// Finding is what one requirement turned out to be.
type Finding struct {
	// Definition has no versions when it is not served.
	Definition Definition
	// Objects are those of a definition that is served, in the order of their names, when
	// they are required.
	Objects []*unstructured.Unstructured
}

// Find reads what a requirement is about.
func Find(ctx context.Context, from Source, requirement Requirement) (Finding, error) {
	crd, err := from.Definition(ctx, requirement.Definition)
	if err != nil {
		return Finding{}, err
	}
	definition, served := DefinitionOf(crd)
	if !served {
		return Finding{}, nil
	}
	if !requirement.Objects {
		return Finding{Definition: definition}, nil
	}
	// The name of a definition is plural and group, by rule.
	plural, group, _ := strings.Cut(requirement.Definition, ".")
	objects, err := from.Objects(ctx, requirement.Definition, schema.GroupVersionResource{Group: group, Version: definition.Preferred().Name, Resource: plural})
	if err != nil {
		return Finding{}, err
	}
	slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetNamespace()+"/"+a.GetName(), b.GetNamespace()+"/"+b.GetName())
	})
	return Finding{Definition: definition, Objects: objects}, nil
}

// NewFacts returns facts that have nothing yet.
func NewFacts() Facts {
	return Facts{Definitions: map[string]Definition{}, Objects: map[schema.GroupKind][]*unstructured.Unstructured{}}
}

// Add adds what a requirement turned out to be. It tells whether its definition is served.
func (f Facts) Add(requirement Requirement, found Finding) bool {
	if len(found.Definition.Versions) == 0 {
		return false
	}
	f.Definitions[requirement.Definition] = found.Definition
	if requirement.Objects {
		f.Objects[requirement.Kind] = found.Objects
	}
	return true
}
