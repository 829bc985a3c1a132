//go:build integration

package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// What people do with plain kubectl, through the aggregator.
func TestKubectl(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	start(t, newOptions(t, c, dataDir(t)))

	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	c.MustKubectlInput(revision("argocd", 2), "apply", "--server-side", "-f", "-")
	c.MustKubectlInput(revision("other", 1), "apply", "-f", "-")

	cases := map[string]struct {
		reason string
		stdin  string
		args   []string
		want   []string
		not    []string
		// merged is set for what the host merges with its own at intervals.
		merged bool
	}{
		"Table": {
			reason: "the short name and the columns",
			args:   []string{"get", "cer"},
			want:   []string{"NAME", "VERSION", "READY", "REASON", "argocd-1", "argocd-2", "other-1"},
		},
		"Wide": {
			reason: "more columns",
			args:   []string{"get", "cer", "argocd-1", "-o", "wide"},
			want:   []string{"REASON", "MESSAGE"},
		},
		"YAML": {
			reason: "digests on read, no bodies",
			args:   []string{"get", "cer", "argocd-1", "-o", "yaml"},
			want:   []string{"digest: sha256:", "penstock.dev/chain: argocd", "username: admin"},
			not:    []string{"number:"},
		},
		"Describe": {
			reason: "the generic describer",
			args:   []string{"describe", "cer", "argocd-1"},
			want:   []string{"ClusterExtensionRevision"},
		},
		"Explain": {
			reason: "OpenAPI v3 reaches kubectl",
			args:   []string{"explain", "cer.spec.phases"},
			want:   []string{"phases are rolled out in order"},
			merged: true,
		},
		"Selector": {
			reason: "a field selector of ours",
			args:   []string{"get", "cer", "--field-selector=spec.revision=2", "-o", "name"},
			want:   []string{"argocd-2"},
			not:    []string{"argocd-1"},
		},
		"Labels": {
			reason: "the chain's label",
			args:   []string{"get", "cer", "-l", "penstock.dev/chain=argocd", "-o", "name"},
			want:   []string{"argocd-1", "argocd-2"},
			not:    []string{"other-1"},
		},
		"Chunks": {
			reason: "paging by one",
			args:   []string{"get", "cer", "--chunk-size=1", "-o", "name"},
			want:   []string{"argocd-1", "argocd-2", "other-1"},
		},
		"ApplyAgain": {
			reason: "the same manifests are no change",
			stdin:  revision("argocd", 2),
			args:   []string{"apply", "--server-side", "-f", "-"},
			want:   []string{"argocd-2 serverside-applied"},
		},
		"Manifests": {
			reason: "the bodies are at the subresource",
			args:   []string{"get", "cer", "argocd-1", "--subresource=manifests", "-o", "yaml"},
			want:   []string{"kind: List", `number: "1"`},
		},
		"Category": {
			reason: "kubectl get olm",
			args:   []string{"get", "olm", "-o", "name"},
			want:   []string{"argocd-1"},
		},
		"Discovery": {
			reason: "what the aggregator passes on",
			args:   []string{"api-resources", "--api-group=olm.operatorframework.io"},
			want:   []string{"clusterextensionrevisions", "cer", "olm.operatorframework.io/v1alpha1", "false"},
		},
		"OpenAPIv2": {
			reason: "older clients",
			args:   []string{"get", "--raw", "/openapi/v2"},
			want:   []string{"/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/{name}/manifests"},
			merged: true,
		},
		"OpenAPIv3": {
			reason: "the schemas of our group",
			args:   []string{"get", "--raw", "/openapi/v3/apis/olm.operatorframework.io/v1alpha1"},
			want:   []string{"x-kubernetes-group-version-kind", "ClusterExtensionRevisionSpec"},
			merged: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := c.In(t)
			out := c.KubectlInput(tc.stdin, tc.args...)
			if tc.merged {
				eventually(t, tc.reason, func() error {
					out = c.Kubectl(tc.args...)
					return missing(out.Stdout, tc.want)
				})
			}
			if out.ExitCode != 0 {
				t.Fatalf("%s: %s", tc.reason, out)
			}
			if err := missing(out.Stdout, tc.want); err != nil {
				t.Errorf("%s: %v\n%s", tc.reason, err, out)
			}
			for _, not := range tc.not {
				if strings.Contains(out.Stdout, not) {
					t.Errorf("%s: %q is in the output\n%s", tc.reason, not, out)
				}
			}
		})
	}

	t.Run("SameVersion", func(t *testing.T) {
		c := c.In(t)
		before := resourceVersion(t, c, "argocd-2")
		c.MustKubectlInput(revision("argocd", 2), "apply", "--server-side", "-f", "-")
		if after := resourceVersion(t, c, "argocd-2"); after != before {
			t.Errorf("applying the same again changed resourceVersion %s to %s", before, after)
		}
	})
	t.Run("Immutable", func(t *testing.T) {
		c := c.In(t)
		changed := strings.Replace(revision("argocd", 2), `{number: "2"}`, `{number: "3"}`, 1)
		out := c.KubectlInput(changed, "apply", "--server-side", "-f", "-")
		if out.ExitCode == 0 || !strings.Contains(out.Stderr, "spec.phases") {
			t.Errorf("other content was not refused with the field's name: %s", out)
		}
	})
	t.Run("DryRun", func(t *testing.T) {
		c := c.In(t)
		c.MustKubectlInput(revision("argocd", 3), "create", "--dry-run=server", "-f", "-")
		if out := c.Kubectl("get", "cer", "argocd-3"); out.ExitCode == 0 {
			t.Errorf("a dry run was stored: %s", out)
		}
	})
	t.Run("Delete", func(t *testing.T) {
		c := c.In(t)
		c.MustKubectl("delete", "cer", "other-1", "--wait=false")
		c.MustKubectl("patch", "cer", "other-1", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		c.MustKubectl("wait", "--for=delete", "cer/other-1", poll.TimeoutFlag)
	})
}

type missingError struct{ text string }

func (e missingError) Error() string { return "missing in the output: " + e.text }

func missing(output string, wanted []string) error {
	for _, want := range wanted {
		if !strings.Contains(output, want) {
			return missingError{want}
		}
	}
	return nil
}

func resourceVersion(t *testing.T, c *cluster.Cluster, name string) string {
	t.Helper()
	var object struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(c.MustKubectl("get", "cer", name, "-o", "json")), &object); err != nil {
		t.Fatal(err)
	}
	return object.Metadata.ResourceVersion
}
