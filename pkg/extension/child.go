package extension

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Pin replaces the version range of a child by the resolved image. A chart source stays a chart
// source.
func Pin(child *unstructured.Unstructured, reference string) error {
	kind, _, _ := unstructured.NestedString(child.Object, "spec", "source", "sourceType")
	source := map[string]any{"sourceType": SourceImage, "image": map[string]any{"ref": reference}}
	if kind == SourceChart {
		source = map[string]any{"sourceType": SourceChart, "chart": map[string]any{"ref": reference}}
	}
	return unstructured.SetNestedField(child.Object, source, "spec", "source")
}

// SetAnnotations returns the annotations that make an extension the child of a set. Only Penstock
// writes them.
func SetAnnotations() []string {
	return []string{SetAnnotation, ContentAnnotation, RolloutAnnotation, CatalogAnnotation}
}

// ChildAnnotations returns the annotations of a child that its set decides for each cluster.
func ChildAnnotations() []string {
	return []string{TargetAnnotation, SetAnnotation, ContentAnnotation, RolloutAnnotation, AuthorAnnotation}
}

// ChildWithoutCluster returns the inputs of a child's content as JSON: the spec and Penstock's
// annotations, without the parts that differ between clusters of one change.
func ChildWithoutCluster(child *unstructured.Unstructured) ([]byte, error) {
	annotations := map[string]string{}
	for name, value := range child.GetAnnotations() {
		if strings.HasPrefix(name, AnnotationPrefix) && !slices.Contains(ChildAnnotations(), name) {
			annotations[name] = value
		}
	}
	return json.Marshal(map[string]any{"spec": child.Object["spec"], "annotations": annotations})
}

// ContentDigest returns the digest of a cluster's content: the ClusterExtension and its objects.
func ContentDigest(common []byte, content string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "penstock/fleet-content/1\n%s\n%s", content, common))
	return "sha256:" + hex.EncodeToString(sum[:])
}
