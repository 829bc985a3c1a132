package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// manyExtensions is how many TestScale has.
const manyExtensions = 1000

// TestScale measures the overview of 1,000 extensions, of a cluster that answers at once: what
// is measured is the console and the browser. It is for make bench-console.
func TestScale(t *testing.T) {
	if os.Getenv("BENCH") != "console" {
		t.Skip("make bench-console runs it")
	}
	kubeconfig := manyRows(t)
	browser := startBrowser(t)
	console := serve(t, kubeconfig, asTyped)
	p := tab(t, browser, console)
	p.sees(fmt.Sprintf("All %d", manyExtensions))

	// Cold: again, in the same tab.
	var took struct{ First, Usable, Transferred float64 }
	p.run(chromedp.Reload())
	p.sees(fmt.Sprintf("All %d", manyExtensions))
	p.run(evaluate(`({First: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0, Usable: performance.now(),
		Transferred: performance.getEntriesByType("resource").reduce((sum, one) => sum + one.transferSize, 0)})`, &took))
	t.Logf("first paint %.0f ms, usable in %.0f ms at most (budget 1000); files %.0f bytes", took.First, took.Usable, took.Transferred)

	var key float64
	p.run(evaluate(`new Promise((done) => { const field = document.querySelector("[data-filter]"); const began = performance.now();
		field.value = "ext-077"; field.dispatchEvent(new Event("input", {bubbles: true}));
		const look = () => document.querySelectorAll("#extensions tbody tr").length === 10 ? done(performance.now() - began) : requestAnimationFrame(look); look() })`, &key))
	t.Logf("a key in the filter: %.0f ms (budget 50)", key)

	var heap float64
	p.run(evaluate(`performance.memory.usedJSHeapSize`, &heap))
	t.Logf("heap of the tab, before a collection: %.1f MB (budget 30)", heap/(1<<20))
	for what, over := range map[string]bool{"usable": took.Usable > 1000, "filter": key > 50, "heap": heap > 30<<20} {
		if over {
			t.Logf("OVER BUDGET: %s", what)
		}
	}
}

func evaluate(script string, into any) chromedp.Action {
	return chromedp.Evaluate(script, into, func(params *runtime.EvaluateParams) *runtime.EvaluateParams { return params.WithAwaitPromise(true) })
}

// manyRows is a cluster with many extensions, in which nothing happens.
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
