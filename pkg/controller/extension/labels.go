package extension

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/applycheck"
	"github.com/penstock-project/penstock/pkg/manifest"
)

func withLabels(object manifest.Object, labels map[string]string) (manifest.Object, error) {
	return changed(object, func(metadata map[string]any) {
		has, _ := metadata["labels"].(map[string]any)
		more := maps.Clone(has)
		if more == nil {
			more = map[string]any{}
		}
		for key, value := range labels {
			more[key] = value
		}
		metadata["labels"] = more
	})
}

func withoutLabels(object manifest.Object, labels ...string) (manifest.Object, error) {
	return changed(object, func(metadata map[string]any) {
		has, _ := metadata["labels"].(map[string]any)
		fewer := maps.Clone(has)
		maps.DeleteFunc(fewer, func(key string, _ any) bool { return slices.Contains(labels, key) })
		if metadata["labels"] = fewer; len(fewer) == 0 {
			delete(metadata, "labels")
		}
	})
}

func changed(object manifest.Object, change func(metadata map[string]any)) (manifest.Object, error) {
	content, err := applycheck.Decode(object.JSON)
	if err != nil {
		return object, err
	}
	content = runtime.DeepCopyJSON(content)
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		return object, fmt.Errorf("%s has no metadata", object.ID)
	}
	change(metadata)
	return manifest.Canonical(content)
}
