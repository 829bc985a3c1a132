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

// Pin gives a child the image that was resolved, in place of a range of versions. A chart stays one.
func Pin(child *unstructured.Unstructured, reference string) error {
	kind, _, _ := unstructured.NestedString(child.Object, "spec", "source", "sourceType")
	source := map[string]any{"sourceType": SourceImage, "image": map[string]any{"ref": reference}}
	if kind == SourceChart {
		source = map[string]any{"sourceType": SourceChart, "chart": map[string]any{"ref": reference}}
	}
	return unstructured.SetNestedField(child.Object, source, "spec", "source")
}

// SetAnnotations make an extension the child of a set. Only Penstock writes them.
func SetAnnotations() []string {
	return []string{SetAnnotation, ContentAnnotation, RolloutAnnotation, CatalogAnnotation}
}

// ChildAnnotations are those of a child that its set decides for each cluster.
func ChildAnnotations() []string {
	return []string{TargetAnnotation, SetAnnotation, ContentAnnotation, RolloutAnnotation, AuthorAnnotation}
}

// ChildWithoutCluster is what the content of a child depends on, without what differs between clusters
// of one change: the spec and annotations of ours, as JSON.
func ChildWithoutCluster(child *unstructured.Unstructured) ([]byte, error) {
	annotations := map[string]string{}
	for name, value := range child.GetAnnotations() {
		if strings.HasPrefix(name, AnnotationPrefix) && !slices.Contains(ChildAnnotations(), name) {
			annotations[name] = value
		}
	}
	return json.Marshal(map[string]any{"spec": child.Object["spec"], "annotations": annotations})
}

// ContentDigest names the content of a cluster: the ClusterExtension, and the objects that it becomes.
func ContentDigest(common []byte, content string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "penstock/fleet-content/1\n%s\n%s", content, common))
	return "sha256:" + hex.EncodeToString(sum[:])
}
