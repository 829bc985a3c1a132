package review

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// TestImmutableFieldsOfHost: testdata/immutable.yaml changes each field in the table, and no other
// field. A test of test/engine/client sends these changes to a host, which refuses them.
func TestImmutableFieldsOfHost(t *testing.T) {
	content, err := os.ReadFile("testdata/immutable.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Object  unstructured.Unstructured
		Changes map[string]json.RawMessage
	}
	if err := yaml.Unmarshal(content, &all); err != nil {
		t.Fatal(err)
	}
	changed := map[string][]string{}
	for _, one := range all {
		for field := range one.Changes {
			kind := one.Object.GroupVersionKind().GroupKind().String()
			changed[kind] = append(changed[kind], field)
		}
	}

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for kind := range scheme.AllKnownTypes() {
		name := kind.GroupKind().String()
		fields := immutablesOf(name)
		known := slices.Concat(fields.always, fields.setOnce)
		for _, field := range changed[name] {
			if !slices.Contains(known, field) {
				t.Errorf("testdata changes %s of %s, of which the table says nothing", field, name)
			}
		}
		for _, field := range known {
			// An API server compares all sources of a volume as one value.
			one := name == "PersistentVolume" && slices.Contains(volumeSources(), field)
			if !one && !slices.Contains(changed[name], field) {
				t.Errorf("testdata does not change %s of %s", field, name)
			}
		}
	}
}
