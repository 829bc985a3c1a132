package bundle

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// The functions here walk through decoded JSON. A value of another type than expected is
// left as it is: whether server-side apply can take it is judged later, with its line.

// child returns the object under a key, and makes it when there is none.
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

// list returns a list, or nil.
func list(value any) []any {
	items, _ := value.([]any)
	return items
}

// objectsOf returns the objects of a list.
func objectsOf(value any) []map[string]any {
	var out []map[string]any
	for _, item := range list(value) {
		if object, ok := item.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}

// pods returns the spec of a Deployment's pods.
func pods(spec map[string]any) map[string]any { return child(child(spec, "template"), "spec") }

// containers returns those of a pod, without init containers.
func containers(pod map[string]any) []map[string]any { return objectsOf(pod["containers"]) }

func stringMap(of map[string]string) map[string]any {
	out := make(map[string]any, len(of)+2)
	for key, value := range of {
		out[key] = value
	}
	return out
}

func deepCopy(of map[string]any) map[string]any { return runtime.DeepCopyJSON(of) }
