package deployment_test

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/server"
	"github.com/penstock-project/penstock/pkg/server/deployment"
	"github.com/penstock-project/penstock/pkg/server/registration"
)

var update = flag.Bool("update", false, "write artifacts/deploy anew")

// TestDeploy: the published manifests match the code. The suites that run with these manifests show
// that the rights suffice.
func TestDeploy(t *testing.T) {
	options, err := server.NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	webhooks, err := options.Webhooks(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(io.Writer, string) error{
		"base/rbac.yaml": func(w io.Writer, namespace string) error {
			return deployment.WriteServerRights(w, namespace, registration.Versions())
		},
		"base/rbac-engine.yaml": deployment.WriteJobRights,
		"webhooks.yaml": func(w io.Writer, namespace string) error {
			return deployment.WriteWebhooks(w, namespace, webhooks)
		},
		"base/rbac-users.yaml": registration.WriteUserRoles,
		"definitions.yaml":     func(w io.Writer, _ string) error { return deployment.WriteDefinitions(w) },
	} {
		t.Run(name, func(t *testing.T) {
			var made bytes.Buffer
			if err := write(&made, server.DefaultNamespace); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("..", "..", "..", "artifacts", "deploy", name)
			if *update {
				if err := os.WriteFile(path, made.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			found, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(found), made.String()); diff != "" {
				t.Errorf("%s is not what the code asks for; run hack/update-deploy.sh (-found +want):\n%s", path, diff)
			}
		})
	}
}

// TestChart: the chart and kustomize have the same objects where they do not depend on values.
// TestDeploy of test/server compares the rest.
func TestChart(t *testing.T) {
	artifacts := filepath.Join("..", "..", "..", "artifacts")
	for to, from := range map[string]string{
		"templates/rbac.yaml":        "deploy/base/rbac.yaml",
		"templates/rbac-engine.yaml": "deploy/base/rbac-engine.yaml",
		"templates/rbac-users.yaml":  "deploy/base/rbac-users.yaml",
		"files/prometheusrule.yaml":  "monitoring/prometheusrule.yaml",
		"files/servicemonitor.yaml":  "monitoring/servicemonitor.yaml",
		"files/dashboard.json":       "monitoring/dashboard.json",
	} {
		t.Run(to, func(t *testing.T) {
			want, err := os.ReadFile(filepath.Join(artifacts, from))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(to, "templates/") && bytes.Contains(want, []byte("{{")) {
				t.Fatalf("%s has {{, which Helm would read as a template", from)
			}
			path := filepath.Join(artifacts, "chart", to)
			if *update {
				if err := os.WriteFile(path, want, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			found, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(found), string(want)); diff != "" {
				t.Errorf("%s is not %s; run hack/update-deploy.sh (-found +want):\n%s", path, from, diff)
			}
		})
	}
}
