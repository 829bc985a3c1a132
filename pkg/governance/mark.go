package governance

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Marked is the manifest of an item, which says which plan governs it.
func Marked(item profile.Item, plan string) (manifest.Object, error) {
	object := maps.Clone(item.Object)
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	annotations, _ := metadata["annotations"].(map[string]any)
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = map[string]any{}
	}
	annotations[v1alpha1.GovernedByAnnotation] = plan
	metadata["annotations"], object["metadata"] = annotations, metadata
	made, err := manifest.Digester{}.New(object)
	if err != nil {
		return manifest.Object{}, fmt.Errorf("item %s: %w", item.Name, err)
	}
	return made, nil
}

// Unmarked is an object without what says that it is governed: a reviewer looks
// for what changes.
func Unmarked(object *manifest.Object) *manifest.Object {
	if object == nil {
		return nil
	}
	content := &unstructured.Unstructured{}
	if err := content.UnmarshalJSON(object.JSON); err != nil {
		return object
	}
	annotations := content.GetAnnotations()
	delete(annotations, v1alpha1.GovernedByAnnotation)
	delete(annotations, v1alpha1.AppliedHashAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	content.SetAnnotations(annotations)
	plain, err := manifest.Digester{}.New(content.Object)
	if err != nil {
		return object
	}
	return &plain
}
