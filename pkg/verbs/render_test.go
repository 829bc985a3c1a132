package verbs

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

func runRender(stdin string, args ...string) (stdout, stderr string, err error) {
	var out, errOut bytes.Buffer
	command := NewRender(program())
	command.SetArgs(args)
	command.SetIn(strings.NewReader(stdin))
	command.SetOut(&out)
	command.SetErr(&errOut)
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.Execute()
	return out.String(), errOut.String(), err
}

func TestRenderGolden(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		stdin  string
	}{
		"directory": {
			reason: "phases and objects are in their order, whatever the order of files; nothing that a server fills in is left",
			args:   []string{filepath.Join("testdata", "render", "input"), "--extension", "lamp", "--revision", "1"},
		},
		"json": {
			reason: "the same for machines, to be read before it is written",
			args: []string{filepath.Join("testdata", "render", "input"), "--extension", "lamp", "--revision", "12",
				"--collision-protection", "IfNoController", "--bundle-version=1.2.0", "--paused", "--output", "json",
				"--progress-deadline-minutes=10", "--on-failure=Rollback", "--teardown-policy=Orphan", "--target=edge"},
		},
		"stdin": {
			reason: "a stream is one more way in",
			args:   []string{"-", "--extension", "lamp", "--revision", "2", "--collision-protection=None"},
			stdin:  "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: lamp\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: lamp\nstringData:\n  p: 'yes'\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := runRender(tc.stdin, tc.args...)
			if err != nil {
				t.Fatal(err)
			}
			for file, got := range map[string]string{"stdout": stdout, "stderr": stderr} {
				golden := filepath.Join("testdata", "render", name+"."+file)
				if os.Getenv("UPDATE_GOLDEN") != "" {
					if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("%s: %s changed; run with UPDATE_GOLDEN=1 if that is meant. -want, +got:\n%s", tc.reason, file, diff)
				}
			}
			if again, _, err := runRender(tc.stdin, tc.args...); err != nil || again != stdout {
				t.Errorf("rendered twice, the output differs (error %v)", err)
			}
		})
	}
}

func TestRenderRefuses(t *testing.T) {
	valid := filepath.Join("testdata", "render", "input")
	cases := map[string]struct {
		reason string
		args   []string
		stdin  string
		want   []string
	}{
		"NoName":       {"a revision needs a name", []string{valid, "--revision", "1"}, "", []string{`"extension" not set`}},
		"NoRevision":   {"there is no good default", []string{valid, "--extension", "a"}, "", []string{`"revision" not set`}},
		"NoDirectory":  {"the missing path is named", []string{"testdata/missing", "--extension", "a", "--revision", "1"}, "", []string{"testdata/missing"}},
		"Name":         {"the name is of an object", []string{valid, "--extension", "A_b", "--revision", "1"}, "", []string{`--extension "A_b"`}},
		"LongName":     {"the limit is named", []string{valid, "--extension", strings.Repeat("a", 53), "--revision", "1"}, "", []string{"53", "52"}},
		"RevisionZero": {"numbers begin at 1", []string{valid, "--extension", "a", "--revision", "0"}, "", []string{"--revision 0: must be a number, 1 or more"}},
		"Collision":    {"the allowed values are named", []string{valid, "--extension", "a", "--revision", "1", "--collision-protection", "prevent"}, "", []string{`"prevent"`, "Prevent, IfNoController or None"}},
		"Output":       {"the allowed values are named", []string{valid, "--extension", "a", "--revision", "1", "-o", "xml"}, "", []string{"yaml or json"}},
		"NotANumber":   {"next is the only word", []string{valid, "--extension", "a", "--revision", "newest"}, "", []string{"--revision newest", "or next"}},
		"OnFailure":    {"the allowed values are named", []string{valid, "--extension", "a", "--revision", "1", "--on-failure", "rollback"}, "", []string{"None or Rollback"}},
		"NoDeadline":   {"a rollback needs a deadline", []string{valid, "--extension", "a", "--revision", "1", "--on-failure", "Rollback"}, "", []string{"--progress-deadline-minutes"}},
		"Teardown":     {"the allowed values are named", []string{valid, "--extension", "a", "--revision", "1", "--teardown-policy", "keep"}, "", []string{"Delete or Orphan"}},
		"Target":       {"a target is a Secret", []string{valid, "--extension", "a", "--revision", "1", "--target", "A/b"}, "", []string{`--target "A/b"`}},
		"Stream":       {"errors of a stream have lines", []string{"-", "--extension", "a", "--revision", "1"}, "\nkind: A\n", []string{"stdin:2: A: apiVersion: is missing"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := runRender(tc.stdin, tc.args...)
			if err == nil {
				t.Fatalf("%s: got no error", tc.reason)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q is missing in: %v", tc.reason, want, err)
				}
			}
			if stdout != "" {
				t.Errorf("something was printed in spite of the error: %s", stdout)
			}
		})
	}
}

func TestRenderNamesFilesAsGiven(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("a: ["), 0o644); err != nil {
		t.Fatal(err)
	}
	_, _, err := runRender("", dir, "--extension", "a", "--revision", "1")
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "a.yaml")+":1: ") {
		t.Errorf("got %v, want the path of a.yaml", err)
	}
	if err := os.Remove(filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, _, err = runRender("", dir, "--extension", "a", "--revision", "1"); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want the path of the empty directory", err)
	}
}

// TestRenderRealOperator renders a release of cert-manager.
func TestRenderRealOperator(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "data", "manifests", "cert-manager", "1.19.5")
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		t.Skipf("%s is absent", dir)
	}
	stdout, stderr, err := runRender("", dir, "--extension", "cert-manager", "--revision", "1")
	if err != nil {
		t.Fatal(err)
	}
	want := `cert-manager-1: 49 objects in 8 phases
  namespaces      1 Namespace
  identity        3 ServiceAccount
  crds            6 CustomResourceDefinition
  roles           13 ClusterRole, 4 Role
  bindings        10 ClusterRoleBinding, 4 RoleBinding
  infrastructure  3 Service
  deploy          3 Deployment
  admission       1 MutatingWebhookConfiguration, 1 ValidatingWebhookConfiguration
`
	if diff := cmp.Diff(want, stderr); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	rendered := revisionOf(t, stdout)
	originals := objectsBelow(t, dir)
	var read int
	for _, phase := range rendered.Spec.Phases {
		for _, entry := range phase.Objects {
			object, err := manifest.Parse(entry.Object.Raw)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(originals[object.ID], string(object.JSON)); diff != "" {
				t.Errorf("%s changed on its way through the output: -file, +rendered:\n%s", object.ID, diff)
			}
			read++
		}
	}
	if read != len(originals) {
		t.Errorf("%d objects in files, %d rendered", len(originals), read)
	}
}

// objectsBelow reads one manifest from each file, without the code under test.
func objectsBelow(t *testing.T, dir string) map[manifest.ID]string {
	t.Helper()
	objects := map[manifest.ID]string{}
	err := filepath.WalkDir(dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		asJSON, err := yaml.YAMLToJSON(text)
		if err != nil {
			return err
		}
		object, err := manifest.Parse(asJSON)
		objects[object.ID] = string(object.JSON)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func revisionOf(t *testing.T, text string) v1alpha1.ClusterExtensionRevision {
	t.Helper()
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var revision v1alpha1.ClusterExtensionRevision
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&revision); err != nil {
		t.Fatal(err)
	}
	return revision
}

// TestRenderExamples: the versions of the example operator can be rendered, and behave as their
// names suggest.
func TestRenderExamples(t *testing.T) {
	dir := filepath.Join("..", "..", "artifacts", "examples", "lighthouse")
	versions := map[string][]string{}
	for i, version := range []string{"v1.0.0", "v1.1.0", "v1.2.0-stuck"} {
		stdout, _, err := runRender("", filepath.Join(dir, version), "--extension", "lighthouse", "--revision", string(rune('1'+i)))
		if err != nil {
			t.Fatal(err)
		}
		for _, phase := range revisionOf(t, stdout).Spec.Phases {
			for _, entry := range phase.Objects {
				object, err := manifest.Parse(entry.Object.Raw)
				if err != nil {
					t.Fatal(err)
				}
				versions[version] = append(versions[version], object.ID.String())
			}
		}
	}
	missing := func(from, in string) (ids []string) {
		for _, id := range versions[from] {
			if !slices.Contains(versions[in], id) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	if diff := cmp.Diff([]string{"ConfigMap lighthouse-system/lighthouse-legacy-beams"}, missing("v1.0.0", "v1.1.0")); diff != "" {
		t.Errorf("what the upgrade prunes: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"PodDisruptionBudget.policy lighthouse-system/lighthouse-webhook"}, missing("v1.1.0", "v1.0.0")); diff != "" {
		t.Errorf("what the upgrade adds: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(versions["v1.1.0"], versions["v1.2.0-stuck"]); diff != "" {
		t.Errorf("the stuck version has the same objects: -want, +got:\n%s", diff)
	}
}
