package rollout

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/penstock"
)

const (
	// targetObjects is the number of objects per target, each of another kind.
	targetObjects = 4
	// targetBudget limits the memory of an idle target, in MB.
	targetBudget = 1
)

// TestTargets measures the cost of each additional target cluster. Extensions are rolled out to one
// target, and then the same number to one target each. The difference is the cost of the targets.
// All targets are one kube-apiserver, which a proxy presents as many clusters.
func TestTargets(t *testing.T) {
	if os.Getenv("BENCH") != "targets" {
		t.Skip("a benchmark that takes minutes: run it by `make bench SUITE=targets`")
	}
	counts := targetCounts(t)
	b := &bench{report: &measure.Report{}, program: penstock.Build(t), began: time.Now()}
	fmt.Println(measure.Machine(b.began))
	for _, n := range counts {
		var shared, apart targetCost
		ok := t.Run(fmt.Sprintf("%d/Shared", n), func(t *testing.T) { shared = b.targets(t, n, 1) })
		if ok && n > 1 {
			ok = t.Run(fmt.Sprintf("%d/Apart", n), func(t *testing.T) { apart = b.targets(t, n, n) })
		}
		if !ok {
			t.FailNow()
		}
		if n > 1 {
			b.compareTargets(n, shared, apart)
		}
	}
	fmt.Printf("\n%s, in %s\n", measure.Machine(time.Now()), time.Since(b.began).Round(time.Second))
	if err := b.report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// targetCounts returns the numbers of targets to measure: TARGETS, or 1, 10 and 100, and 1,000 with
// FULL=1.
func targetCounts(t *testing.T) []int {
	t.Helper()
	if text := os.Getenv("TARGETS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("TARGETS is %q, want a number of 1 or more", text)
		}
		return []int{n}
	}
	switch os.Getenv("FULL") {
	case "0":
		return []int{1, 10}
	case "1":
		return []int{1, 10, 100, 1000}
	default:
		return []int{1, 10, 100}
	}
}

type targetCost struct {
	rest, peak           uint64 // bytes
	connections, watches int64
	// restRequests is the number of requests at rest.
	restRequests              int64
	installCPU, upgradeCPU    time.Duration
	restCPU                   time.Duration
	installRequests, upgraded int64
}

func (b *bench) targets(t *testing.T, extensions, targets int) targetCost {
	w := newCasePlane(t, 0)
	o := startOurs(w, b.program, nameOurs, false)
	clusters := serveClusters(t, w.config)
	o.targets = map[string]string{}
	paths := map[string]string{}
	for n := range extensions {
		name := fmt.Sprintf("fleet-%04d", n)
		o.targets[name] = "all"
		if targets > 1 {
			o.targets[name] = name
		}
		paths[o.targets[name]] = o.targets[name]
	}
	clusters.secrets(w, paths)
	releases := func(image string) []release {
		var all []release
		for n := range extensions {
			all = append(all, smallRelease(fmt.Sprintf("fleet-%04d", n), targetObjects, image, "1"))
		}
		return all
	}
	w.namespaces(releases("1"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()

	var cost targetCost
	rollOut := func(image string) (time.Duration, int64, uint64) {
		b.say("%d extensions, %d targets: version %s", extensions, targets, image)
		before, requests := b.cpu(o), clusters.requests.Load()
		peak := watchPeak(o.server.Pid())
		_, err := o.apply(ctx, releases(image))
		most := peak()
		if err != nil {
			t.Fatalf("%v\n%s", err, o.server.Complaints())
		}
		return b.cpu(o) - before, clusters.requests.Load() - requests, most
	}
	cost.installCPU, cost.installRequests, _ = rollOut("1")
	b.resident(w, o, idleness{extensions: extensions, objects: targetObjects, revisions: 1}, fmt.Sprintf("%d targets, installed", targets), measure.Memory{})
	cost.upgradeCPU, cost.upgraded, cost.peak = rollOut("2")
	rested := b.resident(w, o, idleness{extensions: extensions, objects: targetObjects, revisions: 2}, fmt.Sprintf("%d targets, at rest", targets), measure.Memory{})
	cost.rest, cost.connections, cost.watches = rested.Anon, clusters.connections.Load(), clusters.watches.Load()
	before, requests := b.cpu(o), clusters.requests.Load()
	<-time.After(30 * time.Second)
	cost.restCPU, cost.restRequests = b.cpu(o)-before, clusters.requests.Load()-requests
	b.report.Table("Extensions of 4 objects in target clusters", "extensions", "targets", "heap and stacks at rest, MB", "peak of an upgrade, MB",
		"connections", "watches", "requests of an install", "of an upgrade", "in 30 s of rest", "CPU s of an install", "of an upgrade", "of 30 s of rest").
		Row(fmt.Sprint(extensions), fmt.Sprint(targets), fmt.Sprintf("%.1f", measure.MB(cost.rest)), fmt.Sprintf("%.1f", measure.MB(cost.peak)),
			fmt.Sprint(cost.connections), fmt.Sprint(cost.watches), fmt.Sprint(cost.installRequests), fmt.Sprint(cost.upgraded), fmt.Sprint(cost.restRequests),
			fmt.Sprintf("%.2f", cost.installCPU.Seconds()), fmt.Sprintf("%.2f", cost.upgradeCPU.Seconds()), fmt.Sprintf("%.2f", cost.restCPU.Seconds()))
	b.say("%d extensions, %d targets: %.1f MB at rest, %.1f at the peak, %d connections, %d watches", extensions, targets, measure.MB(cost.rest), measure.MB(cost.peak), cost.connections, cost.watches)
	return cost
}

func (b *bench) cpu(o *ours) time.Duration {
	o.w.t.Helper()
	used, err := measure.CPUOf(o.server.Pid())
	if err != nil {
		o.w.t.Fatal(err)
	}
	return used
}

func (b *bench) compareTargets(n int, shared, apart targetCost) {
	further := float64(n - 1)
	memory := (measure.MB(apart.rest) - measure.MB(shared.rest)) / further
	b.report.Table("Each further target", "targets", "memory at rest, MB", "more at the peak of an upgrade, MB", "connections", "watches",
		"requests of an install", "CPU of an install, times", "CPU of an upgrade, times").
		Row(fmt.Sprint(n), fmt.Sprintf("%.2f", memory), fmt.Sprintf("%.2f", (measure.MB(apart.peak)-measure.MB(shared.peak))/further),
			fmt.Sprintf("%.1f", float64(apart.connections-shared.connections)/further), fmt.Sprintf("%.1f", float64(apart.watches-shared.watches)/further),
			fmt.Sprintf("%.1f", float64(apart.installRequests-shared.installRequests)/further),
			fmt.Sprintf("%.1f", float64(apart.installCPU)/float64(shared.installCPU)), fmt.Sprintf("%.1f", float64(apart.upgradeCPU)/float64(shared.upgradeCPU)))
	if n >= 100 { // for few targets, the variation between measurements exceeds their memory
		b.report.AtMost(fmt.Sprintf("memory of each of %d targets at rest", n), targetBudget, memory, "MB")
	}
}

// clusters presents one kube-apiserver as many clusters, by the first segment of the path. In
// cluster fleet-0001, a watch by label returns the objects of the extension fleet-0001. Every
// cluster has its own uid. The cluster all has the objects of all extensions.
type clusters struct {
	server                         *httptest.Server
	connections, watches, requests atomic.Int64
}

func serveClusters(t *testing.T, config *rest.Config) *clusters {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	c := &clusters{}
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			cluster, path, _ := strings.Cut(strings.TrimPrefix(r.In.URL.Path, "/"), "/")
			r.SetURL(host)
			r.Out.URL.Path, r.Out.URL.RawPath = "/"+path, ""
			r.Out.Header.Del("Authorization")
			query := r.Out.URL.Query()
			if selector := query.Get("labelSelector"); selector != "" && cluster != "all" {
				query.Set("labelSelector", selector+","+olmv1alpha1.ChainLabel+"="+cluster)
				r.Out.URL.RawQuery = query.Encode()
			}
		},
	}
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		c.requests.Add(1)
		cluster, path, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
		if path == "api/v1/namespaces/kube-system" {
			response.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(response, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"uid-of-%s"}}`, cluster)
			return
		}
		if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
			c.watches.Add(1)
			defer c.watches.Add(-1)
		}
		proxy.ServeHTTP(response, request)
	}))
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	c.server.Config.ConnState = func(connection net.Conn, state http.ConnState) {
		mu.Lock()
		defer mu.Unlock()
		switch state {
		case http.StateNew:
			open[connection] = true
		case http.StateClosed, http.StateHijacked:
			delete(open, connection)
		}
		c.connections.Store(int64(len(open)))
	}
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	c.server.EnableHTTP2 = true
	c.server.StartTLS()
	// Penstock outlives this server and retries, so open connections are closed.
	t.Cleanup(func() { _ = c.server.Config.Close() })
	return c
}

// secrets creates Secrets in Penstock's namespace, each with the kubeconfig of a cluster.
func (c *clusters) secrets(w *casePlane, clusterOf map[string]string) {
	w.t.Helper()
	config := rest.CopyConfig(w.config)
	config.UserAgent, config.QPS = "bench", -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	group, ctx := errgroup.WithContext(w.t.Context())
	group.SetLimit(writers)
	for secret, cluster := range clusterOf {
		kubeconfig := encoded(map[string]any{
			"apiVersion": "v1", "kind": "Config", "current-context": "c",
			"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "u"}}},
			"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": c.server.URL + "/" + cluster, "certificate-authority-data": authority}}},
			"users":    []any{map[string]any{"name": "u", "user": map[string]any{"token": "bench"}}},
		})
		group.Go(func() error {
			_, err := client.CoreV1().Secrets("penstock-system").Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: secret}, Data: map[string][]byte{olmv1alpha1.TargetKey: kubeconfig},
			}, metav1.CreateOptions{})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		w.t.Fatal(err)
	}
}
