package chartkind

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestApplied: the API server reads the same status message that was sent.
func TestApplied(t *testing.T) {
	object := &unstructured.Unstructured{}
	object.SetName("a")
	body, err := applied(object, nil, map[string]any{"message": "rendering: \x7f\u0085é"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `"message":"rendering: \u007f\u0085é"`; !strings.Contains(string(body), want) {
		t.Errorf("%s has no %s", body, want)
	}
}
