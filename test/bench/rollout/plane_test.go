package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/cable"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/plane"
)

const (
	patience = 10 * time.Minute
	// settling is the wait after a step, because processor time after the reported end counts, too.
	settling = 300 * time.Millisecond
)

// heldPrefix is the name prefix of Deployments that do not become available automatically.
const heldPrefix = "held-"

type casePlane struct {
	t       *testing.T
	cluster *cluster.Cluster
	// kubeconfig and config connect to the cluster with the round trip of the case.
	kubeconfig string
	config     *rest.Config
	// near connects without the round trip, for requests that are not measured.
	near      dynamic.Interface
	apiserver int
}

func newCasePlane(t *testing.T, roundTrip time.Duration) *casePlane {
	t.Helper()
	if err := measure.WithoutHugePages(); err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.AllProcessors())
	w := &casePlane{t: t, cluster: c, kubeconfig: c.Kubeconfig(), config: c.Config()}
	config := c.Config()
	config.UserAgent = "bench"
	var err error
	if w.near, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if w.apiserver, err = c.Plane().Pid("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	if roundTrip > 0 {
		w.moveAway(roundTrip)
	}
	w.runWorkloads(deployments())
	w.warmUp()
	return w
}

// moveAway adds a round trip between the cluster and the measured code.
func (w *casePlane) moveAway(roundTrip time.Duration) {
	w.t.Helper()
	file, err := clientcmd.LoadFromFile(w.kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range file.Clusters {
		address, err := url.Parse(c.Server)
		if err != nil {
			w.t.Fatal(err)
		}
		way := cable.New(w.t, address.Host)
		way.Far(w.t, roundTrip)
		c.Server = "https://" + way.Address()
		w.config.Host = c.Server
	}
	w.kubeconfig = filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, w.kubeconfig); err != nil {
		w.t.Fatal(err)
	}
}

func deployments() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
}

func namespaces() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
}

// runWorkloads makes every workload of a resource available at once, to exclude the start of
// containers.
func (w *casePlane) runWorkloads(resource schema.GroupVersionResource) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	running.Go(func() {
		for ctx.Err() == nil {
			changes, err := w.near.Resource(resource).Watch(ctx, metav1.ListOptions{})
			if err != nil {
				continue // the context has ended
			}
			for change := range changes.ResultChan() {
				if live, ok := change.Object.(*unstructured.Unstructured); ok && change.Type != watch.Deleted {
					w.makeAvailable(ctx, resource, live)
				}
			}
		}
	})
}

func (w *casePlane) makeAvailable(ctx context.Context, resource schema.GroupVersionResource, live *unstructured.Unstructured) {
	observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	if observed == live.GetGeneration() || strings.HasPrefix(live.GetName(), heldPrefix) {
		return
	}
	status, err := json.Marshal(map[string]any{"status": available(live)})
	if err == nil {
		_, err = w.near.Resource(resource).Namespace(live.GetNamespace()).
			Patch(ctx, live.GetName(), types.MergePatchType, status, metav1.PatchOptions{FieldManager: "deployment-controller"}, "status")
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		w.t.Errorf("acting for the controller of %s: %v", resource.Resource, err)
	}
}

// warmUp makes kube-apiserver initialize everything that it initializes on first use.
func (w *casePlane) warmUp() {
	w.t.Helper()
	w.namespaces([]release{{name: "warm-up", namespace: "warm-up"}})
	for _, o := range smallRelease("warm-up", 4, "1", "1").objects() {
		object := &unstructured.Unstructured{Object: o}
		object.SetNamespace("warm-up")
		resource := schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(object.GetKind()) + "s"}
		if object.GetKind() == "Deployment" {
			resource = deployments()
		}
		client := w.near.Resource(resource).Namespace("warm-up")
		if _, err := client.Apply(w.t.Context(), object.GetName(), object, metav1.ApplyOptions{FieldManager: "bench"}); err != nil {
			w.t.Fatal(err)
		}
		if err := client.Delete(w.t.Context(), object.GetName(), metav1.DeleteOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// namespaces creates the namespaces of releases. The systems do not, because without controllers a
// Namespace cannot be deleted.
func (w *casePlane) namespaces(releases []release) {
	w.t.Helper()
	wanted := map[string]bool{}
	for _, r := range releases {
		wanted[r.namespace] = true
		for _, o := range r.objects() {
			if name, ok := o["metadata"].(map[string]any)["namespace"].(string); ok {
				wanted[name] = true
			}
		}
	}
	for name := range wanted {
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		ns.SetName(name)
		_, err := w.near.Resource(namespaces()).Create(w.t.Context(), ns, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			w.t.Fatal(err)
		}
	}
}

// image returns the image of a release's marker in the cluster; "" if it does not exist.
func (w *casePlane) image(r release) string {
	w.t.Helper()
	wanted := &unstructured.Unstructured{Object: marker(r)}
	live, err := w.near.Resource(deployments()).Namespace(wanted.GetNamespace()).Get(w.t.Context(), wanted.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprint(container(live.Object)["image"])
}

// drift changes the image of a release's marker with another field manager.
func (w *casePlane) drift(r release) {
	w.t.Helper()
	wanted := &unstructured.Unstructured{Object: marker(r)}
	patch, err := json.Marshal([]any{map[string]any{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "registry.example.com/drift:1"}})
	if err == nil {
		_, err = w.near.Resource(deployments()).Namespace(wanted.GetNamespace()).
			Patch(w.t.Context(), wanted.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: "somebody"})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// repaired waits until the marker of a release is as in the release.
func (w *casePlane) repaired(ctx context.Context, r release) error {
	wanted := &unstructured.Unstructured{Object: marker(r)}
	changes, err := w.near.Resource(deployments()).Namespace(wanted.GetNamespace()).
		Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + wanted.GetName()})
	if err != nil {
		return fmt.Errorf("watching %s: %w", wanted.GetName(), err)
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		live, ok := change.Object.(*unstructured.Unstructured)
		if ok && container(live.Object)["image"] == container(wanted.Object)["image"] {
			return nil
		}
	}
	return fmt.Errorf("waiting for %s to be repaired: %w", wanted.GetName(), context.Cause(ctx))
}

type sample struct {
	millis, clientCPU, serverCPU, peak float64
	// waited is the time spent waiting for the cluster.
	waited float64
	// writes, dryRuns, reads and asks count requests: possible changes, dry-runs, reads, and
	// questions about rights.
	writes, dryRuns, reads, asks int
}

func (s sample) requests() int { return s.writes + s.dryRuns + s.reads + s.asks }

func (w *casePlane) step(s measured, do func(ctx context.Context) (time.Duration, error)) sample {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	before, server, mark := w.begin(s)
	began := time.Now()
	took, err := do(ctx)
	if err != nil {
		w.t.Fatalf("%s: %v", s.name(), err)
	}
	ended := time.Now()
	<-time.After(settling)
	after, err := s.usage()
	if err != nil {
		w.t.Fatal(err)
	}
	serverAfter, err := measure.CPUOf(w.apiserver)
	if err != nil {
		w.t.Fatal(err)
	}
	result := sample{millis: millis(took), clientCPU: millis(after.cpu - before.cpu), serverCPU: millis(serverAfter - server), peak: float64(after.peak)}
	requests := w.cluster.Audit().Since(mark)
	result.count(requests.Where(s.sends, plane.Not(plane.ByVerb("watch"))))
	if _, waits := s.(*ours); waits {
		result.waited = millis(waiting(requests, s.sends, began, ended))
	}
	return result
}

// quiet waits until a system sends no requests for some time.
func (w *casePlane) quiet(s measured) {
	w.t.Helper()
	err := wait.PollUntilContextTimeout(w.t.Context(), settling, patience, true, func(context.Context) (bool, error) {
		mark := w.cluster.Audit().Mark()
		<-time.After(settling)
		return len(w.cluster.Audit().Since(mark, s.sends, func(r plane.Request) bool { return r.Resource != "leases" })) == 0, nil
	})
	if err != nil {
		w.t.Fatalf("%s does not rest: %v", s.name(), err)
	}
}

// begin reads the values before a step.
func (w *casePlane) begin(s measured) (before usage, server time.Duration, mark plane.Mark) {
	w.t.Helper()
	if err := s.rest(); err != nil {
		w.t.Fatal(err)
	}
	mark = w.cluster.Audit().Mark()
	before, err := s.usage()
	if err != nil {
		w.t.Fatal(err)
	}
	if server, err = measure.CPUOf(w.apiserver); err != nil {
		w.t.Fatal(err)
	}
	return before, server, mark
}

// count sorts requests by kind. It excludes Leases, which depend only on time.
func (s *sample) count(requests plane.Requests) {
	for _, r := range requests {
		switch {
		case r.Resource == "leases":
		case r.Group == "authorization.k8s.io" || r.Group == "authentication.k8s.io":
			s.asks++
		case strings.Contains(r.URI, "dryRun=All"):
			s.dryRuns++
		case r.Verb == "get" || r.Verb == "list":
			s.reads++
		default:
			s.writes++
		}
	}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
