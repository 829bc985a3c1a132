//go:build integration

package rollout_test

import (
	"encoding/json"
	"fmt"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/test/framework/objects"
)

// The manifests of the tests, as decoded JSON.

func namespace(name string) map[string]any { return objects.Namespace(name) }

func configMap(namespace, name, value string) map[string]any {
	return objects.ConfigMap(namespace, name, "value="+value)
}

func secret(namespace, name string, data map[string]any) map[string]any {
	o := objects.New("v1", "Secret", namespace, name)
	o["data"] = data
	return o
}

// clusterRole returns a ClusterRole whose value is the verb of its rule.
func clusterRole(name, value string) map[string]any {
	return map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": name},
		"rules": []any{map[string]any{"apiGroups": []any{"example.com"}, "resources": []any{"things"}, "verbs": []any{value}}}}
}

// deployment returns a Deployment whose value is the tag of its image. It has a quantity that the
// server spells differently.
func deployment(namespace, name, value string) map[string]any {
	o := objects.Deployment(namespace, name, "example.com/app:"+value)
	spec := o["spec"].(map[string]any)
	spec["replicas"], spec["paused"] = int64(2), false
	main := spec["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	main["resources"] = map[string]any{"requests": map[string]any{"cpu": "0.5"}}
	return o
}

// widgets returns the definition of a kind in a group.
func widgets(group, kind, plural string) map[string]any {
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{"group": group, "scope": "Namespaced", "names": map[string]any{"kind": kind, "plural": plural},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema":       map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": anything, "status": anything}}}}}}}
}

func widget(group, kind, namespace, name, value string) map[string]any {
	return map[string]any{"apiVersion": group + "/v1", "kind": kind,
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{"value": value}}
}

// valueOf returns the value of a test's object.
func valueOf(o map[string]any) string {
	at := func(path ...any) string {
		var here any = o
		for _, step := range path {
			switch step := step.(type) {
			case string:
				fields, _ := here.(map[string]any)
				here = fields[step]
			case int:
				items, _ := here.([]any)
				if step >= len(items) {
					return ""
				}
				here = items[step]
			}
		}
		text, _ := here.(string)
		return text
	}
	switch o["kind"] {
	case "ConfigMap", "Secret":
		return at("data", "value")
	case "ClusterRole":
		return at("rules", 0, "verbs", 0)
	case "Deployment":
		return at("spec", "template", "spec", "containers", 0, "image")
	default:
		return at("spec", "value")
	}
}

// seal makes a manifest from decoded JSON.
func seal(object map[string]any) manifest.Object {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Sprint("a manifest of a test: ", err))
	}
	sealed, err := manifest.Digester{SecretKey: []byte("key of the test")}.FromJSON(raw)
	if err != nil {
		panic(fmt.Sprint("a manifest of a test: ", err))
	}
	return sealed
}

func id(object map[string]any) manifest.ID { return seal(object).ID }
