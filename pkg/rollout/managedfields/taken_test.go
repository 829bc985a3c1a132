package managedfields

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTaken(t *testing.T) {
	entry := func(manager, operation, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), Subresource: subresource,
			APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	const image = `{"f:spec":{"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"a<b\"}":{".":{},"f:image":{},"f:name":{}}}}}}}`
	before := []metav1.ManagedFieldsEntry{
		entry("penstock/x", "Apply", "", `{"f:spec":{"f:paused":{}}}`),
		entry("kubectl", "Update", "", `{"f:spec":{"f:replicas":{}},"f:metadata":{"f:labels":{"f:a.b/c":{}},"f:finalizers":{"v:\"x/y\"":{}}}}`),
		entry("kubectl", "Update", "scale", `{"f:spec":{"f:replicas":{}}}`),
		entry("other", "Apply", "", image),
		entry("keeps", "Update", "", `{"f:data":{"f:k":{}}}`),
		entry("broken", "Update", "", `[`),
	}
	after := []metav1.ManagedFieldsEntry{
		entry("penstock/x", "Apply", "", `{"f:spec":{"f:paused":{},"f:replicas":{}}}`),
		entry("kubectl", "Update", "", `{"f:spec":{"f:replicas":{}}}`),
		entry("keeps", "Update", "", `{"f:data":{"f:k":{}}}`),
	}
	want := []Taken{
		{Manager: "kubectl", Paths: []string{`.metadata.finalizers[="x/y"]`, `.metadata.labels["a.b/c"]`}},
		{Manager: "kubectl", Subresource: "scale", Paths: []string{".spec.replicas"}},
		{Manager: "other", Paths: []string{
			`.spec.template.spec.containers[name="a<b"].image`, `.spec.template.spec.containers[name="a<b"].name`}},
	}
	if diff := cmp.Diff(want, TakenBetween(before, after, "penstock/x")); diff != "" {
		t.Errorf("fields taken (-want +got):\n%s", diff)
	}
}

// TestOverwritten: paths have the same spelling as taken fields.
func TestOverwritten(t *testing.T) {
	before := object(t, `{"data":{"a.b/c":"1","plain":"1","gone":"1","same":"1"},"list":[1],"deep":{"map":{"x":1}},"scalar":1}`)
	after := object(t, `{"data":{"a.b/c":"2","plain":"2","new":"2","same":"1"},"list":[1,2],"deep":{"map":{"x":2}},"scalar":{"now":"a map"}}`)
	want := []string{`.data["a.b/c"]`, ".data.plain", ".deep.map.x", ".list", ".scalar"}
	if diff := cmp.Diff(want, Overwritten(before, after)); diff != "" {
		t.Errorf("fields overwritten (-want +got):\n%s", diff)
	}
}

func TestSets(t *testing.T) {
	wanted := object(t, `{"data":{"a.b/c":"1","plain":null},"spec":{"ports":[{"port":80,"name":"a<b","nodePort":1}],"args":["x"]}}`)
	cases := map[string]struct {
		reason string
		want   bool
	}{
		".data.plain":                   {"whatever its value", true},
		`.data["a.b/c"]`:                {"a name that has to be quoted", true},
		".data":                         {"a map", true},
		".data.other":                   {"it is not there", false},
		".data.plain.deeper":            {"there is nothing below it", false},
		".spec.ports[port=80].nodePort": {"an item by a number", true},
		`.spec.ports[name="a<b"].port`:  {"an item by a text", true},
		".spec.ports[port=81].port":     {"no such item", false},
		`.spec.args[="x"]`:              {"elements of sets are not looked for", false},
		".spec.args[0]":                 {"nor indexes", false},
		"":                              {"no path", false},
	}
	for path, tc := range cases {
		t.Run(path, func(t *testing.T) {
			if got := Sets(wanted, path); got != tc.want {
				t.Errorf("%s: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
