//go:build integration

package client_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	yamlutil "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/component-base/version"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the objects with the defaults of the host")

// immutable: the host refuses changes of exactly the fields that a review calls immutable.
func immutable(t *testing.T, w targetCluster) {
	content, err := os.ReadFile("../../../pkg/diff/review/testdata/immutable.yaml")
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
	in := "--namespace=" + w.namespace(t)
	for _, one := range all {
		encoded, err := one.Object.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		w.MustKubectlInput(string(encoded), "create", in, "-f", "-")
		kind := one.Object.GroupVersionKind()
		for field, patch := range one.Changes {
			out := w.Kubectl("patch", kind.Kind+"."+kind.Version+"."+kind.Group, one.Object.GetName(), in, "--type=merge", "--dry-run=server", "--patch", string(patch))
			if out.ExitCode == 0 || !strings.Contains(out.Stderr, "is invalid") {
				t.Errorf("%s of %s: the host accepts the change %s: %s", field, kind.Kind, patch, out)
			}
		}
	}
}

// defaulted compares the host's defaults with the defaults in the tests of pkg/diff/schema. It
// needs a host of the same minor version as the Kubernetes libraries, because older hosts set fewer
// defaults.
func defaulted(t *testing.T, w targetCluster) {
	if host := w.MustKubectl("get", "--raw", "/version"); !strings.Contains(host, `"v`+version.DefaultKubeBinaryVersion+".") {
		t.Skipf("the libraries are of Kubernetes %s, the host is %s", version.DefaultKubeBinaryVersion, host)
	}
	const folder = "../../../pkg/diff/schema/testdata/"
	answers := yamlutil.NewYAMLToJSONDecoder(strings.NewReader(w.MustKubectl("create", "--dry-run=server", "-o", "yaml", "-f", folder+"sent.yaml")))
	var got []any
	for {
		var object unstructured.Unstructured
		if err := answers.Decode(&object.Object); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		object.Object["metadata"] = map[string]any{"name": object.GetName()}
		delete(object.Object, "status")
		// The host allocates these values. They are not defaults.
		for _, field := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} {
			unstructured.RemoveNestedField(object.Object, "spec", field)
		}
		got = append(got, object.Object)
	}
	encoded, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(folder+"stored.yaml", encoded, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(folder + "stored.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(encoded)); diff != "" {
		t.Errorf("the host's defaults have changed: run this test and those of pkg/diff/schema with -update (-known +host):\n%s", diff)
	}
}
