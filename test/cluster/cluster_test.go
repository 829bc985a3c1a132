package cluster_test

import (
	"encoding/json"
	"testing"

	"github.com/penstock-project/penstock/test/cluster"
)

func TestBoots(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	var version struct {
		ServerVersion struct{ GitVersion string }
	}
	if err := json.Unmarshal([]byte(c.MustKubectl("version", "-o", "json")), &version); err != nil {
		t.Fatalf("parsing kubectl version: %v", err)
	}
	if got, want := version.ServerVersion.GitVersion, "v1.36.3"; got != want {
		t.Errorf("server version: got %s, want %s", got, want)
	}
}

func TestWorkloads(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Workloads())
	c.MustKubectl("create", "deployment", "web", "--image=example.com/web:1", "--replicas=3")
	c.MustKubectl("wait", "--for=condition=Available", "--timeout=60s", "deployment/web")
}
