package extensionset

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/extension"
)

// ChildName is the name of the ClusterExtension of a cluster. The name of a set has no dot, so that
// no two children have one name.
func ChildName(set, cluster string) string { return set + "." + cluster }

// Child returns the ClusterExtension of a cluster, of the template.
func (s *Set) Child(cluster string) *unstructured.Unstructured {
	child := &unstructured.Unstructured{Object: map[string]any{"spec": (&unstructured.Unstructured{Object: s.Spec.Template.Spec}).DeepCopy().Object}}
	child.SetGroupVersionKind(extension.Kind)
	child.SetName(ChildName(s.Name, cluster))
	child.SetLabels(maps.Clone(s.Spec.Template.Metadata.Labels))
	annotations := maps.Clone(s.Spec.Template.Metadata.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[extension.TargetAnnotation], annotations[extension.SetAnnotation] = cluster, s.Name
	child.SetAnnotations(annotations)
	return child
}
