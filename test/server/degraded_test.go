//go:build integration

package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/server"
	"github.com/penstock-project/penstock/pkg/store/storetest"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// emptyStoreSwappedIn replaces the data directory by an empty one. No answer may look as if the
// objects were deleted, and the rest of the cluster must not be affected.
func emptyStoreSwappedIn(t *testing.T, w servedHost) {
	c, right, empty := w.In(t), w.dir, dataDir(t)
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	w.server.halt(t)

	p := start(t, newOptions(t, c, empty))
	var refusal string
	for _, args := range [][]string{{"get", "cer"}, {"get", "cer", "argocd-1"}, {"delete", "cer", "argocd-1", "--wait=false"}} {
		out := c.Kubectl(args...)
		if out.ExitCode == 0 || !strings.Contains(out.Stderr, "ServiceUnavailable") || !strings.Contains(out.Stderr, "the store is empty") {
			t.Errorf("the request was not refused with the reason: %s", out)
		}
		refusal = out.Stderr
	}
	if out := c.KubectlInput(revision("argocd", 2), "create", "-f", "-"); out.ExitCode == 0 {
		t.Errorf("a write was accepted: %s", out)
	}
	if body, code := get(t, p.Loopback(), "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/argocd-1"); code != http.StatusServiceUnavailable {
		t.Errorf("got %d, want 503: %s", code, body)
	}

	t.Run("OthersGoOn", func(t *testing.T) {
		c := c.In(t)
		if err := missing(c.MustKubectl("api-resources", "--api-group=olm.operatorframework.io"), []string{"clusterextensionrevisions"}); err != nil {
			t.Errorf("discovery: %v", err)
		}
		// kube-apiserver fetches OpenAPI at its own intervals.
		eventually(t, "explain", func() error {
			return missing(c.Kubectl("explain", "cer.spec").Stdout, []string{"phases"})
		})
		c.MustKubectl("create", "namespace", "short-lived")
		c.MustKubectl("create", "configmap", "something", "--namespace=short-lived")
		c.MustKubectl("delete", "namespace", "short-lived", poll.TimeoutFlag)
	})
	t.Run("HealthTellsTheTruth", func(t *testing.T) {
		if body, code := get(t, p.Loopback(), "/readyz?verbose"); code == http.StatusOK || !strings.Contains(body, "[-]store-identity failed") {
			t.Errorf("readyz: got %d:\n%s", code, body)
		}
		if body, code := get(t, p.Loopback(), "/readyz?exclude=store-identity"); code != http.StatusOK {
			t.Errorf("readyz without the identity: got %d:\n%s", code, body)
		}
		if body, code := get(t, p.Loopback(), "/livez"); code != http.StatusOK {
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
		// The high-water mark may have moved meanwhile, which changes the token.
		p := start(t, newOptions(t, c, empty))
		refusal = c.Kubectl("get", "cer").Stderr
		p.halt(t)
		_, token, ok := strings.Cut(strings.TrimSpace(refusal), "--accept-identity=")
		if !ok {
			t.Fatalf("the refusal does not say how to continue: %s", refusal)
		}
		p = start(t, newOptions(t, c, empty, "--accept-identity="+token))
		c.MustKubectlInput(revision("argocd", 2), "create", "-f", "-")
		p.halt(t)
		// Now the first store is the foreign one.
		start(t, newOptions(t, c, right))
		if out := c.Kubectl("get", "cer"); !strings.Contains(out.Stderr, "it belongs to another cluster") {
			t.Errorf("the abandoned store is served: %s", out)
		}
	})
}

// TestWitnessEditedByHand: after an edit of the witness the restarted server is degraded, but still
// serves discovery. It recovers as soon as the witness is repaired.
func TestWitnessEditedByHand(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	dir := dataDir(t)
	p := start(t, newOptions(t, c, dir))
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	p.halt(t)
	right := c.MustKubectl("get", "configmap", "penstock-store", "--namespace=penstock-system", "-o", "jsonpath={.data.highWater}")
	edit := func(highWater string) {
		c.MustKubectl("patch", "configmap", "penstock-store", "--namespace=penstock-system", "--type=merge",
			"-p", `{"data":{"highWater":"`+highWater+`"}}`)
	}
	edit("many")

	options := newOptions(t, c, dir)
	p, ready := startOften(t, options)
	first := <-ready
	refused(t, c, `"highWater" is "many"`)
	if err := missing(c.MustKubectl("api-resources", "--api-group=olm.operatorframework.io"), []string{"clusterextensionrevisions"}); err != nil {
		t.Errorf("discovery: %v", err)
	}
	edit(right)
	servedAgain(t, c, p, ready, first)
}

// TestExternalEtcdUnreachable starts with an external etcd that does not answer.
func TestExternalEtcdUnreachable(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	etcd := storetest.Client(t).Endpoints()[0]
	socket := filepath.Join(filepath.Dir(dataDir(t)), "etcd.sock")
	options := newOptions(t, c, "", "--etcd-servers=unix://"+socket)
	p, ready := startOften(t, options)
	first := <-ready
	refused(t, c, "observing the store")
	eventually(t, "discovery", func() error {
		if out := c.Kubectl("get", "--raw", "/apis/olm.operatorframework.io/v1alpha1"); out.ExitCode != 0 {
			return errors.New(out.Stderr)
		}
		return nil
	})
	for _, path := range []string{"/readyz?exclude=store-identity", "/livez"} {
		if body, code := get(t, first.Loopback, path); code != http.StatusOK {
			t.Errorf("%s: got %d:\n%s", path, code, body)
		}
	}
	if err := os.Symlink(strings.TrimPrefix(etcd, "unix://"), socket); err != nil {
		t.Fatal(err)
	}
	servedAgain(t, c, p, ready, first)
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
}

// refused waits until a request is refused with a reason. kube-apiserver itself answers until it
// knows that a server serves the group.
func refused(t *testing.T, c *cluster.Cluster, reason string) {
	t.Helper()
	eventually(t, "the refusal with its reason", func() error {
		out := c.Kubectl("get", "cer")
		if out.ExitCode == 0 {
			t.Fatalf("the request was not refused: %s", out)
		}
		if !strings.Contains(out.Stderr, "ServiceUnavailable") || !strings.Contains(out.Stderr, reason) {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
}

// startOften is like start, for a server that becomes ready several times.
func startOften(t *testing.T, options *server.Options) (*process, <-chan server.Serving) {
	t.Helper()
	ready := make(chan server.Serving, 10)
	options.Ready = func(serving server.Serving) { ready <- serving }
	return begin(t, options), ready
}

// servedAgain waits until a degraded server has restarted itself on the same port.
func servedAgain(t *testing.T, c *cluster.Cluster, p *process, ready <-chan server.Serving, first server.Serving) {
	t.Helper()
	select {
	case second := <-ready:
		if second.Port != first.Port {
			t.Errorf("the port changed from %d to %d", first.Port, second.Port)
		}
	case <-p.done:
		t.Fatalf("the server ended: %v", p.err)
	case <-time.After(poll.Patience):
		t.Fatal("the server is still degraded")
	}
	eventually(t, "a listing", func() error {
		if out := c.Kubectl("get", "cer"); out.ExitCode != 0 {
			return errors.New(out.Stderr)
		}
		return nil
	})
}
