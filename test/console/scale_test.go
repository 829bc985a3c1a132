package console

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
)

// manyExtensions is the number of extensions of TestScale. Each has manyRevisions revisions.
const (
	manyExtensions = 1000
	manyRevisions  = 5
)

// TestScale measures the overview of 1,000 extensions with 5,000 revisions. First a fake cluster
// answers at once, to measure only the console and the browser. Then Penstock serves revisions that
// it has created. make bench SUITE=console runs it.
func TestScale(t *testing.T) {
	if os.Getenv("BENCH") != "console" {
		t.Skip("make bench SUITE=console runs it")
	}
	t.Run("Rows", func(t *testing.T) {
		measured(t, startBrowser(t), serve(t, manyRows(t), asTyped))
	})
	t.Run("Penstock", func(t *testing.T) {
		i := install(t, cluster.AllProcessors())
		i.manyRevisions()
		counted := newProxy(t, i.Config())
		console, pid := asProcess(t, counted.kubeconfig)
		before := counted.all()
		snapshot(t, console)
		t.Logf("opening the overview: %d requests to the host (budget 8)", counted.all()-before)
		opensCold(t, i.browser, console)
		measured(t, i.browser, console)
		within(t, "the process of the console", resident(t, pid, "VmHWM"), 64, fmt.Sprintf("%.0f MB resident, %.0f at its peak (budget 64)", resident(t, pid, "VmRSS"), resident(t, pid, "VmHWM")))
		p := tab(t, i.browser, console)
		p.sees(fmt.Sprintf("All %d", manyExtensions))
		before = counted.all()
		p.run(chromedp.Sleep(20 * time.Second)) // measure an idle page
		t.Logf("20 s of rest with an open page: %d requests to the host (budget 0)", counted.all()-before)
		i.opens(p, "#/timeline", "#happened tbody tr:nth-child(300)")
		i.opens(p, "#/ready", "#verdict")
		i.opens(p, "#/search?q=ext-0777", `#hits a[href="#/x/ext-0777"]`)
		p.goTo("#/")
		p.sees(fmt.Sprintf("All %d", manyExtensions))
		i.rowsThatChange(p)
		i.keptOpen(p, pid)
		i.objectsOf(p, 1000, 500)
		i.reviewOf(p, 46, 300)
		i.reviewOf(p, 1000, 800)
	})
}

// measured opens the overview cold, and uses it.
func measured(t *testing.T, browser context.Context, console *served) {
	p := tab(t, browser, console)
	p.sees(fmt.Sprintf("All %d", manyExtensions))
	var took struct{ First, Rows, Usable, Transferred float64 }
	var runs times
	for range 5 {
		p.run(chromedp.Reload())
		p.sees(fmt.Sprintf("All %d", manyExtensions))
		p.run(evaluate(`({First: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0, Usable: performance.now(),
			Transferred: performance.getEntriesByType("resource").reduce((sum, one) => sum + one.transferSize, 0)})`, &took))
		runs = append(runs, took.Usable)
	}
	within(t, "usable, with files that the browser has", runs.median(), 1000, fmt.Sprintf("%s (budget 1000); first paint %.0f ms (budget 500), files %.0f bytes", runs, took.First, took.Transferred))

	var key float64
	p.run(evaluate(`new Promise((done) => { const field = document.querySelector("[data-filter]"); const began = performance.now();
		field.value = "ext-077"; field.dispatchEvent(new Event("input", {bubbles: true}));
		const look = () => document.querySelectorAll("#extensions tbody tr").length === 10 ? done(performance.now() - began) : requestAnimationFrame(look); look() })`, &key))
	within(t, "a key in the filter", key, 50, fmt.Sprintf("%.0f ms (budget 50)", key))
	p.run(clear("[data-filter]"))

	heap, nodes := p.holds()
	within(t, "heap of the tab, after a collection", heap, 30, fmt.Sprintf("%.1f MB, %d nodes (budget 30)", heap, nodes))
}

// snapshot measures the size of the overview's first data.
func snapshot(t *testing.T, console *served) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, console.Origin+"/api/watch/overview", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+console.Key)
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	request.Header.Set("Accept-Encoding", "gzip")
	began := time.Now()
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if encoding := answer.Header.Get("Content-Encoding"); encoding != "gzip" {
		t.Errorf("the snapshot is %q", encoding)
	}
	wire := &counted{from: answer.Body}
	plain, err := gzip.NewReader(wire)
	if err != nil {
		t.Fatal(err)
	}
	lines, size := bufio.NewReader(plain), 0
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		size += len(line)
		if strings.Contains(line, `"kind":"synced"`) {
			break
		}
	}
	within(t, "the snapshot", float64(wire.bytes), 60_000, fmt.Sprintf("%d bytes, of %d (budget 60000), in %s", wire.bytes, size, time.Since(began).Round(time.Millisecond)))
}

// counted counts the bytes read.
type counted struct {
	from  io.Reader
	bytes int
}

func (c *counted) Read(into []byte) (int, error) {
	n, err := c.from.Read(into)
	c.bytes += n
	return n, err
}

// asProcess runs the console as the released program does.
func asProcess(t *testing.T, kubeconfig string) (*served, int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubectl-penstock")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "github.com/penstock-project/penstock/cmd/kubectl-penstock")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, out)
	}
	process := penstock.Start(t, exec.Command(path, "console", "--no-browser", "--kubeconfig", kubeconfig))
	process.Await(t, "#key=")
	process.Await(t, "interrupt to end it")
	for line := range strings.Lines(process.Log()) {
		if origin, key, found := strings.Cut(strings.TrimSpace(line), "/#key="); found {
			return &served{Address: strings.TrimSpace(line), Origin: origin, Key: key, Stop: func() { process.Kill(t) }}, process.Pid()
		}
	}
	t.Fatalf("no address with a key: %s", process.Log())
	return nil, 0
}

// resident returns a memory size of a process from /proc, in MB.
func resident(t *testing.T, pid int, field string) float64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, found := strings.CutPrefix(line, field+":"); found {
			kilobytes := 0.0
			if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
				t.Fatal(err)
			}
			return kilobytes / 1024
		}
	}
	t.Fatalf("no %s of process %d", field, pid)
	return 0
}

// manyRevisions creates the revisions. All but the newest revision of each extension are archived.
// One in twenty of the newest is active, and the rest are paused.
func (i *installation) manyRevisions() {
	i.t.Helper()
	i.create(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": "many"}})
	revisions := i.revisionsOf()
	began := time.Now()
	i.atATime(manyExtensions, func(n int) error {
		for number := 1; number <= manyRevisions; number++ {
			name := fmt.Sprintf("ext-%04d", n)
			one := revision{extension: name, number: number, version: fmt.Sprintf("1.%d.0", number), state: "Archived", phases: []phase{{"all", []object{configMap("many", name, "number", fmt.Sprint(number))}}}}
			if number == manyRevisions {
				one.state = "Paused"
				if n%20 == 0 {
					one.state = "Active"
				}
			}
			if _, err := revisions.Create(i.t.Context(), &unstructured.Unstructured{Object: one.object()}, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("%s-%d: %w", name, number, err)
			}
		}
		return nil
	})
	i.t.Logf("%d revisions created in %s", manyExtensions*manyRevisions, time.Since(began).Round(time.Second))
}

// revisionsOf returns a client without a rate limit.
func (i *installation) revisionsOf() dynamic.ResourceInterface {
	i.t.Helper()
	config := i.Config()
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		i.t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "olm.operatorframework.io", Version: "v1alpha1", Resource: "clusterextensionrevisions"})
}

// atATime calls do this many times, from 8 workers.
func (i *installation) atATime(times int, do func(n int) error) {
	i.t.Helper()
	failed := make(chan error, times)
	workqueue.ParallelizeUntil(i.t.Context(), 8, times, func(n int) {
		if err := do(n); err != nil {
			failed <- err
		}
	})
	select {
	case err := <-failed:
		i.t.Fatal(err)
	default:
	}
}

// opens measures the time until a screen over all extensions shows an element.
func (i *installation) opens(p *page, place, there string) {
	i.t.Helper()
	var runs times
	for range 5 {
		p.goTo("#/me")
		p.sees("Your rights")
		took := 0.0
		p.run(evaluate(fmt.Sprintf(`new Promise((done) => { const began = performance.now(); location.hash = %s;
			const look = () => document.querySelector(%s) ? done(performance.now() - began) : requestAnimationFrame(look); look() })`, quoted(place), quoted(there)), &took))
		runs = append(runs, took)
	}
	said := fmt.Sprintf("%s (budget 1000)", runs) // formatting sorts the runs
	within(i.t, place, runs.median(), 1000, said)
}

// rowsThatChange changes rows as fast as the cluster accepts changes, and measures how long the
// page blocks.
func (i *installation) rowsThatChange(p *page) {
	i.t.Helper()
	revisions := i.revisionsOf()
	p.run(chromedp.Evaluate(`globalThis.held = []; new PerformanceObserver((list) => { for (const one of list.getEntries()) held.push(one.duration) }).observe({type: "longtask", buffered: false})`, nil))
	began := time.Now()
	const changes = 300
	i.atATime(changes, func(n int) error {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"olm.operatorframework.io/bundle-version":"2.%d.0"}}}`, n)
		_, err := revisions.Patch(i.t.Context(), fmt.Sprintf("ext-%04d-%d", n+1, manyRevisions), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
	took := time.Since(began)
	p.sees(fmt.Sprintf("2.%d.0", 150))
	var longest, count float64
	p.run(chromedp.Evaluate(`Math.max(0, ...held)`, &longest), chromedp.Evaluate(`held.length`, &count))
	i.t.Logf("%.0f changed rows a second: %.0f tasks of the page over 50 ms, the longest %.0f ms (budget none)", changes/took.Seconds(), count, longest)
}

func evaluate(script string, into any) chromedp.Action {
	return chromedp.Evaluate(script, into, func(params *runtime.EvaluateParams) *runtime.EvaluateParams { return params.WithAwaitPromise(true) })
}

// manyRows is a cluster with many extensions and no changes.
func manyRows(t *testing.T) (kubeconfig string) {
	t.Helper()
	at := time.Now().UTC().Format(time.RFC3339)
	var items []any
	for n := range manyExtensions {
		name := fmt.Sprintf("ext-%04d", n)
		condition := object{"type": "Available", "status": "True", "reason": "Available", "message": "all objects are available", "lastTransitionTime": at}
		if n%50 == 0 {
			condition = object{"type": "Failing", "status": "True", "reason": "Collision", "message": "ConfigMap default/x belongs to somebody else", "lastTransitionTime": at}
		}
		items = append(items, object{"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtensionRevision",
			"metadata": object{"name": name + "-5", "uid": name, "generation": 1, "resourceVersion": "5", "creationTimestamp": at, "labels": object{"penstock.dev/chain": name}},
			"spec":     object{"revision": 5, "lifecycleState": "Active", "phases": []any{object{"name": "all", "objects": []any{object{"name": "x"}}}}},
			"status": object{"observedGeneration": 1, "conditions": []any{condition, object{"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": at},
				object{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": at}}, "phases": []any{object{"name": "all", "state": "Available", "objects": 1, "available": 1}}}})
	}
	lists := map[string]object{
		"/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions": {"kind": "ClusterExtensionRevisionList", "apiVersion": "olm.operatorframework.io/v1alpha1", "metadata": object{"resourceVersion": "5"}, "items": items},
		"/apis/hco.kubevirt.io/v1alpha1/configurationplans":                 {"kind": "ConfigurationPlanList", "apiVersion": "hco.kubevirt.io/v1alpha1", "metadata": object{"resourceVersion": "5"}, "items": []any{}},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		list, known := lists[r.URL.Path]
		switch {
		case !known:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not found"})
		case r.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			_ = json.NewEncoder(w).Encode(list)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: many, clusters: [{name: x, cluster: {server: %q}}], contexts: [{name: many, context: {cluster: x, user: ""}}]}`, server.URL)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
