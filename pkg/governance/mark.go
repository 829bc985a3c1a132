package governance

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Marked returns the manifest of an item with the annotation that names its plan.
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

// Unmarked removes the annotations of plans from an object, because a reviewer looks for changes.
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

// Exported returns the manifest of an approved item, for a repository from which another tool
// applies it. An annotation names the plan from which it was exported. The marks of a governing
// plan are removed.
func Exported(object *manifest.Object, plan, hash string) (manifest.Object, error) {
	content := &unstructured.Unstructured{}
	if err := content.UnmarshalJSON(Unmarked(object).JSON); err != nil {
		return manifest.Object{}, fmt.Errorf("reading the manifest of %s: %w", object.ID, err)
	}
	annotations := content.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1alpha1.ExportedFromAnnotation] = plan + "/" + hash
	content.SetAnnotations(annotations)
	return manifest.Digester{}.New(content.Object)
}

// Live returns a target of a plan as a manifest, from JSON; nil for nil. It drops status, which
// plans never set. Of metadata it keeps the fields that a plan can set. Finalizers, owners and
// marks of chains are dropped: a manifest must not have them, and a live object may.
func Live(raw []byte) (*manifest.Object, error) {
	if raw == nil {
		return nil, nil
	}
	live := &unstructured.Unstructured{}
	if err := live.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("reading a target: %w", err)
	}
	metadata := map[string]any{"name": live.GetName()}
	if namespace := live.GetNamespace(); namespace != "" {
		metadata["namespace"] = namespace
	}
	for name, words := range map[string]map[string]string{"labels": live.GetLabels(), "annotations": live.GetAnnotations()} {
		kept := map[string]any{}
		for key, value := range words {
			if !manifest.IsReserved(key) {
				kept[key] = value
			}
		}
		if len(kept) > 0 {
			metadata[name] = kept
		}
	}
	live.Object["metadata"] = metadata
	delete(live.Object, "status")
	object, err := manifest.Digester{}.New(live.Object)
	if err != nil {
		return nil, fmt.Errorf("reading a target: %w", err)
	}
	return &object, nil
}
