package annotated

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/extension"
)

func source(spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(CatalogSources().GroupVersionKind)
	object.SetNamespace("olm")
	object.SetName("catalog")
	object.SetUID("u1")
	object.SetResourceVersion("7")
	return object
}

// TestImage: the field of the image, and objects without an image.
func TestImage(t *testing.T) {
	for name, tc := range map[string]struct {
		kind        Kind
		spec        map[string]any
		image, none string
	}{
		"Source":        {CatalogSources(), map[string]any{"sourceType": "grpc", "image": "a:b"}, "a:b", ""},
		"SourceWithout": {CatalogSources(), map[string]any{"sourceType": "grpc"}, "", ""},
		"NilPoll":       {CatalogSources(), map[string]any{"sourceType": "grpc", "image": "a:b", "updateStrategy": map[string]any{"registryPoll": nil}}, "a:b", ""},
		"ConfigMap":     {CatalogSources(), map[string]any{"sourceType": "configmap", "configMap": "x"}, "", `spec.sourceType is "configmap", and only grpc has an image`},
		"NoType":        {CatalogSources(), map[string]any{}, "", `spec.sourceType is "", and only grpc has an image`},
		"OddTypes":      {CatalogSources(), map[string]any{"sourceType": int64(7), "image": []any{"a"}}, "", `spec.sourceType is "", and only grpc has an image`},
		"Catalog":       {ClusterCatalogs(), map[string]any{"source": map[string]any{"type": "Image", "image": map[string]any{"ref": "a:b"}}}, "a:b", ""},
		"CatalogOdd":    {ClusterCatalogs(), map[string]any{"source": "x"}, "", `spec.source.type is "", and only Image has an image`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.kind.Image(source(tc.spec)); got != tc.image {
				t.Errorf("the image is %q, want %q", got, tc.image)
			}
			if got := tc.kind.Without(source(tc.spec)); got != tc.none {
				t.Errorf("it has none since %q, want %q", got, tc.none)
			}
		})
	}
}

// TestWithImage: the applied object has the image. The apply is refused for another object, or if
// the object has changed.
func TestWithImage(t *testing.T) {
	metadata := map[string]any{"name": "catalog", "namespace": "olm", "uid": "u1", "resourceVersion": "7"}
	for _, tc := range []struct {
		kind Kind
		spec map[string]any
	}{
		{CatalogSources(), map[string]any{"image": "a:b"}},
		{ClusterCatalogs(), map[string]any{"source": map[string]any{"image": map[string]any{"ref": "a:b"}}}},
	} {
		object := source(map[string]any{"sourceType": "grpc", "displayName": "x"})
		got := tc.kind.WithImage(object, "a:b").Object
		want := map[string]any{"apiVersion": tc.kind.GroupVersion().String(), "kind": tc.kind.Kind, "metadata": metadata, "spec": tc.spec}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if tc.kind.Image(object) != "" {
			t.Error("the object itself was changed")
		}
	}
}

// TestSubject: an author signs both annotations, and nothing else.
func TestSubject(t *testing.T) {
	all := map[string]string{OLMAnnotation: "a", OwnAnnotation: "b", extension.AuthorAnnotation: "c", extension.ApprovalAnnotation: "d", "e": "f"}
	for _, kind := range Kinds() {
		subject := kind.Subject()
		if diff := cmp.Diff(map[string]string{OLMAnnotation: "a", OwnAnnotation: "b"}, subject.Annotations(all)); diff != "" || subject.Spec {
			t.Errorf("%s: %s", kind.Kind, diff)
		}
	}
	if CatalogSources().Subject().Mark() == ClusterCatalogs().Subject().Mark() {
		t.Error("the stamp of one kind counts for the other")
	}
}

// TestLeftToOLM: the fields that OLM's controller has written identify it.
func TestLeftToOLM(t *testing.T) {
	for name, tc := range map[string]struct {
		manager, fields string
		want            bool
	}{
		"Image":          {"catalog", `{"f:spec":{"f:image":{}}}`, true},
		"Resolved":       {"catalog", `{"f:status":{"f:conditions":{"k:{\"type\":\"TemplatesHaveResolved\"}":{".":{}}}}}`, true},
		"ImageCondition": {"catalog", `{"f:status":{"f:conditions":{"k:{\"type\":\"ResolvedImage\"}":{".":{}}}}}`, true},
		// OLM writes these fields of every CatalogSource, also without a template.
		"State":      {"catalog", `{"f:status":{"f:connectionState":{},"f:registryService":{}}}`, false},
		"Condition":  {"catalog", `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{}}}}}`, false},
		"OtherField": {"catalog", `{"f:spec":{"f:displayName":{}}}`, false},
		"Other":      {"kubectl", `{"f:spec":{"f:image":{}}}`, false},
		"Ours":       {"penstock-image-templates", `{"f:spec":{"f:image":{}}}`, false},
		"NoJSON":     {"catalog", `{`, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := source(nil)
			object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kubelet"}, {Manager: tc.manager, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(tc.fields)}})
			if got := CatalogSources().LeftToOLM(object); got != tc.want {
				t.Errorf("it is %t, want %t", got, tc.want)
			}
		})
	}
}

// TestConditions: invalid lists of conditions cause no error.
func TestConditions(t *testing.T) {
	types := Annotations()[OLMAnnotation]
	for name, tc := range map[string]struct {
		status any
		want   bool
	}{
		"None": {nil, false}, "Text": {"x", false}, "NoList": {map[string]any{"conditions": "x"}, false},
		"Odd":  {map[string]any{"conditions": []any{"x", nil, map[string]any{"type": int64(1)}}}, false},
		"Ours": {map[string]any{"conditions": []any{"x", map[string]any{"type": "ResolvedImage"}}}, true},
		"Own":  {map[string]any{"conditions": []any{map[string]any{"type": "penstock.dev/ResolvedImage"}}}, false},
	} {
		object := source(nil)
		object.Object["status"] = tc.status
		if got := HasAny(object, types); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
}
