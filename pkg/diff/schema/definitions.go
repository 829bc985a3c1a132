package schema

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// NewDefinitions returns the types that the CustomResourceDefinitions among some objects define. It
// parses a definition on first use, and skips unreadable definitions. It is not safe for concurrent
// use.
func NewDefinitions(objects []manifest.Object) Schema {
	d := &definitions{unread: make(map[string][]*manifest.Object), known: make(map[schema.GroupVersionKind]Type)}
	for i := range objects {
		if !objects[i].IsDefinition() {
			continue
		}
		// An API server requires the name <plural>.<group>.
		if _, group, ok := strings.Cut(objects[i].Name, "."); ok {
			d.unread[group] = append(d.unread[group], &objects[i])
		}
	}
	return d
}

// definitions are parsed on demand: they are most of the bytes of a bundle, and most bundles have
// few custom resources.
type definitions struct {
	unread map[string][]*manifest.Object // by group
	known  map[schema.GroupVersionKind]Type
}

// TypeOf returns the type of a custom resource whose definition is among the objects, or nil.
func (d *definitions) TypeOf(kind schema.GroupVersionKind) Type {
	for _, definition := range d.unread[kind.Group] {
		d.read(definition)
	}
	delete(d.unread, kind.Group)
	return d.known[kind]
}

func (d *definitions) read(definition *manifest.Object) {
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
			// v1beta1 may have one schema for all versions.
			holder, _ = spec["validation"].(map[string]any)
		}
		if t := newJSONType(holder["openAPIV3Schema"]); t != nil {
			d.known[schema.GroupVersionKind{Group: group, Version: name, Kind: kind}] = t
		}
	}
}
