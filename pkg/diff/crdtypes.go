package diff

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// BundleTypes returns the types that the CustomResourceDefinitions among some
// objects define. Revisions uses them by itself. A definition is read when one
// of its objects is compared; one that cannot be read, or that has no JSON, is
// skipped.
func BundleTypes(objects []manifest.Object) Schema {
	return bundleTypes(objects)
}

func bundleTypes(objects []manifest.Object) *bundle {
	b := &bundle{definitions: make(map[string][]*manifest.Object), known: make(map[schema.GroupVersionKind]Type)}
	for i := range objects {
		if !objects[i].IsDefinition() {
			continue
		}
		// The name is <plural>.<group>: an API server insists.
		if _, group, ok := strings.Cut(objects[i].Name, "."); ok {
			b.definitions[group] = append(b.definitions[group], &objects[i])
		}
	}
	return b
}

// bundle reads definitions on demand: they are most of the bytes of a bundle,
// and most bundles have few custom resources.
type bundle struct {
	definitions map[string][]*manifest.Object // by group, until they are read
	known       map[schema.GroupVersionKind]Type
}

// TypeOf returns the type of a custom resource that is defined in the bundle.
func (b *bundle) TypeOf(kind schema.GroupVersionKind) Type {
	for _, definition := range b.definitions[kind.Group] {
		b.read(definition)
	}
	delete(b.definitions, kind.Group)
	return b.known[kind]
}

func (b *bundle) read(definition *manifest.Object) {
	var crd map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(definition.JSON, &crd); err != nil {
		return
	}
	spec, _ := crd["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	group, _ := spec["group"].(string)
	kind, _ := names["kind"].(string)
	versions, _ := spec["versions"].([]any)
	for _, entry := range versions {
		version, _ := entry.(map[string]any)
		name, _ := version["name"].(string)
		holder, _ := version["schema"].(map[string]any)
		if holder == nil {
			// v1beta1 has one schema for all versions.
			holder, _ = spec["validation"].(map[string]any)
		}
		if t := newJSONType(holder["openAPIV3Schema"], nil); t != nil {
			b.known[schema.GroupVersionKind{Group: group, Version: name, Kind: kind}] = t
		}
	}
}
