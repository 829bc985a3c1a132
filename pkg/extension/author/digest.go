package author

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Digest returns the digest of the part that an author signs: Penstock's annotations, except the
// stamp itself, and the spec if the subject includes it. It is "sha256:" and hexadecimal digits.
func (s Subject) Digest(object *unstructured.Unstructured) (string, error) {
	var spec any
	if s.Spec {
		spec = object.Object["spec"]
	}
	// Maps are encoded with sorted keys.
	content, err := json.Marshal(struct {
		Spec        any               `json:"spec"`
		Annotations map[string]string `json:"annotations"`
	}{spec, s.Annotations(object.GetAnnotations())})
	if err != nil {
		return "", fmt.Errorf("encoding what an author of %s %s answers for: %w", s.Kind.Kind, object.GetName(), err)
	}
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
}

// Annotations returns the annotations that an author signs.
func (s Subject) Annotations(all map[string]string) map[string]string {
	ours := map[string]string{}
	for key, value := range all {
		if s.Annotation(key) {
			ours[key] = value
		}
	}
	return ours
}
