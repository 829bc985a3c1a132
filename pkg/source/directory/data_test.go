package directory

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/applycheck"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// sharedData has manifests of real operators, outside of the repository.
const sharedData = "../../../../shared/data"

// TestRealManifests: manifests of real operators are read unchanged, without warnings or errors.
func TestRealManifests(t *testing.T) {
	tried := 0
	for _, kind := range []string{"manifests", "bundles"} {
		found, err := filepath.Glob(filepath.Join(sharedData, kind, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range found {
			info, err := os.Stat(dir)
			if err != nil || !info.IsDir() {
				continue
			}
			tried++
			t.Run(filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir), func(t *testing.T) {
				objects, err := Read(context.Background(), manifestsOf(dir), Options{Warn: func(one Error) { t.Errorf("warning: %v", one.Error()) }})
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				t.Logf("%d objects", len(objects))
			})
		}
	}
	for _, pattern := range []string{"crds/*.yaml", "registryv1-golden/expected-manifests/**/*.yaml", "registryv1-golden/expected-manifests/*/*/*.yaml", "registryv1-golden/rendered-by-upstream/**/*.yaml", "registryv1-golden/rendered-by-upstream/*/*/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(sharedData, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			tried++
			t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
				content, err := os.Open(file)
				if err != nil {
					t.Fatal(err)
				}
				defer content.Close()
				_, err = RenderStream(context.Background(), content, filepath.Base(file), Options{Warn: func(one Error) {
					// OLM v1 sets a namespace on webhook configurations, which the server ignores.
					if !strings.Contains(one.Message, "metadata.namespace is left out") {
						t.Errorf("warning: %v", one.Error())
					}
				}})
				if err != nil {
					t.Errorf("refused: %v", err)
				}
			})
		}
	}
	if tried == 0 {
		t.Skipf("there are no manifests in %s", sharedData)
	}
}

// manifestsOf returns a folder, or the manifests folder of a bundle.
func manifestsOf(dir string) fs.FS {
	if inner := filepath.Join(dir, "manifests"); isDir(inner) {
		return os.DirFS(inner)
	}
	return os.DirFS(dir)
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// TestFieldCases: users' files that kubectl accepts are accepted, except files with duplicate keys.
func TestFieldCases(t *testing.T) {
	cases := filepath.Join(sharedData, "field-cases", "apply", "14-bytes")
	if _, err := os.Stat(cases); err != nil {
		t.Skip("no field cases beside the repository")
	}
	for name, want := range map[string]struct {
		objects int
		refused string
	}{
		"bom-seconddoc": {objects: 2}, "utf16": {objects: 1}, "hugeint": {refused: "runAsUser"},
		"nulllist": {refused: "no manifests found"}, "dupkey": {refused: `f.yaml:9: key "a" is already on line 7`},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Read(t.Context(), os.DirFS(filepath.Join(cases, name)), Options{})
			switch {
			case want.refused != "":
				if err == nil || !strings.Contains(err.Error(), want.refused) {
					t.Errorf("got %v, want %q", err, want.refused)
				}
			case err != nil || len(objects) != want.objects:
				t.Errorf("got %d objects, %v; want %d", len(objects), err, want.objects)
			}
		})
	}
}

// TestLateRefusals: an apply that would certainly fail or change another object is reported before
// anything is written.
func TestLateRefusals(t *testing.T) {
	dir := filepath.Join(sharedData, "field-cases", "apply", "08-late-refusals", "dir1")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no field cases beside the repository")
	}
	var said []string
	objects, err := Read(t.Context(), os.DirFS(dir), Options{Warn: func(one Error) { said = append(said, one.Error()) }})
	if err != nil {
		t.Fatal(err)
	}
	builtin, err := applycheck.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	manifests := make([]manifest.Object, len(objects))
	for i := range objects {
		manifests[i] = objects[i].Object
	}
	for _, note := range applycheck.Foresee(t.Context(), builtin, emptyCluster{}, manifests) {
		said = append(said, manifests[note.Object].Name+": "+note.Message)
	}
	for _, want := range []string{
		"plain-cns: metadata.namespace is left out", "plain-ttl: Namespace fb does not exist", "plain-ttl: spec.ttlSecondsAfterFinished",
		"plain-agg: rules are left out", "plain-pdb: the cluster does not serve PodDisruptionBudget in policy/v1beta1, but in v1",
	} {
		if !slices.ContainsFunc(said, func(one string) bool { return strings.Contains(one, want) }) {
			t.Errorf("nothing says %q:\n%s", want, strings.Join(said, "\n"))
		}
	}
}

// TestStatusOfTheField: the status of a custom resource is kept if its definition has no status
// subresource.
func TestStatusOfTheField(t *testing.T) {
	dir := filepath.Join(sharedData, "field-cases", "apply", "12-status-without-subresource", "d")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no field cases beside the repository")
	}
	objects, err := Read(t.Context(), os.DirFS(dir), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(objects, func(one Located) bool {
		return one.Kind == "NoStat" && strings.Contains(string(one.JSON), `"status":{"enabled":true}`)
	}) {
		t.Error("the status of NoStat ns is missing")
	}
}

// emptyCluster has no objects, and serves every kind in version v1.
type emptyCluster struct{}

func (emptyCluster) Versions(context.Context, schema.GroupKind) ([]string, error) {
	return []string{"v1"}, nil
}
func (emptyCluster) HasNamespace(context.Context, string) (bool, error) { return false, nil }
