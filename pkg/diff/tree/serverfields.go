package tree

import (
	"maps"
	"strings"
)

// withoutServerFields drops what is not the author's: status of Kubernetes' own kinds, what the
// API server writes into metadata, and what Penstock and the deployment controller write into
// labels and annotations. Status of another kind may be content: manifests have it only then.
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

// isServerEntry reports whether a label or an annotation is not the author's.
func isServerEntry(key string) bool {
	return strings.HasPrefix(key, "penstock.dev/") || key == "deployment.kubernetes.io/revision"
}
