package verbs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
)

// TestMain makes the test program the process that renders charts, like main.
func TestMain(m *testing.M) {
	if template.IsProcess(os.Args) {
		os.Exit(template.RunProcess(os.Args, os.Stdin, os.Stdout, os.Stderr))
	}
	// The tests must not use the cluster of the user's kubeconfig.
	if err := os.Setenv("KUBECONFIG", os.DevNull); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func exampleChart() string {
	return filepath.Join("..", "..", "artifacts", "examples", "foghorn-chart")
}

func TestRenderChart(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(values, []byte("visibilityMetres: 200\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--chart", exampleChart(), "--values", values, "--install-namespace", "coast", "--generated-secret", "foghorn-token", "--extension", "foghorn"}
	first, stderr, err := runRender("", append(args, "--revision", "1")...)
	if err != nil {
		t.Fatal(err)
	}
	want := `warning: no kubeconfig leads to a cluster, so it is not asked what it serves: --kube-version and --api-versions say what .Capabilities of the chart are
warning: test hooks are left out: 1
foghorn-1: 4 objects in 3 phases
  before-1       1 Job
  configuration  1 ConfigMap, 1 Secret
  deploy         1 Deployment
note: the output has 1 Secret in clear text
note: the Namespace coast is not among the objects: it has to exist
`
	if diff := cmp.Diff(want, stderr); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := revisionOf(t, first).Annotations[v1alpha1.VersionAnnotation]; got != "0.3.0" {
		t.Errorf("version %q, want that of the chart", got)
	}
	// The token of the first revision is taken from its Secret.
	secret := ""
	for _, phase := range revisionOf(t, first).Spec.Phases {
		for _, entry := range phase.Objects {
			if object, err := manifest.Parse(entry.Object.Raw); err == nil && object.IsSecret() {
				secret = string(object.JSON)
			}
		}
	}
	previous := filepath.Join(t.TempDir(), "previous.yaml")
	if err := os.WriteFile(previous, []byte("---\n"+secret+"\n---\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second, _, err := runRender("", append(args, "--revision", "1", "--carry-on", previous)...)
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`token: .*`)
	if token.FindString(first) == "" || first != second {
		t.Errorf("the same chart with the token of before made another revision:\n%s", cmp.Diff(first, second))
	}
}

func TestRenderChartErrors(t *testing.T) {
	dir := exampleChart()
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"NoNamespace":  {"it is needed", []string{"--chart", dir}, []string{"--install-namespace"}},
		"Random":       {"the template is named, and can be opened", []string{"--chart", dir, "--install-namespace", "a"}, []string{filepath.Join(dir, "templates", "secret.yaml") + ":9: ", "randAlphaNum"}},
		"Values":       {"the schema of the chart counts", []string{"--chart", dir, "--install-namespace", "a", "--values", "testdata/render/replicas.yaml"}, []string{"'/replicas'"}},
		"OnlyOfChart":  {"a flag that does nothing is refused", []string{dir, "--values", "a"}, []string{"--values does nothing without --chart"}},
		"Config":       {"a flag that does nothing is refused", []string{"--chart", dir, "--install-namespace", "a", "--config", "a"}, []string{"--config does nothing with --chart"}},
		"Both":         {"one input", []string{"--chart", dir, "--bundle", dir, "--install-namespace", "a"}, []string{"2 inputs"}},
		"Carry":        {"a flag that does nothing is refused", []string{"--chart", dir, "--install-namespace", "a", "--carry-on", "a"}, []string{"--generated-secret"}},
		"NotAnArchive": {"it says what is wrong", []string{"--chart", filepath.Join(dir, "values.yaml"), "--install-namespace", "a"}, []string{"reading the archive"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := runRender("", append(tc.args, "--extension", "a", "--revision", "1")...)
			if err == nil || stdout != "" {
				t.Fatalf("%s: got %v and %d bytes", tc.reason, err, len(stdout))
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %q is missing in: %v", tc.reason, want, err)
				}
			}
		})
	}
}
