package olm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// These are helpers of the tests of this package.

const (
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	jsonPatch      = "application/json-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

type object = map[string]any

func configMap(name, value string) object {
	return object{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": object{"name": name, "namespace": "default"},
		"data":     object{"k": value},
	}
}

func secret(name, value string) object {
	return object{
		"apiVersion": "v1", "kind": "Secret",
		"metadata":   object{"name": name, "namespace": "default"},
		"stringData": object{"password": value},
	}
}

// inline returns entries with manifests.
func inline(objects ...object) []any {
	entries := []any{}
	for _, o := range objects {
		entries = append(entries, object{"object": o})
	}
	return entries
}

// file returns a revision as a user writes it, with entries in its phase "one".
func file(name string, entries []any) object {
	number := 0
	_, _ = fmt.Sscanf(name[strings.LastIndex(name, "-")+1:], "%d", &number)
	return object{
		"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtensionRevision",
		"metadata": object{"name": name},
		"spec": object{
			"revision": number,
			"phases":   []any{object{"name": "one", "objects": entries}},
		},
	}
}

// with returns a copy of a revision with a field set.
func with(revision object, value any, path ...string) object {
	var copied object
	encoded, err := json.Marshal(revision)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(encoded, &copied); err != nil {
		panic(err)
	}
	at := copied
	for _, step := range path[:len(path)-1] {
		if _, ok := at[step].(object); !ok {
			at[step] = object{}
		}
		at = at[step].(object)
	}
	at[path[len(path)-1]] = value
	return copied
}

// applied returns a file as client-side kubectl apply sends it.
func applied(revision object) object {
	encoded, err := json.Marshal(with(revision, object{}, "metadata", "annotations"))
	if err != nil {
		panic(err)
	}
	return with(revision, string(encoded)+"\n", "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
}

func (s *server) create(revision object) response {
	s.t.Helper()
	return s.do(call{method: http.MethodPost, path: revisions, body: revision})
}

func (s *server) get(name string) object {
	s.t.Helper()
	return s.do(call{method: http.MethodGet, path: revisions + "/" + name}).want(s.t, http.StatusOK).body
}

func (s *server) put(name string, revision object) response {
	s.t.Helper()
	return s.do(call{method: http.MethodPut, path: revisions + "/" + name, body: revision})
}

func (s *server) patch(name, contentType string, body any) response {
	s.t.Helper()
	return s.do(call{method: http.MethodPatch, path: revisions + "/" + name, contentType: contentType, body: body})
}

func (s *server) apply(manager string, revision object) response {
	s.t.Helper()
	name := at(revision, "metadata", "name").(string)
	return s.do(call{method: http.MethodPatch, path: revisions + "/" + name + "?fieldManager=" + manager, contentType: applyPatch, body: revision})
}

// at returns the value at a path of fields and indexes, or nil.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := value.(object)
			value = fields[step]
		case int:
			list, _ := value.([]any)
			if step >= len(list) {
				return nil
			}
			value = list[step]
		}
	}
	return value
}

func resourceVersion(revision object) any { return at(revision, "metadata", "resourceVersion") }

func entry(revision object, index int) any {
	return at(revision, "spec", "phases", 0, "objects", index)
}

// causes returns the fields that an error names.
func causes(r response) []string {
	var fields []string
	list, _ := at(r.body, "details", "causes").([]any)
	for _, cause := range list {
		fields = append(fields, fmt.Sprint(at(cause, "field")))
	}
	return fields
}

// unchanged fails the test if f writes anything to etcd.
func (s *server) unchanged(f func()) {
	s.t.Helper()
	before := storetest.Revision(s.t, s.etcd)
	f()
	if after := storetest.Revision(s.t, s.etcd); after != before {
		s.t.Errorf("etcd was written %d times, want none", after-before)
	}
}

// subtest returns a server whose helpers report failures to a subtest.
func (s *server) subtest(t *testing.T) *server {
	copied := *s
	copied.t = t
	return &copied
}

func toText(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}
