package bundle

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
)

// goldenDir returns the folder with real bundles and the objects that OLM v1 renders from them.
func goldenDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "shared", "data", "registryv1-golden")
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		t.Skipf("%s is absent", dir)
	}
	return dir
}

// TestGolden compares rendered objects with the objects of OLM v1.
func TestGolden(t *testing.T) {
	dir := goldenDir(t)
	lines, err := os.ReadFile(filepath.Join(dir, "inputs.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range bytes.Split(bytes.TrimSpace(lines), []byte("\n")) {
		var input struct {
			Bundle, Out, Namespace, Watch string
			Provider                      CertificateProvider
			DeploymentConfig              map[string]any
		}
		if err := json.Unmarshal(line, &input); err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(input.Out), func(t *testing.T) {
			if input.Provider == "" {
				input.Provider = ByOperator
			}
			config := map[string]any{}
			if input.DeploymentConfig != nil {
				config["deploymentConfig"] = input.DeploymentConfig
			}
			if input.Watch != "" {
				config["watchNamespace"] = input.Watch
			}
			encoded, err := json.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			renderer := Renderer{Options{InstallNamespace: input.Namespace, Config: encoded, Certificates: input.Provider}}
			rendered, err := renderer.Render(t.Context(), os.DirFS(filepath.Join(dir, input.Bundle)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wantedObjects(t, filepath.Join(dir, input.Out)), comparable(t, rendered)); diff != "" {
				t.Errorf("-OLM v1, +rendered:\n%s", diff)
			}
		})
	}
}

// wantedObjects reads one manifest from each file, in comparable form.
func wantedObjects(t *testing.T, dir string) map[manifest.ID]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	objects := map[manifest.ID]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := manifest.Parse(asJSON)
		if err != nil {
			t.Fatal(err)
		}
		addComparable(t, objects, parsed)
	}
	return objects
}

func comparable(t *testing.T, rendered source.Rendered) map[manifest.ID]any {
	t.Helper()
	objects := map[manifest.ID]any{}
	for _, phase := range rendered.Phases {
		for _, object := range phase.Objects {
			addComparable(t, objects, object)
		}
	}
	return objects
}

// addComparable removes differences that do not matter: null values and empty structs, which Go
// types write by default, and the namespace of webhook configurations, which OLM v1 sets although
// the kind is cluster-scoped.
func addComparable(t *testing.T, to map[manifest.ID]any, object manifest.Object) {
	t.Helper()
	content, err := raw(object)
	if err != nil {
		t.Fatal(err)
	}
	if object.Group == "admissionregistration.k8s.io" {
		delete(content["metadata"].(map[string]any), "namespace")
		object.Namespace = ""
	}
	if spec, ok := content["spec"].(map[string]any); ok && object.Kind == "Deployment" {
		dropEmpty(spec, "strategy")
		for _, container := range containers(pods(spec)) {
			dropEmpty(container, "resources")
		}
		dropEmpty(child(child(spec, "template"), "metadata"), "creationTimestamp")
	}
	if _, twice := to[object.ID]; twice {
		t.Errorf("%s is there twice", object.ID)
	}
	to[object.ID] = content
}

func dropEmpty(of map[string]any, key string) {
	if value, ok := of[key].(map[string]any); of[key] == nil || ok && len(value) == 0 {
		delete(of, key)
	}
}

// TestRealBundles renders three versions of a real operator with every install mode that they
// support.
func TestRealBundles(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "..", "shared", "data", "bundles", "argocd-operator")
	versions, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("%s is absent", dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range versions {
		rendered, err := Renderer{Options{InstallNamespace: "argocd", Certificates: CertManager}}.Render(t.Context(), os.DirFS(filepath.Join(dir, version.Name())))
		if err != nil {
			t.Errorf("%s: %v", version.Name(), err)
			continue
		}
		if rendered.Package != "argocd-operator" || rendered.Version != version.Name() || source.Count(rendered.Phases) < 15 {
			t.Errorf("%s: package %q, version %q, %d objects", version.Name(), rendered.Package, rendered.Version, source.Count(rendered.Phases))
		}
	}
}
