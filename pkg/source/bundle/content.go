package bundle

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// The functions in this file walk through decoded JSON. They do not change a value of an unexpected
// type. A later check decides whether server-side apply accepts it, and reports its line.

// child returns the object under a key, and creates it if it is absent.
func child(of map[string]any, key string) map[string]any {
	value, present := of[key]
	if object, ok := value.(map[string]any); ok {
		return object
	}
	object := map[string]any{}
	if !present || value == nil {
		of[key] = object
	}
	return object
}

// list returns a value as a list; nil if it is not a list.
func list(value any) []any {
	items, _ := value.([]any)
	return items
}

func objectsOf(value any) []map[string]any {
	var out []map[string]any
	for _, item := range list(value) {
		if object, ok := item.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}

func pods(spec map[string]any) map[string]any { return child(child(spec, "template"), "spec") }

// containers returns the containers of a pod, without init containers.
func containers(pod map[string]any) []map[string]any { return objectsOf(pod["containers"]) }

func stringMap(of map[string]string) map[string]any {
	out := make(map[string]any, len(of)+2)
	for key, value := range of {
		out[key] = value
	}
	return out
}

func deepCopy(of map[string]any) map[string]any { return runtime.DeepCopyJSON(of) }
