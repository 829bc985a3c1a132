package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/diff/schema"
)

func TestOpenAPI(t *testing.T) {
	const document = `{"components":{"schemas":{
		"com.example.X":{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"X"}],
			"properties":{"spec":{"allOf":[{"$ref":"#/components/schemas/com.example.Spec"}],"default":{}}}},
		"com.example.Spec":{"properties":{
			"self":{"$ref":"#/components/schemas/com.example.Spec"},
			"loop":{"$ref":"#/components/schemas/Loop"},
			"gone":{"$ref":"#/components/schemas/Gone"},
			"memory":{"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"}]},
			"items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object"}}}},
		"Loop":{"$ref":"#/components/schemas/Loop"},
		"io.k8s.apimachinery.pkg.api.resource.Quantity":{"type":"string"}}}}`
	types, err := schema.NewOpenAPI([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	if got := types.TypeOf(runtimeschema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "X"}); got != nil {
		t.Errorf("got a type of a version that is not there: %v", got)
	}
	spec := types.TypeOf(runtimeschema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "X"}).Field("spec")
	shapes := map[string]schema.Shape{
		"memory": spec.Field("self").Field("memory").Shape(),
		"items":  spec.Field("items").Shape(),
	}
	if diff := cmp.Diff(map[string]schema.Shape{"memory": {Quantity: true}, "items": {List: schema.ListMap, Keys: []string{"k"}}}, shapes); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	for _, name := range []string{"loop", "gone", "none"} {
		if got := spec.Field(name); got != nil {
			t.Errorf("%s: got %v, want no type", name, got)
		}
	}
	if _, err := schema.NewOpenAPI([]byte("{")); err == nil {
		t.Error("read a document that is none")
	}
}

func TestBuiltinKnowsItsGroups(t *testing.T) {
	types := difftest.Builtin(t)
	for _, known := range []runtimeschema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "FlowSchema"},
		{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
	} {
		if types.TypeOf(known) == nil {
			t.Errorf("does not know %s", known)
		}
	}
	for _, foreign := range []runtimeschema.GroupVersionKind{
		{Group: "core", Version: "v1", Kind: "Pod"}, {Group: "apps.example.com", Version: "v1", Kind: "Deployment"},
		{Group: "storage.x-k8s.io", Version: "v1", Kind: "StorageClass"}, {Group: "policy.networking.k8s.io", Version: "v1", Kind: "Eviction"},
		{Group: "apps", Version: "v9", Kind: "Deployment"},
	} {
		if types.TypeOf(foreign) != nil {
			t.Errorf("takes %s for one of Kubernetes", foreign)
		}
	}
}
