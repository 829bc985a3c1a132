package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/cluster"
)

// An empty data directory is swapped in: nothing may look as if it had been
// deleted, and the rest of the cluster must not notice.
func TestEmptyStoreSwappedIn(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Workloads())
	right, empty := dataDir(t), dataDir(t)
	p := start(t, newOptions(t, c, right))
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	p.halt(t)

	p = start(t, newOptions(t, c, empty))
	var refusal string
	for _, args := range [][]string{{"get", "cer"}, {"get", "cer", "argocd-1"}, {"delete", "cer", "argocd-1", "--wait=false"}} {
		out := c.Kubectl(args...)
		if out.ExitCode == 0 || !strings.Contains(out.Stderr, "ServiceUnavailable") || !strings.Contains(out.Stderr, "the store is empty") {
			t.Errorf("the request is not refused with the reason: %s", out)
		}
		refusal = out.Stderr
	}
	if out := c.KubectlInput(revision("argocd", 2), "create", "-f", "-"); out.ExitCode == 0 {
		t.Errorf("a write is accepted: %s", out)
	}
	if body, code := get(t, p.Loopback, "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/argocd-1"); code != http.StatusServiceUnavailable {
		t.Errorf("got %d, want 503: %s", code, body)
	}

	t.Run("OthersGoOn", func(t *testing.T) {
		c := c.In(t)
		if err := missing(c.MustKubectl("api-resources", "--api-group=olm.operatorframework.io"), []string{"clusterextensionrevisions"}); err != nil {
			t.Errorf("discovery: %v", err)
		}
		// The host fetches OpenAPI at intervals of its own.
		eventually(t, "explain", func() error {
			return missing(c.Kubectl("explain", "cer.spec").Stdout, []string{"phases"})
		})
		c.MustKubectl("create", "namespace", "short-lived")
		c.MustKubectl("create", "configmap", "something", "--namespace=short-lived")
		c.MustKubectl("delete", "namespace", "short-lived", "--timeout=30s")
	})
	t.Run("HealthTellsTheTruth", func(t *testing.T) {
		if body, code := get(t, p.Loopback, "/readyz?verbose"); code == http.StatusOK || !strings.Contains(body, "[-]store-identity failed") {
			t.Errorf("readyz: got %d:\n%s", code, body)
		}
		if body, code := get(t, p.Loopback, "/readyz?exclude=store-identity"); code != http.StatusOK {
			t.Errorf("readyz without the identity: got %d:\n%s", code, body)
		}
		if body, code := get(t, p.Loopback, "/livez"); code != http.StatusOK {
			t.Errorf("livez: got %d; a restart would not help:\n%s", code, body)
		}
	})
	p.halt(t)

	t.Run("RightOneIsBack", func(t *testing.T) {
		p := start(t, newOptions(t, c, right))
		c.In(t).MustKubectl("get", "cer", "argocd-1")
		p.halt(t)
	})
	t.Run("Accepted", func(t *testing.T) {
		c := c.In(t)
		// The mark may have moved on meanwhile: then this is another decision.
		p := start(t, newOptions(t, c, empty))
		refusal = c.Kubectl("get", "cer").Stderr
		p.halt(t)
		_, token, ok := strings.Cut(strings.TrimSpace(refusal), "--accept-identity=")
		if !ok {
			t.Fatalf("the refusal does not say how to go on: %s", refusal)
		}
		p = start(t, newOptions(t, c, empty, "--accept-identity="+token))
		c.MustKubectlInput(revision("argocd", 2), "create", "-f", "-")
		p.halt(t)
		// Now the other one is the foreign one.
		start(t, newOptions(t, c, right))
		if out := c.Kubectl("get", "cer"); !strings.Contains(out.Stderr, "it belongs to another cluster") {
			t.Errorf("the given-up store is served: %s", out)
		}
	})
}
