//go:build integration

package chartkind_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// maxHeap limits the memory of a custom resource with its revision and its watched objects, in
// bytes. It is only checked for many resources, because the rest of the process dominates
// otherwise.
const maxHeap = 128 << 10

// scale tests the seventh consideration of the design. While the workloads of many custom resources
// flap, each status is written at most once per change of its workload, and no chart is rendered.
// FULL=1 uses 500 custom resources for two minutes.
func scale(w shared) {
	count, during := 10, 3*time.Second
	if os.Getenv("FULL") == "1" {
		count, during = 500, 2*time.Minute
	}
	before := w.heap()
	began := time.Now()
	w.makeSecured(count)
	w.awaitSecured(count)
	took := time.Since(began)
	each := (w.heap() - before) / int64(count)
	w.t.Logf("%d custom resources were installed after %s; the process has %d KiB more for each", count, took.Round(time.Second), each>>10)
	if count >= 100 && each > maxHeap {
		w.t.Errorf("a custom resource has %d KiB of memory, and may have %d", each>>10, maxHeap>>10)
	}

	changes := w.watchSensors()
	mark, renders := w.Audit().Mark(), strings.Count(w.server.Log(), `"Rendering a chart" extension="secured-scale`)
	flaps := w.flap(count, during)
	w.awaitSecured(count)
	ours := func(r plane.Request) bool { return strings.HasPrefix(r.Namespace, "scale-") }
	written := func(manager string) plane.Requests {
		return w.Audit().Since(mark, plane.ByUser(operator), plane.ByVerb("patch"), ours, func(r plane.Request) bool {
			return r.Subresource == "status" && strings.Contains(r.URI, "fieldManager="+manager+"&")
		})
	}
	// The writes are counted after both watches have reported the final state.
	most, writes := changes.settled(w), written("penstock-chartkinds-status")
	per := map[string]int{}
	for _, r := range writes {
		per[r.Namespace]++
	}
	for namespace, n := range per {
		if n > most[namespace] {
			w.t.Errorf("%s: %d changes of its workload took %d writes of its status", namespace, most[namespace], n)
		}
	}
	if len(writes) == 0 {
		w.t.Error("nothing was told")
	}
	if n := strings.Count(w.server.Log(), `"Rendering a chart" extension="secured-scale`) - renders; n != 0 {
		w.t.Errorf("%d renderings", n)
	}
	if passes := written("penstock-chartkinds"); len(passes) != 0 {
		w.t.Errorf("the loop of revisions wrote:\n%s", passes)
	}
	total := 0
	for _, n := range most {
		total += n
	}
	// All requests for these custom resources, by any user.
	requests := w.Audit().Since(mark, plane.ByAgent("penstock/"), plane.Not(plane.ByVerb("watch")), func(r plane.Request) bool {
		return ours(r) || strings.Contains(r.URI, "secured-scale-")
	})
	w.t.Logf("%d times somebody scaled a workload: %d changes of workloads, %d writes of status; requests: %s", flaps, total, len(writes), counted(requests))
	// The status writes were checked above; the last of them may come later.
	if others := requests.Where(plane.ByUser(operator), func(r plane.Request) bool { return r.Subresource != "status" }); len(others) != 0 {
		w.t.Errorf("other requests of the ServiceAccount than writes of status:\n%s", others)
	}
	// A change of a revision's object makes the engine read it once.
	if looks := requests.Where(plane.ByVerb("get"), plane.ByResource("deployments")); len(looks) > flaps {
		w.t.Errorf("the engine read %d times what was changed %d times", len(looks), flaps)
	}
}

func counted(requests plane.Requests) string {
	kinds := map[string]int{}
	for _, r := range requests {
		kinds[strings.TrimSuffix(fmt.Sprintf("%s %s/%s", r.Verb, r.Resource, r.Subresource), "/")]++
	}
	var all []string
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, fmt.Sprintf("%d %s", kinds[kind], kind))
	}
	return strings.Join(all, ", ")
}

// heap returns the size of the process's heap in bytes, after a garbage collection.
func (w shared) heap() int64 {
	w.t.Helper()
	profile := w.server.Fetch(w.t, w.Config(), "/debug/pprof/heap?gc=1&debug=1")
	_, after, _ := strings.Cut(profile, "\n# HeapAlloc = ")
	var size int64
	if _, err := fmt.Sscan(after, &size); err != nil {
		w.t.Fatalf("the profile does not say how large the heap is: %v", err)
	}
	return size
}

func (w shared) makeSecured(count int) {
	w.t.Helper()
	var all strings.Builder
	for i := range count {
		fmt.Fprintf(&all, "---\n{apiVersion: v1, kind: Namespace, metadata: {name: scale-%[1]d}}\n---\n{apiVersion: platform.stackrox.io/v1alpha1, kind: SecuredCluster, metadata: {name: edge, namespace: scale-%[1]d}, spec: {clusterName: edge-%[1]d}}\n", i)
	}
	w.MustKubectlInput(all.String(), "create", "-f", "-")
}

func (w shared) awaitSecured(count int) {
	w.t.Helper()
	deadline := time.After(poll.Patience + time.Duration(count)*time.Second)
	left := map[string]bool{}
	for i := range count {
		left[fmt.Sprintf("scale-%d", i)] = true
	}
	var mu sync.Mutex
	done := make(chan struct{}, 1)
	look := func(object any) {
		found, ok := object.(*unstructured.Unstructured)
		if !ok || !strings.HasPrefix(found.GetNamespace(), "scale-") {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if delete(left, found.GetNamespace()); !settled(found) {
			left[found.GetNamespace()] = true
		}
		if len(left) == 0 {
			select {
			case done <- struct{}{}:
			default:
			}
		}
	}
	stop := make(chan struct{})
	defer close(stop)
	informer := cache.NewSharedIndexInformer(objectwatch.Source(w.host, w.host.Resource(secured), ""), &unstructured.Unstructured{}, 0, cache.Indexers{})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, now any) { look(now) }})
	go informer.Run(stop)
	select {
	case <-done:
	case <-deadline:
		mu.Lock()
		defer mu.Unlock()
		w.t.Fatalf("%d of %d are not ready: %v", len(left), count, left)
	}
}

// changes counts the changes of workloads' availability, by namespace.
type changes struct {
	mu    sync.Mutex
	state map[string]string
	count map[string]int
	told  chan struct{}
}

// watchSensors counts the distinct successive states of the SecuredClusters' Deployments that a
// status can report.
func (w shared) watchSensors() *changes {
	w.t.Helper()
	c := &changes{state: map[string]string{}, count: map[string]int{}, told: make(chan struct{}, 1)}
	note := func(object any) {
		found, ok := object.(*unstructured.Unstructured)
		if !ok || !strings.HasPrefix(found.GetNamespace(), "scale-") {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		before, known := c.state[found.GetNamespace()]
		now := stateOf(found)
		if c.state[found.GetNamespace()] = now; known && now != before {
			c.count[found.GetNamespace()]++
		}
		select {
		case c.told <- struct{}{}:
		default:
		}
	}
	stop := make(chan struct{})
	w.t.Cleanup(func() { close(stop) })
	informer := cache.NewSharedIndexInformer(objectwatch.Source(w.host, w.host.Resource(deployments), ""), &unstructured.Unstructured{}, 0, cache.Indexers{})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, now any) { note(now) }})
	go informer.Run(stop)
	if !cache.WaitForCacheSync(w.t.Context().Done(), informer.HasSynced) {
		w.t.Fatal("the Deployments are not known")
	}
	return c
}

func stateOf(deployment *unstructured.Unstructured) string {
	replicas, _, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	seen, _, _ := unstructured.NestedInt64(deployment.Object, "status", "observedGeneration")
	switch {
	case replicas == 0:
		return "zero"
	case seen < deployment.GetGeneration() || conditionOf(deployment, "Available", "True", "") == nil:
		return "not available"
	}
	return "available"
}

// settled waits until all workloads are available again, and returns the counts.
func (c *changes) settled(w shared) map[string]int {
	w.t.Helper()
	deadline := time.After(poll.Patience)
	for {
		c.mu.Lock()
		done := true
		for _, state := range c.state {
			done = done && state == "available"
		}
		out := map[string]int{}
		for namespace, n := range c.count {
			out[namespace] = n
		}
		c.mu.Unlock()
		if done {
			return out
		}
		select {
		case <-c.told:
		case <-deadline:
			w.t.Fatalf("workloads are not available again: %v", c.state)
		}
	}
}

// flap scales random workloads to zero and back, and all of them back at the end. It returns the
// number of scalings.
func (w shared) flap(count int, during time.Duration) int {
	w.t.Helper()
	times, up := 0, make([]bool, count)
	scaled := func(i, replicas int) {
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
		if _, err := w.host.Resource(deployments).Namespace(fmt.Sprintf("scale-%d", i)).Patch(w.t.Context(), "sensor", types.MergePatchType, patch, metav1.PatchOptions{}, "scale"); err != nil {
			w.t.Errorf("flapping: %v", err)
		}
		times, up[i] = times+1, replicas > 0
	}
	for i := range up {
		up[i] = true
	}
	tick := time.NewTicker(during / time.Duration(6*count))
	defer tick.Stop()
	for end := time.Now().Add(during); time.Now().Before(end); <-tick.C {
		i := rand.IntN(count)
		scaled(i, map[bool]int{true: 0, false: 1}[up[i]])
	}
	for i := range up {
		if !up[i] {
			scaled(i, 1)
		}
	}
	return times
}
