package olm_test

import (
	"net/http"
	"testing"
)

func configMap(name, value string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"data":     map[string]any{"k": value},
	}
}

func inline(objects ...map[string]any) []any {
	var entries []any
	for _, object := range objects {
		entries = append(entries, map[string]any{"object": object})
	}
	return entries
}

func revision(name string, number int, objects []any) map[string]any {
	return map[string]any{
		"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtensionRevision",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"revision": number,
			"phases":   []any{map[string]any{"name": "one", "objects": objects}},
		},
	}
}

func TestSmoke(t *testing.T) {
	s := newServer(t, settings{})
	r := s.do(call{method: "POST", path: revisions, body: revision("e-1", 1, inline(configMap("a", "1")))}).want(t, http.StatusCreated)
	t.Log(r.raw)
	r = s.do(call{method: "GET", path: revisions + "/e-1/manifests"}).want(t, 200)
	t.Log(r.raw)
}
