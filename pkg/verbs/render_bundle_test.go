package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func exampleBundle(version string) string {
	return filepath.Join("..", "..", "artifacts", "examples", "lighthouse-bundles", version)
}

func TestRenderBundle(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("deploymentConfig:\n  nodeSelector: {disk: ssd}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := exampleBundle("v1.1.0")
	stdout, stderr, err := runRender("", "--bundle", dir, "--install-namespace", "lighthouse-system", "--config", config,
		"--certificates", "cert-manager", "--extension", "lighthouse", "--revision", "2")
	if err != nil {
		t.Fatal(err)
	}
	want := "warning: " + filepath.Join(dir, "manifests", "lighthouse.clusterserviceversion.yaml") + `:16: ClusterServiceVersion lighthouse.v1.1.0: spec.minKubeVersion: the operator needs Kubernetes 1.30.0 or later
lighthouse-2: 18 objects in 9 phases
  policies        2 PodDisruptionBudget
  identity        2 ServiceAccount
  configuration   1 ConfigMap
  crds            1 CustomResourceDefinition
  roles           3 ClusterRole
  bindings        3 ClusterRoleBinding
  infrastructure  1 Service, 1 Certificate, 1 Issuer
  deploy          2 Deployment
  admission       1 ValidatingWebhookConfiguration
note: the Namespace lighthouse-system is not among the objects: it has to exist
`
	if diff := cmp.Diff(want, stderr); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	revision := revisionOf(t, stdout)
	if got := revision.Annotations[v1alpha1.VersionAnnotation]; got != "1.1.0" {
		t.Errorf("version %q, want that of the bundle", got)
	}
	if !strings.Contains(stdout, "disk: ssd") {
		t.Error("the configuration is not in the output")
	}
}

func TestRenderBundleErrors(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("deploymentConfig:\n  env:\n  - {value: a}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := exampleBundle("v1.1.0")
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"NoInput":      {"one input", nil, []string{"0 inputs"}},
		"TwoInputs":    {"one input", []string{"--bundle", dir, "--install-namespace", "a", dir}, []string{"2 inputs"}},
		"NoNamespace":  {"it is needed", []string{"--bundle", dir}, []string{"--install-namespace"}},
		"Certificates": {"the allowed values are named", []string{"--bundle", dir, "--install-namespace", "a", "--certificates", "own"}, []string{"cert-manager, service-ca, operator"}},
		"NoProvider": {"what is wrong is told by file and line", []string{"--bundle", dir, "--install-namespace", "a"},
			[]string{filepath.Join(dir, "manifests", "lighthouse.clusterserviceversion.yaml") + ":", "want one of cert-manager"}},
		"Config":       {"the field is named", []string{"--bundle", dir, "--install-namespace", "a", "--certificates", "operator", "--config", config}, []string{"deploymentConfig.env[0].name: is missing"}},
		"OnlyOfBundle": {"a flag that does nothing is refused", []string{dir, "--config", config}, []string{"--config does nothing without --bundle"}},
		"Layout":       {"a flag that does nothing is refused", []string{"--bundle", dir, "--install-namespace", "a", "--layout", "release"}, []string{"--layout does nothing with --bundle"}},
		"NotABundle":   {"it says what was looked for", []string{"--bundle", filepath.Dir(dir), "--install-namespace", "a"}, []string{filepath.Dir(dir), "metadata/annotations.yaml is missing"}},
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
