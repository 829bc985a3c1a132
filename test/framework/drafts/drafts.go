// Package drafts builds ClusterExtensionRevisions as a user writes them:
//
//	drafts.Revision("shop", 1).
//		Phase("settings", objects.ConfigMap("shop", "settings", "currency=EUR")).
//		Phase("deploy", objects.Deployment("shop", "web", "registry.example.com/web:v1"))
package drafts

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/penstock-project/penstock/test/framework/objects"
)

// Object is a manifest.
type Object map[string]any

// Draft is a ClusterExtensionRevision that is not created yet.
type Draft struct {
	// Name is metadata.name.
	Name   string
	spec   map[string]any
	phases []any
}

// Revision drafts the revision <extension>-<number>.
func Revision(extension string, number int) Draft {
	return Draft{
		Name: fmt.Sprintf("%s-%d", extension, number),
		spec: map[string]any{"revision": number},
	}
}

// Phase adds a phase.
func (d Draft) Phase(name string, objects ...Object) Draft {
	entries := []any{}
	for _, o := range objects {
		entry := map[string]any{"object": o}
		if protection, ok := o["collisionProtection"]; ok {
			o = maps.Clone(o)
			delete(o, "collisionProtection")
			entry = map[string]any{"object": o, "collisionProtection": protection}
		}
		entries = append(entries, entry)
	}
	d.phases = append(d.phases[:len(d.phases):len(d.phases)], map[string]any{"name": name, "objects": entries})
	return d
}

// With sets another field of spec.
func (d Draft) With(field string, value any) Draft {
	d.spec = maps.Clone(d.spec)
	d.spec[field] = value
	return d
}

// Named sets a name that differs from the revision's number.
func (d Draft) Named(name string) Draft {
	d.Name = name
	return d
}

// Gated makes the rollout wait until each gate of the draft is open.
func (d Draft) Gated() Draft {
	return d.With("progressionProbes", []any{map[string]any{
		"selector":   map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{"gate": "yes"}}},
		"assertions": []any{map[string]any{"cel": map[string]any{"expression": "has(self.data.open)", "message": "the gate is closed"}}},
	}})
}

// Gate returns a ConfigMap that blocks a gated rollout. OpenGate opens it.
func Gate(namespace, name string) Object {
	return Object(objects.ConfigMap(namespace, name, "x=1")).Labelled("gate", "yes")
}

// OpenGate is the merge patch that opens a Gate.
const OpenGate = `{"data":{"open":"yes"}}`

// String returns the draft as input for kubectl.
func (d Draft) String() string {
	spec := maps.Clone(d.spec)
	if d.phases != nil {
		spec["phases"] = d.phases
	}
	raw, err := json.MarshalIndent(map[string]any{
		"apiVersion": "olm.operatorframework.io/v1alpha1",
		"kind":       "ClusterExtensionRevision",
		"metadata":   map[string]any{"name": d.Name},
		"spec":       spec,
	}, "", "  ")
	if err != nil {
		panic(err) // drafts contain only strings, numbers, maps and lists
	}
	return string(raw)
}

// Definition returns the CustomResourceDefinition of a namespaced kind in the group
// <plural>.example.com.
func Definition(kind string) Object {
	singular := strings.ToLower(kind)
	plural, group := singular+"s", singular+"s.example.com"
	o := Object(objects.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+"."+group))
	o["spec"] = map[string]any{
		"group": group,
		"scope": "Namespaced",
		"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": plural, "singular": singular},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"subresources": map[string]any{"status": map[string]any{}},
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		}},
	}
	return o
}

// Instance returns an object of a Definition.
func Instance(kind, namespace, name string) Object {
	return objects.New(strings.ToLower(kind)+"s.example.com/v1", kind, namespace, name)
}

// Protected sets the collision protection of the object's entry.
func (o Object) Protected(protection string) Object {
	o = maps.Clone(o)
	o["collisionProtection"] = protection
	return o
}

// Labelled sets labels, given as key and value in turn.
func (o Object) Labelled(pairs ...string) Object { return o.marked("labels", pairs) }

// Annotated sets annotations, given as key and value in turn.
func (o Object) Annotated(pairs ...string) Object { return o.marked("annotations", pairs) }

func (o Object) marked(field string, pairs []string) Object {
	marks := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		marks[pairs[i]] = pairs[i+1]
	}
	o["metadata"].(map[string]any)[field] = marks
	return o
}

// String returns the manifest as input for kubectl.
func (o Object) String() string {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err) // as above
	}
	return string(raw)
}
