//go:build integration

package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/penstock-project/penstock/test/framework/objects"
)

// object is a manifest.
type object map[string]any

// draft is a ClusterExtensionRevision as a person writes it.
type draft struct {
	name   string
	spec   map[string]any
	phases []any
}

// revision drafts <extension>-<number>.
func revision(extension string, number int) draft {
	return draft{
		name: fmt.Sprintf("%s-%d", extension, number),
		spec: map[string]any{"revision": number},
	}
}

// phase adds a phase.
func (d draft) phase(name string, objects ...object) draft {
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

// with sets another field of spec.
func (d draft) with(field string, value any) draft {
	d.spec = maps.Clone(d.spec)
	d.spec[field] = value
	return d
}

// named gives the draft another name than its number says.
func (d draft) named(name string) draft {
	d.name = name
	return d
}

// String is what is piped into kubectl.
func (d draft) String() string {
	spec := maps.Clone(d.spec)
	if d.phases != nil {
		spec["phases"] = d.phases
	}
	raw, err := json.MarshalIndent(map[string]any{
		"apiVersion": "olm.operatorframework.io/v1alpha1",
		"kind":       "ClusterExtensionRevision",
		"metadata":   map[string]any{"name": d.name},
		"spec":       spec,
	}, "", "  ")
	if err != nil {
		panic(err) // Drafts are made of strings, numbers, maps and lists.
	}
	return string(raw)
}

func manifest(apiVersion, kind, namespace, name string) object {
	return objects.New(apiVersion, kind, namespace, name)
}

// configMap has data of the form key=value.
func configMap(namespace, name string, data ...string) object {
	return objects.ConfigMap(namespace, name, data...)
}

func secret(namespace, name, password string) object {
	return objects.Secret(namespace, name, "password="+password)
}

func deployment(namespace, name, image string) object {
	return objects.Deployment(namespace, name, image)
}

// definition of a namespaced kind in the group <plural>.example.com.
func definition(kind string) object {
	singular := strings.ToLower(kind)
	plural, group := singular+"s", singular+"s.example.com"
	o := manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+"."+group)
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

// instance of a definition.
func instance(kind, namespace, name string) object {
	return manifest(strings.ToLower(kind)+"s.example.com/v1", kind, namespace, name)
}

// protected sets the collision protection of the object's entry.
func (o object) protected(protection string) object {
	o = maps.Clone(o)
	o["collisionProtection"] = protection
	return o
}

// String is the manifest as it is piped into kubectl.
func (o object) String() string {
	raw, err := json.Marshal(o)
	if err != nil {
		panic(err) // as above
	}
	return string(raw)
}
