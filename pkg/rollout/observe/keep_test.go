package observe

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// live is an object as a server returns it. The keys in fieldsV1 have the order of a built-in kind,
// which is not alphabetical.
const live = `{
  "apiVersion": "apps/v1", "kind": "Deployment",
  "metadata": {
    "name": "server", "namespace": "argocd", "uid": "u-1", "resourceVersion": "42", "generation": 3,
    "deletionTimestamp": "2026-02-03T04:05:06Z",
    "labels": {"chain": "argocd", "app": "x"},
    "annotations": {"applied": "sha256:abc", "kubectl.kubernetes.io/last-applied-configuration": "SECRET"},
    "ownerReferences": [
      {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-2"},
      {"apiVersion": "v1", "kind": "Namespace", "name": "c", "uid": "u-3", "controller": true}],
    "managedFields": [
      {"manager": "penstock/argocd", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-01-02T03:04:05Z",
       "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}, "f:paused": {}}, "f:metadata": {"f:labels": {"f:a<b": {}}}}},
      {"manager": "penstock/other", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": {}},
      {"manager": "penstock/argocd", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {}},
      {"manager": "penstock/argocd", "operation": "Apply", "subresource": "scale", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {}},
      {"manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]
  },
  "spec": {"replicas": 2, "paused": false},
  "status": {"replicas": 1}
}`

func partialOf(t *testing.T, raw string) *metav1.PartialObjectMetadata {
	t.Helper()
	out := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal([]byte(raw), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func unstructuredOf(t *testing.T, raw string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestObserve(t *testing.T) {
	want := Observation{
		ID:              manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "argocd", Name: "server"},
		UID:             "u-1",
		ResourceVersion: "42",
		Generation:      3,
		Deleting:        true,
		Chain:           "argocd",
		Applied:         "sha256:abc",
		Installed:       true,
		Controller:      &metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: "c", UID: types.UID("u-3"), Controller: new(true)},
		Entries:         []Entry{{Manager: "penstock/argocd"}, {Manager: "penstock/other"}},
	}
	partial, whole := names().Observe(partialOf(t, live)), names().Observe(unstructuredOf(t, live))
	if diff := cmp.Diff(partial, whole); diff != "" {
		t.Errorf("metadata and whole object must look the same, digests included (-metadata +whole):\n%s", diff)
	}
	for i := range partial.Entries {
		if partial.Entries[i].Digest == "" {
			t.Errorf("entry %d has no digest", i)
		}
		partial.Entries[i].Digest = ""
	}
	if diff := cmp.Diff(want, partial); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEntryDigest: entries with equal and with different digests.
func TestEntryDigest(t *testing.T) {
	cases := map[string]struct {
		reason, old, new string
		same             bool
	}{
		"Order":      {"the order of keys has no meaning", `"f:replicas": {}, "f:paused": {}`, `"f:paused": {}, "f:replicas": {}`, true},
		"Escape":     {"nor has how a character is spelled", `f:a<b`, `f:a\u003cb`, true},
		"FieldLost":  {"someone took a field", `"f:replicas": {}, `, ``, false},
		"Time":       {"our entry was written again", `"time": "2026-01-02T03:04:05Z",` + "\n       \"fieldsType\"", `"time": "2026-01-02T03:04:06Z",` + "\n       \"fieldsType\"", false},
		"APIVersion": {"our entry speaks of another version", `"operation": "Apply", "apiVersion": "apps/v1", "time": "2026-01-02T03:04:05Z",` + "\n", `"operation": "Apply", "apiVersion": "apps/v1beta2", "time": "2026-01-02T03:04:05Z",` + "\n", false},
		"Others":     {"entries of others do not matter", `"manager": "kubectl"`, `"manager": "helm"`, true},
		"Status":     {"nor do values", `"status": {"replicas": 1}`, `"status": {"replicas": 2}`, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(live, tc.old) {
				t.Fatalf("the fixture has no %q", tc.old)
			}
			before := names().Observe(partialOf(t, live))
			after := names().Observe(partialOf(t, strings.Replace(live, tc.old, tc.new, 1)))
			a, _ := before.Entry("penstock/argocd")
			b, _ := after.Entry("penstock/argocd")
			if (a == b) != tc.same {
				t.Errorf("%s: want same %t, got %v and %v", tc.reason, tc.same, a, b)
			}
		})
	}
}

func TestTrim(t *testing.T) {
	secret := schema.GroupKind{Kind: "Secret"}
	other := schema.GroupKind{Group: "example.com", Kind: "Secret"}
	raw := `{"apiVersion":"v1","kind":"Secret","type":"Opaque","data":{"p":"SECRET"},"stringData":{"p":"SECRET"},"status":{"s":1},"spec":{"a":1,"b":2},
	  "metadata":{"name":"x","managedFields":[{"manager":"m"}],"annotations":{"a":"b","kubectl.kubernetes.io/last-applied-configuration":"SECRET"}}}`
	meta := `"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","annotations":{"a":"b"}}`
	cases := map[string]struct {
		reason string
		kind   schema.GroupKind
		reads  probe.Reads
		want   string
	}{
		"Nothing":    {"metadata is always kept", secret, probe.Reads{}, `{` + meta + `}`},
		"Status":     {"what is read", secret, probe.Reads{Status: true}, `{` + meta + `,"status":{"s":1}}`},
		"Field":      {"and no more", secret, probe.Reads{Fields: [][]string{{"spec", "b"}}}, `{` + meta + `,"spec":{"b":2}}`},
		"Whole":      {"all of a Secret but its content", secret, probe.Reads{Whole: true}, `{` + meta + `,"type":"Opaque","status":{"s":1},"spec":{"a":1,"b":2}}`},
		"SecretPath": {"content asked for by name", secret, probe.Reads{Fields: [][]string{{"data", "p"}, {"stringData"}, {"type"}}}, `{` + meta + `,"type":"Opaque"}`},
		"OtherKind":  {"data of another kind is no secret", other, probe.Reads{Fields: [][]string{{"data"}}}, `{` + meta + `,"data":{"p":"SECRET"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			delivered := unstructuredOf(t, raw)
			before := delivered.DeepCopy()
			got := trim(tc.kind, tc.reads, delivered)
			if diff := cmp.Diff(unstructuredOf(t, tc.want).Object, got.Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before.Object, delivered.Object); diff != "" {
				t.Errorf("what was delivered must not change (-before +after):\n%s", diff)
			}
		})
	}
}

func TestMetadataOnly(t *testing.T) {
	secret, configMap := schema.GroupKind{Kind: "Secret"}, schema.GroupKind{Kind: "ConfigMap"}
	cases := map[string]struct {
		kind  schema.GroupKind
		reads probe.Reads
		want  bool
	}{
		"Nothing":       {configMap, probe.Reads{}, true},
		"Whole":         {configMap, probe.Reads{Whole: true}, false},
		"Status":        {configMap, probe.Reads{Status: true}, false},
		"Field":         {configMap, probe.Reads{Fields: [][]string{{"data"}}}, false},
		"SecretContent": {secret, probe.Reads{Fields: [][]string{{"data"}, {"stringData", "x"}}}, true},
		"SecretType":    {secret, probe.Reads{Fields: [][]string{{"data"}, {"type"}}}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := metadataOnly(tc.kind, tc.reads); got != tc.want {
				t.Errorf("want %t: whole objects come over the wire only where something may be kept of them", tc.want)
			}
		})
	}
}

func TestCovers(t *testing.T) {
	path := func(path ...string) probe.Reads { return probe.Reads{Fields: [][]string{path}} }
	cases := map[string]struct {
		a, b probe.Reads
		want bool
	}{
		"Nothing":       {probe.Reads{}, probe.Reads{}, true},
		"NothingMore":   {path("spec"), probe.Reads{}, true},
		"Same":          {path("spec", "a"), path("spec", "a"), true},
		"Inside":        {path("spec"), path("spec", "a"), true},
		"Outside":       {path("spec", "a"), path("spec"), false},
		"Other":         {path("spec", "a"), path("spec", "b"), false},
		"Status":        {probe.Reads{}, probe.Reads{Status: true}, false},
		"InStatus":      {probe.Reads{Status: true}, path("status", "x"), true},
		"WholeOverAll":  {probe.Reads{Whole: true}, probe.Reads{Status: true}, true},
		"AllUnderWhole": {probe.Reads{Status: true}, probe.Reads{Whole: true}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := covers(tc.a, tc.b); got != tc.want {
				t.Errorf("want %t", tc.want)
			}
		})
	}
}
