package profile

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Definitions returns the resource of CustomResourceDefinitions.
func Definitions() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
}

// Source reads the objects of profiles, with watches or requests. Its errors name the unreadable
// object.
type Source interface {
	// Definition returns a CustomResourceDefinition, or nil if it does not exist.
	Definition(ctx context.Context, name string) (*unstructured.Unstructured, error)
	// Objects returns the objects of a served definition in any order.
	Objects(ctx context.Context, definition string, resource schema.GroupVersionResource) ([]*unstructured.Unstructured, error)
}

// Finding is the result of one requirement.
type Finding struct {
	// Definition has no versions if it is not served.
	Definition Definition
	// Objects are the objects of a served definition, sorted by name, if the requirement needs
	// them.
	Objects []*unstructured.Unstructured
}

// Find reads the definition and the objects of a requirement.
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
	// The name of a definition is always plural and group.
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

// NewFacts returns empty facts.
func NewFacts() Facts {
	return Facts{Definitions: map[string]Definition{}, Objects: map[schema.GroupKind][]*unstructured.Unstructured{}}
}

// Add adds the finding of a requirement. It reports whether its definition is served.
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
