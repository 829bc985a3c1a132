package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// templateCluster serves the objects that templates read, and returns a kubeconfig.
func templateCluster(t *testing.T) string {
	t.Helper()
	answers := map[string]string{
		"/version":                 `{"major": "1", "minor": "36+", "gitVersion": "v1.36.3+k3s1"}`,
		"/apis/foo.example.com/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "foo.example.com/v1", "resources": [{"name": "samples", "kind": "Sample", "namespaced": true, "verbs": ["get", "list", "watch"]}, {"name": "samples/status", "kind": "Sample", "namespaced": true, "verbs": ["get"]}]}`,
		"/apis/foo.example.com/v1/namespaces/ns/samples/MySample": `{"apiVersion": "foo.example.com/v1", "kind": "Sample", "metadata": {"name": "MySample", "namespace": "ns"}, "spec": {"foo": {"bar": "v2", "bad": "a/b"}}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, found := answers[r.URL.Path]
		if !found {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "a", "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}], "users": [{"name": "a"}], "clusters": [{"name": "a", "cluster": {"server": %q}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTemplate(t *testing.T) {
	kubeconfig := templateCluster(t)
	const sample = "{group:foo.example.com,version:v1,kind:Sample,name:%s,namespace:%s,jsonpath:{.spec.foo.%s}}"
	for name, tc := range map[string]struct {
		template string
		out, err []string
	}{
		"Version":     {template: "quay.io/x:v{kube_minor_version}", out: []string{"quay.io/x:v36\n", "  {kube_minor_version}   36\n"}},
		"Object":      {template: "quay.io/sample/catalog:" + fmt.Sprintf(sample, "MySample", "ns", "bar"), out: []string{"quay.io/sample/catalog:v2\n"}},
		"Plain":       {template: "quay.io/x:v1", out: []string{"quay.io/x:v1\n"}},
		"NoObject":    {template: "quay.io/x:" + fmt.Sprintf(sample, "Other", "ns", "bar"), err: []string{"leads to no image", "there is no Sample.foo.example.com/v1 ns/Other"}},
		"NoNamespace": {template: "quay.io/x:" + fmt.Sprintf(sample, "MySample", "", "bar"), err: []string{"kind Sample is namespaced"}},
		"NoPart":      {template: "quay.io/x:" + fmt.Sprintf(sample, "MySample", "ns", "bad"), err: []string{"cannot be part of a reference"}},
		"NoKind":      {template: "quay.io/x:{group:b.io,version:v1,kind:B,name:n,namespace:,jsonpath:{.a}}", err: []string{"the cluster does not serve b.io/v1"}},
		"Secret":      {template: "quay.io/x:{group:,version:v1,kind:Secret,name:n,namespace:a,jsonpath:{.data.x}}", err: []string{"templates never read Secrets"}},
		"Syntax":      {template: "quay.io/x:{foo}", err: []string{"at byte 10: {kube_major_version}"}},
		"NoReference": {template: "quay.io/X:{kube_minor_version}", err: []string{"not an image reference"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			command := newCommand()
			command.SetArgs([]string{"template", tc.template, "--kubeconfig=" + kubeconfig})
			command.SetOut(&out)
			command.SetErr(&out)
			err := command.Execute()
			if (err != nil) != (tc.err != nil) {
				t.Fatalf("%v\n%s", err, out.String())
			}
			for _, want := range tc.err {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s, want %s", err, want)
				}
			}
			for _, want := range tc.out {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%s, want %s", out.String(), want)
				}
			}
		})
	}
	var out bytes.Buffer
	command := newCommand()
	command.SetArgs([]string{"template", "quay.io/x:v{kube_patch_version}", "-o", "json", "--kubeconfig=" + kubeconfig})
	command.SetOut(&out)
	var got templateResult
	if err := command.Execute(); err != nil || json.Unmarshal(out.Bytes(), &got) != nil || got.Image != "quay.io/x:v3" || len(got.Variables) != 1 || got.Variables[0].Value != "3" {
		t.Errorf("%v: %s", err, out.String())
	}
}
