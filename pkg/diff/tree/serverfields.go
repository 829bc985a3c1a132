package tree

import (
	"maps"
	"strings"
)

// withoutServerFields removes fields that servers set: status of Kubernetes' own kinds, metadata of
// the API server, and labels and annotations of Penstock and the deployment controller. Status of
// other kinds may be content of a manifest.
func withoutServerFields(object map[string]any, keepsStatus bool) map[string]any {
	object = maps.Clone(object)
	if !keepsStatus {
		delete(object, "status")
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	metadata = maps.Clone(metadata)
	object["metadata"] = metadata
	maps.DeleteFunc(metadata, func(name string, _ any) bool { return isServerMetadata(name) })
	for _, name := range []string{"labels", "annotations"} {
		entries, ok := metadata[name].(map[string]any)
		if !ok {
			continue
		}
		entries = maps.Clone(entries)
		maps.DeleteFunc(entries, func(key string, _ any) bool { return isServerEntry(key) })
		metadata[name] = entries
		if len(entries) == 0 {
			delete(metadata, name)
		}
	}
	return object
}

func isServerMetadata(name string) bool {
	switch name {
	case "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "selfLink", "managedFields":
		return true
	}
	return false
}

// isServerEntry reports whether servers set a label or an annotation.
func isServerEntry(key string) bool {
	return strings.HasPrefix(key, "penstock.dev/") || key == "deployment.kubernetes.io/revision"
}
