package gitops

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// TestPublicCharts installs public charts, upgrades them to another version, and checks that their
// removal leaves nothing.
func TestPublicCharts(t *testing.T) {
	if os.Getenv("PENSTOCK_PROGRAM") == "" {
		t.Skip("it needs the program: make test")
	}
	found, err := os.ReadDir(publicCharts)
	if err != nil {
		t.Skip("no public charts beside the repository")
	}
	h := newHost(t)
	t.Run("together", func(t *testing.T) {
		for _, one := range found {
			if !one.IsDir() {
				continue
			}
			t.Run(one.Name(), func(t *testing.T) {
				t.Parallel()
				c := &publicChart{site: h.in(t, one.Name()), folder: whole(t, filepath.Join(publicCharts, one.Name()))}
				c.comesAndGoes()
			})
		}
	})
}

// publicChart is a chart in a namespace of the same name.
type publicChart struct {
	*site
	folder string
}

// waitsFor returns the kinds of a chart that never become available in a cluster without running
// Pods.
func waitsFor(chart string) string {
	switch chart {
	case "metrics-server", "prometheus-adapter":
		return "APIService"
	}
	return ""
}

func (c *publicChart) comesAndGoes() {
	c.t.Helper()
	c.rollsOut(1, c.folder)
	newer := filepath.Join(c.t.TempDir(), c.namespace)
	if err := os.CopyFS(newer, os.DirFS(c.folder)); err != nil {
		c.t.Fatal(err)
	}
	metadata, err := os.ReadFile(filepath.Join(newer, "Chart.yaml"))
	if err != nil {
		c.t.Fatal(err)
	}
	write(c.t, filepath.Join(newer, "Chart.yaml"), regexp.MustCompile(`(?m)^version: .*$`).ReplaceAllString(string(metadata), "version: 99.0.0"))
	objects := c.rollsOut(2, newer)
	c.MustKubectl("delete", "clusterextensionrevisions", "-l", olmv1alpha1.ChainLabel+"="+c.namespace, poll.TimeoutFlag)
	left := c.KubectlInput(objects, "get", "-f", "-", "--ignore-not-found", "-o", "name").Stdout
	if left != "" {
		c.t.Errorf("left behind:\n%s", left)
	}
}

// rollsOut creates a revision of the chart, and returns the objects that a teardown deletes.
func (c *publicChart) rollsOut(number int, folder string) string {
	c.t.Helper()
	values := filepath.Join(c.t.TempDir(), "values.yaml")
	write(c.t, values, map[string]string{
		"alertmanager": "persistence: {enabled: false}\n", // no provisioner for volumes
	}[c.namespace])
	rendered := c.program.MustRun(c.t, "", "render", "--chart", folder, "--values", values, "--install-namespace", c.namespace, "--extension", c.namespace,
		"--revision", fmt.Sprint(number), "--kubeconfig", c.Kubeconfig(), "-o", "json")
	c.MustKubectlInput(rendered, "create", "-f", "-")
	name := fmt.Sprintf("%s-%d", c.namespace, number)
	poll.Eventually(c.t, name+" to be rolled out", func() (bool, string) {
		var revision olmv1alpha1.ClusterExtensionRevision
		text := c.MustKubectl("get", "clusterextensionrevision", name, "-o", "json")
		if err := json.Unmarshal([]byte(text), &revision); err != nil {
			c.t.Fatal(err)
		}
		conditions, err := json.Marshal(revision.Status.Conditions)
		if err != nil {
			c.t.Fatal(err)
		}
		if kind := waitsFor(c.namespace); kind != "" {
			return strings.Contains(string(conditions), kind), string(conditions)
		}
		return meta.IsStatusConditionTrue(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded), string(conditions)
	})
	return c.removable(rendered)
}

// removable returns the objects of a revision that a teardown deletes, as a List.
func (c *publicChart) removable(rendered string) string {
	c.t.Helper()
	var revision struct {
		Spec struct {
			Phases []struct {
				Objects []struct {
					Object map[string]any `json:"object"`
				} `json:"objects"`
			} `json:"phases"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(rendered), &revision); err != nil {
		c.t.Fatal(err)
	}
	list := map[string]any{"apiVersion": corev1.SchemeGroupVersion.String(), "kind": "List"}
	var items []any
	for _, phase := range revision.Spec.Phases {
		for _, one := range phase.Objects {
			annotations, _ := one.Object["metadata"].(map[string]any)["annotations"].(map[string]any)
			if annotations["penstock.dev/teardown-policy"] != "Orphan" {
				items = append(items, one.Object)
			}
		}
	}
	list["items"] = items
	text, err := json.Marshal(list)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}
