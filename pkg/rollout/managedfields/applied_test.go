package managedfields

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// TestApplied compares Applied with the field manager of the API server.
func TestApplied(t *testing.T) {
	const head = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: b"
	deployment := func(metadata, spec string) string { return head + metadata + "}\nspec: " + spec }
	pod := func(spec string) string { return deployment("", "{template: {spec: "+spec+"}}") }
	containers := func(spec string) string { return pod("{containers: [" + spec + "]}") }
	cases := map[string]struct {
		reason, ours, theirs, wanted string
	}{
		"same":           {"nothing changes", containers("{name: c, image: x}"), "", containers("{name: c, image: x}")},
		"removed field":  {"ours alone, and not wanted", containers("{name: c, image: x, tty: true}"), "", containers("{name: c, image: x}")},
		"shared field":   {"another manager has it too", deployment(", labels: {a: x, b: x}", "{replicas: 1}"), deployment(", labels: {a: x}", "{}"), deployment("", "{replicas: 2}")},
		"removed map":    {"with all that is in it", deployment(", annotations: {a: x}", "{}"), "", deployment("", "{}")},
		"removed struct": {"a field that is a struct", deployment("", "{strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}"), "", deployment("", "{strategy: {type: Recreate}}")},
		"union":          {"value becomes valueFrom", containers("{name: c, env: [{name: A, value: x}]}"), "", containers("{name: c, env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}")},
		"renumbered":     {"a key of the item changes", containers("{name: c, ports: [{name: http, containerPort: 80, protocol: TCP}]}"), "", containers("{name: c, ports: [{name: http, containerPort: 81, protocol: TCP}]}")},
		"sidecar":        {"an item of ours that is not wanted", containers("{name: c, image: x}, {name: s, image: w}"), "", containers("{name: c, image: x}")},
		"injected":       {"an item of others stays", containers("{name: c, image: x}"), containers("{name: s, image: w}"), containers("{name: c, image: z}, {name: d, image: d}")},
		"half of it":     {"others have a field of the item", containers("{name: c, image: x}, {name: s, image: w}"), containers("{name: s, tty: true}"), containers("{name: c, image: x}")},
		"reordered":      {"the order of the manifest counts", containers("{name: a}, {name: b}, {name: c}"), containers("{name: x}"), containers("{name: c}, {name: new}, {name: a}")},
		"atomic list":    {"is replaced", containers("{name: c, args: [a, b]}"), "", containers("{name: c, args: [b, c]}")},
		"atomic map":     {"is replaced", pod("{nodeSelector: {a: x, b: x}}"), "", pod("{nodeSelector: {b: x, c: x}}")},
		"theirs, atomic": {"is replaced too", deployment("", "{replicas: 1}"), pod("{nodeSelector: {a: x}}"), pod("{nodeSelector: {c: x}}")},
		"set":            {"items come and go", deployment(", finalizers: [a.b/c, a.b/d]", "{}"), deployment(", finalizers: [x.y/z]", "{}"), deployment(", finalizers: [a.b/d, a.b/e]", "{}")},
		"emptied":        {"nothing is left of a list", containers("{name: c, env: [{name: A, value: x}]}"), "", containers("{name: c}")},
		"new list":       {"that nobody has had", containers("{name: c}"), "", containers("{name: c, env: [{name: A, value: x}]}")},
		"two keys":       {"one number, two protocols", containers("{name: c, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]}"), "", containers("{name: c, ports: [{containerPort: 53, protocol: UDP}]}")},
	}
	converter := applyconfigurations.NewTypeConverter(scheme.Scheme)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			manager := managedfieldstest.NewTestFieldManager(converter, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
			apply := func(text, by string) {
				t.Helper()
				if text == "" {
					return
				}
				if err := manager.Apply(&unstructured.Unstructured{Object: parsed(t, text)}, by, true); err != nil {
					t.Fatal(err)
				}
			}
			state := func() *unstructured.Unstructured {
				raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(manager.Live())
				if err != nil {
					t.Fatal(err)
				}
				return &unstructured.Unstructured{Object: raw}
			}
			apply(tc.ours, "us")
			apply(tc.theirs, "them")
			before := state()
			kept := before.DeepCopy()
			got, err := Applied(parsed(t, tc.wanted), before, "us")
			if err != nil {
				t.Fatal(err)
			}
			apply(tc.wanted, "us")
			if diff := cmp.Diff(plain(state().Object), plain(got)); diff != "" {
				t.Errorf("%s (-server +Applied):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(kept, before); diff != "" {
				t.Errorf("the live object was changed:\n%s", diff)
			}
		})
	}
}

// TestAppliedDefaultKey: a manifest omits a key of a list item that the API server fills in.
func TestAppliedDefaultKey(t *testing.T) {
	live := &unstructured.Unstructured{Object: parsed(t, `{spec: {ports: [{port: 53, protocol: UDP, name: u}, {port: 80, protocol: TCP, nodePort: 30000}]}}`)}
	live.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "us", Operation: "Apply", FieldsV1: metav1.NewFieldsV1(
		`{"f:spec":{"f:ports":{"k:{\"port\":53,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:name":{}},"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`)}})
	got, err := Applied(parsed(t, `{spec: {ports: [{port: 80, name: web}, {port: 54}]}}`), live, "us")
	if err != nil {
		t.Fatal(err)
	}
	want := parsed(t, `{spec: {ports: [{port: 80, protocol: TCP, nodePort: 30000, name: web}, {port: 54}]}}`)
	if diff := cmp.Diff(want, plain(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return runtime.DeepCopyJSON(integers(object).(map[string]any))
}

// integers converts integers as a Kubernetes decoder does.
func integers(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = integers(value[key])
		}
	case []any:
		for i := range value {
			value[i] = integers(value[i])
		}
	case float64:
		return int64(value)
	}
	return value
}

// plain returns an object without managedFields and empty values.
func plain(object map[string]any) map[string]any {
	out := map[string]any{}
	for name, field := range object {
		if fields, isMap := field.(map[string]any); isMap {
			field = plain(fields)
		}
		if name != "managedFields" && !empty(field) && name != "creationTimestamp" {
			out[name] = field
		}
	}
	return out
}
