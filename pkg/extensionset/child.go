package extensionset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/penstock-project/penstock/pkg/extension"
)

// ChildName returns the name of the ClusterExtension that a set has for a cluster. Names of sets have
// no dot, so the names of children are unique.
func ChildName(set, cluster string) string { return set + "." + cluster }

// Child returns the ClusterExtension of a cluster: the template with the overrides of the cluster.
// The parameter of has the labels of its Secret.
func (s *Set) Child(cluster string, of map[string]string) (*unstructured.Unstructured, error) {
	child := &unstructured.Unstructured{Object: map[string]any{"spec": (&unstructured.Unstructured{Object: s.Spec.Template.Spec}).DeepCopy().Object}}
	for i := range s.Spec.Overrides {
		override := &s.Spec.Overrides[i]
		applies, err := override.applies(cluster, of)
		if err == nil && applies {
			err = override.apply(child)
		}
		if err != nil {
			return nil, fmt.Errorf("spec.overrides[%d] of ClusterExtensionSet %s: %w", i, s.Name, err)
		}
	}
	child.SetGroupVersionKind(extension.Kind)
	child.SetName(ChildName(s.Name, cluster))
	child.SetLabels(maps.Clone(s.Spec.Template.Metadata.Labels))
	annotations := maps.Clone(s.Spec.Template.Metadata.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[extension.TargetAnnotation], annotations[extension.SetAnnotation] = cluster, s.Name
	child.SetAnnotations(annotations)
	return child, nil
}

// applies reports whether an override matches a cluster by its name or the labels of its Secret.
func (o *Override) applies(cluster string, of map[string]string) (bool, error) {
	if o.ClusterSelector == nil {
		return slices.Contains(o.ClusterNames, cluster), nil
	}
	selector, err := metav1.LabelSelectorAsSelector(o.ClusterSelector)
	return err == nil && selector.Matches(labels.Set(of)), err
}

func (o *Override) apply(child *unstructured.Unstructured) error {
	if o.Version != "" {
		if err := unstructured.SetNestedField(child.Object, o.Version, "spec", "source", "catalog", "version"); err != nil {
			return err
		}
	}
	if len(o.Config) == 0 {
		return nil
	}
	inline, _, err := unstructured.NestedMap(child.Object, "spec", "config", "inline")
	if err != nil {
		return err
	}
	merged, err := merge(inline, o.Config)
	if err != nil {
		return err
	}
	if len(merged) == 0 { // a ClusterExtension has no empty configuration
		unstructured.RemoveNestedField(child.Object, "spec", "config")
		return nil
	}
	return unstructured.SetNestedMap(child.Object, map[string]any{"configType": "Inline", "inline": merged}, "spec", "config")
}

func merge(old, patch map[string]any) (map[string]any, error) {
	if old == nil {
		old = map[string]any{}
	}
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	change, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	content, err := jsonpatch.MergePatch(before, change)
	if err != nil {
		return nil, err
	}
	merged := map[string]any{}
	return merged, json.Unmarshal(content, &merged)
}
