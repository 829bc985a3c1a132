package rollout

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDetained: the message names the instances, or contents, that finalizers hold.
func TestDetained(t *testing.T) {
	deleted := func(finalizers ...string) func(*metav1.PartialObjectMetadata) {
		return func(o *metav1.PartialObjectMetadata) {
			o.DeletionTimestamp, o.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, finalizers
		}
	}
	alive := func(o *metav1.PartialObjectMetadata) { o.Finalizers = []string{"a/b"} }
	for name, tc := range map[string]struct {
		objects []metav1.PartialObjectMetadata
		want    string
	}{
		"None":  {[]metav1.PartialObjectMetadata{lodger("Widget.example n/alive", alive), lodger("Widget.example n/going", deleted())}, ""},
		"One":   {[]metav1.PartialObjectMetadata{lodger("Widget.example n/alive", alive), lodger("Widget.example n/held", deleted("a/b"))}, "Widget.example n/held waits for its finalizer a/b"},
		"Two":   {[]metav1.PartialObjectMetadata{lodger("Widget.example a", deleted("a/b", "c/d"))}, "Widget.example a waits for its finalizers a/b, c/d"},
		"Three": {[]metav1.PartialObjectMetadata{lodger("W.x a", deleted("f")), lodger("W.x b", deleted("f")), lodger("W.x c", deleted("f")), lodger("W.x d", deleted("f"))}, "W.x a waits for its finalizer f, W.x b waits for its finalizer f, W.x c waits for its finalizer f, and more"},
	} {
		if got := detained(tc.objects); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// TestNamespaceSays: only the condition about finalizers is quoted.
func TestNamespaceSays(t *testing.T) {
	said := map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "NamespaceDeletionContentFailure", "status": "False", "message": "no"},
		map[string]any{"type": "NamespaceFinalizersRemaining", "status": "True", "message": "a/b in 1 resource instances"},
	}}}
	if got := namespaceSays(&unstructured.Unstructured{Object: said}); got != "a/b in 1 resource instances" {
		t.Errorf("the cluster says %q", got)
	}
	if got := namespaceSays(&unstructured.Unstructured{Object: map[string]any{}}); got != "" {
		t.Errorf("a namespace without conditions says %q", got)
	}
}
