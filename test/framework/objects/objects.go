// Package objects returns the smallest objects that kube-apiserver accepts, as decoded JSON. A test
// sets further fields itself.
package objects

import "strings"

// New returns an object with only its identity. An empty namespace makes it cluster-scoped.
func New(apiVersion, kind, namespace, name string) map[string]any {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
}

// Namespace returns a Namespace.
func Namespace(name string) map[string]any { return New("v1", "Namespace", "", name) }

// ConfigMap returns a ConfigMap. Data has the form key=value.
func ConfigMap(namespace, name string, data ...string) map[string]any {
	o := New("v1", "ConfigMap", namespace, name)
	o["data"] = pairs(data)
	return o
}

// Secret returns a Secret. Data has the form key=value, in plain text.
func Secret(namespace, name string, data ...string) map[string]any {
	o := New("v1", "Secret", namespace, name)
	o["stringData"] = pairs(data)
	return o
}

// Deployment returns a Deployment of one replica with one container, named main.
func Deployment(namespace, name, image string) map[string]any {
	o := New("apps/v1", "Deployment", namespace, name)
	labels := map[string]any{"app": name}
	o["spec"] = map[string]any{
		"replicas": int64(1),
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}},
		},
	}
	return o
}

// pairs parses texts of the form key=value.
func pairs(texts []string) map[string]any {
	fields := map[string]any{}
	for _, text := range texts {
		key, value, _ := strings.Cut(text, "=")
		fields[key] = value
	}
	return fields
}
