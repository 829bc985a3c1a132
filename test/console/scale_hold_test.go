package console

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// times are durations in milliseconds.
type times []float64

func (t times) String() string {
	slices.Sort(t)
	return fmt.Sprintf("%.0f ms, median of %d, %.0f to %.0f", t.median(), len(t), t[0], t[len(t)-1])
}

func (t times) median() float64 { return t[len(t)/2] }

// within logs a measured value, and logs if it exceeds the budget.
func within(t *testing.T, what string, measured, budget float64, said string) {
	t.Helper()
	t.Logf("%s: %s", what, said)
	if measured > budget {
		t.Logf("OVER BUDGET: %s: %.1f, budget %.1f", what, measured, budget)
	}
}

// opensCold opens the overview in new tabs without a cache.
func opensCold(t *testing.T, browser context.Context, console *served) {
	var first, usable times
	for range 5 {
		p := blank(t, browser, console)
		p.run(network.SetCacheDisabled(true), chromedp.Navigate(console.Address))
		p.sees(fmt.Sprintf("All %d", manyExtensions))
		var took struct{ First, Usable float64 }
		p.run(evaluate(`({First: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0, Usable: performance.now()})`, &took))
		first, usable = append(first, took.First), append(usable, took.Usable)
		// An open page keeps a connection. A browser allows six connections per server.
		p.run(chromedp.Navigate("about:blank"))
	}
	within(t, "cold load, first paint", first.median(), 500, first.String()+" (budget 500)")
	within(t, "cold load, usable", usable.median(), 1000, usable.String()+" (budget 1000)")
}

// reviewOf measures the review of a revision that changes this number of objects. One change has a
// note.
func (i *installation) reviewOf(p *page, objects int, budget float64) {
	i.t.Helper()
	name := fmt.Sprintf("review-%d", objects)
	for number := 1; number <= 2; number++ {
		content := []object{deployment("many", name, fmt.Sprintf("registry.example.com/%s:%d", name, number), "")}
		for n := 1; n < objects; n++ {
			content = append(content, configMap("many", fmt.Sprintf("%s-%04d", name, n), "number", fmt.Sprint(number), "same", strings.Repeat("text ", 40)))
		}
		i.create(revision{extension: name, number: number, state: "Paused", phases: []phase{{"all", content}}}.object())
	}
	place := fmt.Sprintf("#/diff/%s-1..%s-2", name, name)
	open := fmt.Sprintf(`new Promise((done) => { const began = performance.now(); location.hash = %q;
		const look = () => document.querySelector(".notes li") && document.querySelectorAll(".objects > li").length === %d ? requestAnimationFrame(() => done(performance.now() - began)) : requestAnimationFrame(look); look() })`, place, objects)
	var took times
	for range 5 {
		p.goTo("#/me")
		p.sees("Your rights")
		ms := 0.0
		p.run(evaluate(open, &ms))
		took = append(took, ms)
	}
	within(i.t, fmt.Sprintf("review of %d objects, until it can be read", objects), took.median(), budget, fmt.Sprintf("%s (budget %.0f)", took, budget))
	p.click(".objects summary")
	p.has(".unified, .fields")
	heap, nodes := p.holds()
	within(i.t, fmt.Sprintf("review of %d objects, heap of the tab", objects), heap, 30, fmt.Sprintf("%.1f MB, %d nodes (budget 30)", heap, nodes))
}

// objectsOf measures an extension with this number of objects. One object has this number of Pods.
func (i *installation) objectsOf(p *page, objects, pods int) {
	i.t.Helper()
	large := deployment("many", "large", "registry.example.com/large:1", "")
	large["spec"].(object)["replicas"] = pods
	content := make([]object, objects-1)
	for n := range content {
		content[n] = configMap("many", fmt.Sprintf("large-%04d", n), "number", fmt.Sprint(n))
	}
	i.roll("Succeeded", revision{extension: "large", number: 1, version: "1.0.0", phases: []phase{{"deploy", []object{large}}, {"all", content}}})
	var took times
	for range 5 {
		p.goTo("#/x/large")
		p.run(chromedp.Reload())
		p.has("#objects")
		ms := 0.0
		p.run(evaluate(`new Promise((done) => { const began = performance.now(); document.querySelector("#objects").click();
			const look = () => document.querySelector("#tree") && document.querySelector("#now a[href^='#/pod/']") ? requestAnimationFrame(() => done(performance.now() - began)) : requestAnimationFrame(look); look() })`, &ms))
		took = append(took, ms)
	}
	what := fmt.Sprintf("an extension with %d objects and %d Pods", objects, pods)
	i.t.Logf("%s, until they are shown: %s", what, took)
	heap, nodes := p.holds()
	within(i.t, what+", heap of the tab", heap, 30, fmt.Sprintf("%.1f MB, %d nodes (budget 30)", heap, nodes))
}

// holds returns the tab's heap in MB after garbage collection, and its number of DOM nodes.
func (p *page) holds() (heap float64, nodes int64) {
	p.t.Helper()
	bytes := 0.0
	p.run(heapprofiler.Enable(), heapprofiler.CollectGarbage(), evaluate(`performance.memory.usedJSHeapSize`, &bytes), chromedp.ActionFunc(func(ctx context.Context) error {
		var err error
		_, nodes, _, err = memory.GetDOMCounters().Do(ctx)
		return err
	}))
	return bytes / (1 << 20), nodes
}

// samples is the number of memory readings while a page is open.
const samples = 10

// keptOpen keeps a page open for an hour with FULL=1, otherwise for two minutes. Rows change twice
// a second, and a user switches screens. The memory of the page and of the process does not grow.
func (i *installation) keptOpen(p *page, pid int) {
	i.t.Helper()
	whole := 2 * time.Minute
	if os.Getenv("FULL") == "1" {
		whole = time.Hour
	}
	revisions := i.revisionsOf()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	places := []struct{ place, shows string }{
		{"#/x/ext-0020", "History"}, {"#/diff/..ext-0020-5", "Objects"}, {"#/packages", "Catalog"}, {"#/profiles", "HighDensitySwap"}, {"#/", fmt.Sprintf("All %d", manyExtensions)},
	}
	var heaps, residents []float64
	var nodes []int64
	began := time.Now()
	for changes, sample := 0, 1; sample <= samples; sample++ {
		for time.Since(began) < whole*time.Duration(sample)/samples {
			<-tick.C
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"olm.operatorframework.io/bundle-version":"3.%d.0"}}}`, changes)
			if _, err := revisions.Patch(i.t.Context(), fmt.Sprintf("ext-%04d-%d", changes%manyExtensions, manyRevisions), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				i.t.Fatal(err)
			}
			changes++
			if changes%4 == 0 {
				next := places[changes/4%len(places)]
				p.goTo(next.place)
				p.sees(next.shows)
			}
		}
		p.goTo("#/")
		p.sees(fmt.Sprintf("All %d", manyExtensions))
		heap, kept := p.holds()
		heaps, nodes, residents = append(heaps, heap), append(nodes, kept), append(residents, resident(i.t, pid, "VmRSS"))
	}
	i.t.Logf("open for %s, with 2 changed rows a second: heap of the tab in MB %.1f, nodes %d, process in MB resident %.0f", whole, heaps, nodes, residents)
	half := samples / 2
	within(i.t, "heap of the tab at the end", heaps[samples-1], 30, fmt.Sprintf("%.1f MB (budget 30), %.2f times that of half the time (flat)", heaps[samples-1], heaps[samples-1]/heaps[half]))
	within(i.t, "process at the end", residents[samples-1], 64, fmt.Sprintf("%.0f MB (budget 64), %.2f times that of half the time (flat)", residents[samples-1], residents[samples-1]/residents[half]))
	within(i.t, "nodes of the page, end to half", float64(nodes[samples-1])/float64(nodes[half]), 1.1, fmt.Sprintf("%.2f times", float64(nodes[samples-1])/float64(nodes[half])))
}
