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

// Exported is the manifest of an approved item for a repository from which another tool
// applies it: no plan governs what that tool writes, and it says which plan it is of.
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

// Live is a target of a plan as a manifest, from JSON; nil from none. It has no status, which
// no plan sets. Of metadata it has
// what a plan may set: a live object has finalizers, owners and marks of chains besides,
// which no manifest may have, and which are no reason not to plan.
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
