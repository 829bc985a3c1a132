package chartkind

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestFrom: From decodes a ChartKind as it was written, numbers included.
func TestFrom(t *testing.T) {
	object := &unstructured.Unstructured{}
	object.Object = map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{
		"resource": map[string]any{"group": "g.example.com", "version": "v1", "kind": "Lamp"}, "overrides": map[string]any{"n": int64(3)},
	}}
	kind, err := From(object)
	if err != nil || kind.Spec.Overrides["n"] != 3.0 || kind.Spec.Resource.GVR().Resource != "lamps" {
		t.Errorf("%+v %v", kind, err)
	}
}
