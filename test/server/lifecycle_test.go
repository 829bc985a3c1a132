//go:build integration

package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/app"
	"github.com/penstock-project/penstock/pkg/server"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

func revisionsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "olm.operatorframework.io", Version: "v1alpha1", Resource: "clusterextensionrevisions"}
}

// TestStopsAtOnceWhileOthersWatch: a stop is fast although watches are open.
// kube-controller-manager always has open watches.
func TestStopsAtOnceWhileOthersWatch(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	p := start(t, newOptions(t, c, dataDir(t)))

	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	// The APIService is Available a moment before the aggregator sends requests.
	var watcher watch.Interface
	eventually(t, "a watch through the aggregator", func() error {
		watcher, err = client.Resource(revisionsResource()).Watch(t.Context(), metav1.ListOptions{})
		return err
	})
	defer watcher.Stop()
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	select {
	case event := <-watcher.ResultChan():
		if event.Object == nil {
			t.Fatal("the watch ended before the server did")
		}
	case <-time.After(poll.Patience):
		t.Fatal("the watch sent no event")
	}
	if took := p.halt(t); took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	} else {
		t.Logf("stopping took %s", took)
	}
	if p.err != nil {
		t.Errorf("stopping ended with an error: %v", p.err)
	}
}

// TestPortInUse: a start fails if a port is in use, also that of another listener, before it writes
// anything. The API's port is then free again.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	catalogs := app.NewCatalogs()
	catalogs.Addr, catalogs.Dir = taken.Addr().String(), t.TempDir()
	dir := dataDir(t)
	options := newOptions(t, c, dir)
	options.Companions = []server.Companion{catalogs}
	p := begin(t, options)
	await(t, "the refusal", p.done)
	if p.err == nil || !strings.Contains(p.err.Error(), "listening on --catalog-addr "+catalogs.Addr) {
		t.Errorf("the error is %v", p.err)
	}
	if left := c.MustKubectl("get", "secret/penstock-ca", "configmap/penstock-store", "service/penstock", system, "--ignore-not-found", "-o", "name"); left != "" {
		t.Errorf("a start that failed left %s", left)
	}
	catalogs.Addr = "127.0.0.1:0"
	again := newOptions(t, c, dir)
	again.Companions = options.Companions
	start(t, again)
}

// TestRestart: the registration stays after a restart on another port, and is updated.
func TestRestart(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	dir := dataDir(t)
	p := start(t, newOptions(t, c, dir))
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	c.MustKubectl("patch", "clusterrole", "penstock-view", "--type=json", "-p", `[{"op":"remove","path":"/rules/1"}]`)
	const rules = "jsonpath={.rules}"
	changed := c.MustKubectl("get", "clusterrole", "penstock-view", "-o", rules)
	p.halt(t)

	out := c.Kubectl("get", "apiservice", "v1alpha1.olm.operatorframework.io")
	if out.ExitCode != 0 {
		t.Errorf("the registration did not survive the stop: %s", out)
	}
	begin := time.Now()
	p = start(t, newOptions(t, c, dir))
	t.Logf("ready and registered after %s", time.Since(begin))
	c.MustKubectl("get", "cer", "argocd-1")
	if now := c.MustKubectl("get", "clusterrole", "penstock-view", "-o", rules); now != changed {
		t.Errorf("a user's change to a role was undone: %s, it was %s", now, changed)
	}

	// Unregister deletes the registered objects, and roles for users too. It keeps the role that a
	// user has changed.
	p.halt(t)
	var removed []string
	err := registration.Unregister(t.Context(), c.Config(), registration.DefaultNamespace, registration.Versions(), time.Now(), func(what string) { removed = append(removed, what) })
	if err != nil {
		t.Fatal(err)
	}
	if err := missing(strings.Join(removed, "\n"), []string{"apiservice v1alpha1.olm.operatorframework.io", "clusterrole penstock-plan-approver"}); err != nil {
		t.Error(err)
	}
	c.MustKubectl("get", "clusterrole", "penstock-view")
}

// TestNobodyIsAStrangerAfterRestart: a restarted server gets requests at once. It must answer none
// of them with 401 or 403. Clients retry after a 503, but not after these codes.
func TestNobodyIsAStrangerAfterRestart(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	dir := dataDir(t)
	p := start(t, newOptions(t, c, dir))
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	port := fmt.Sprint(p.Port)
	config := c.Config()
	// Frequent enough to meet every restart, but light enough for the machine.
	config.QPS, config.Burst = 100, 1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var served, refused atomic.Int32
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				_, err := client.Resource(revisionsResource()).Get(ctx, "argocd-1", metav1.GetOptions{})
				switch {
				case err == nil:
					served.Add(1)
				case apierrors.IsServiceUnavailable(err), ctx.Err() != nil:
					refused.Add(1)
				default:
					t.Errorf("a request failed with %v", err)
					return
				}
			}
		})
	}
	for range 5 {
		p.halt(t)
		p = start(t, newOptions(t, c, dir, "--secure-port", port))
	}
	stop()
	callers.Wait()
	t.Logf("%d requests served, %d found nobody there", served.Load(), refused.Load())
	if served.Load() == 0 || refused.Load() == 0 {
		t.Error("the requests did not come at the time of a restart: the test sees nothing")
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	dir := dataDir(t)
	start(t, newOptions(t, c, dir))
	second := begin(t, newOptions(t, c, dir))
	select {
	case <-second.done:
	case <-time.After(poll.Patience):
		t.Fatal("a second server runs on the same data directory")
	}
	if second.err == nil || !strings.Contains(second.err.Error(), "in use by another process") {
		t.Errorf("the refusal has no reason: %v", second.err)
	}
	c.MustKubectl("get", "cer")
}

// TestCertificate: the certificate is valid for the Service's name, which kube-apiserver verifies
// at any address.
func TestCertificate(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	p := start(t, newOptions(t, c, dataDir(t)))
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(p.CABundle) {
		t.Fatal("the server has no CA bundle")
	}
	for _, name := range []string{"penstock.penstock-system.svc", "localhost", "127.0.0.1"} {
		conn, err := tls.Dial("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(p.Port)), &tls.Config{RootCAs: roots, ServerName: name})
		if err != nil {
			t.Errorf("connecting to %s: %v", name, err)
			continue
		}
		_ = conn.Close()
	}
	out := c.MustKubectl("get", "apiservice", "v1alpha1.olm.operatorframework.io", "-o", "jsonpath={.spec.insecureSkipTLSVerify}")
	if out != "" && out != "false" {
		t.Errorf("verification is switched off: %s", out)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	p := start(t, newOptions(t, c, dataDir(t)))
	families := map[string]int{}
	// Each server that starts in this process sets the library's getter of this metric for a
	// moment.
	poll.Eventually(t, "no metric for which a scrape asks etcd, and waits when it is away", func() (bool, string) {
		body, code := get(t, p.Loopback(), "/metrics")
		if code != http.StatusOK {
			t.Fatalf("got %d: %s", code, body)
		}
		clear(families)
		for _, line := range strings.Split(body, "\n") {
			if family, ok := strings.CutPrefix(line, "# TYPE "); ok {
				families[strings.Fields(family)[0]]++
			}
		}
		return families["apiserver_storage_size_bytes"] == 0, "apiserver_storage_size_bytes is there"
	})
	for _, want := range []string{"apiserver_request_total", "etcd_server_has_leader", "workqueue_adds_total", "go_goroutines"} {
		if families[want] == 0 {
			t.Errorf("%s is missing", want)
		}
	}
	for family, n := range families {
		if n > 1 {
			t.Errorf("%s appears %d times", family, n)
		}
	}
	anonymous := &rest.Config{Host: p.Loopback().Host, TLSClientConfig: rest.TLSClientConfig{CAData: p.CABundle, ServerName: "localhost"}}
	if _, code := get(t, anonymous, "/metrics"); code != http.StatusForbidden {
		t.Errorf("anonymous callers get %d", code)
	}
}

// get sends a GET for a path to a server. The server must answer.
func get(t *testing.T, config *rest.Config, path string) (string, int) {
	t.Helper()
	body, code, err := tryGet(t.Context(), config, path)
	if err != nil {
		t.Fatal(err)
	}
	return body, code
}

// tryGet sends one GET for a path to a server; the caller repeats it. A server that starts again
// does not answer for a moment. It may also have its new certificate before Ready reports it.
func tryGet(ctx context.Context, config *rest.Config, path string) (body string, code int, err error) {
	// Without a timeout, a missing answer would block the wait forever.
	ctx, cancel := context.WithTimeout(ctx, poll.Patience/5)
	defer cancel()
	return penstock.Get(ctx, config, path)
}

// TestKill kills the program and starts it again. Acknowledged writes survive, and the start waits
// for no lease or lock.
func TestKill(t *testing.T) {
	t.Parallel()
	c := borrow(t)
	program, dir := penstock.Build(t), dataDir(t)
	first := program.Serve(t, c, dir)
	c.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	first.Kill(t)

	begin := time.Now()
	second := program.Serve(t, c, dir)
	t.Logf("served again %s after the start", time.Since(begin))
	c.MustKubectl("get", "cer", "argocd-1")
	c.MustKubectl("get", "cer", "argocd-1", "--subresource=manifests", "-o", "name")

	if took := second.Stop(t); took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	}
	if log := second.Log(); strings.Contains(log, "use of closed network connection") {
		t.Errorf("a clean stop logs errors:\n%s", log)
	}
	storeProcess{c, t, program, dir}.run()
}
