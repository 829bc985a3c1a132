package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/pkg/source"
	chartsource "github.com/penstock-project/penstock/pkg/source/chart"
	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/registry"
)

func centrals() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "platform.stackrox.io", Version: "v1alpha1", Resource: "centrals"}
}

func example(t *testing.T, path ...string) string {
	t.Helper()
	root, err := plane.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(append([]string{root, "artifacts", "examples", "central"}, path...)...)
}

// steadyChart returns a copy of the example's chart whose Secrets do not change between renderings.
// Otherwise each dry-run upgrade would lead to an upgrade, because Helm does not keep generated
// values.
func steadyChart(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(example(t, "chart"))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "templates", "secrets.yaml")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`stringData:\n  password: .*`).ReplaceAllString(string(content), "data:\n  password: c2VjcmV0")
	if strings.Contains(text, "randAlphaNum") || !strings.Contains(text, "c2VjcmV0") {
		t.Fatalf("the Secrets of the chart are made in another way:\n%s", text)
	}
	write(t, file, text)
	return folder
}

func objectsOf(t *testing.T, program *penstock.Program, chart string) int {
	t.Helper()
	rendered, err := chartsource.Renderer{Options: chartsource.Options{Release: "central", Namespace: "tenant", Program: program.Path()}}.Render(t.Context(), os.DirFS(chart))
	if err != nil {
		t.Fatal(err)
	}
	return source.Count(rendered.Phases)
}

// kinds is a system that installs Centrals with a chart and updates their status.
type kinds struct {
	w     *casePlane
	title string
	// processes are the processes whose processor time and memory count.
	processes func() []int
	by        plane.Filter

	mu sync.Mutex
	// ready is the value of the column Available of the Centrals, by namespace.
	ready   map[string]bool
	changed chan struct{}
	// ended is closed when the operator loop ends. It is nil for Penstock, whose end fails the
	// test.
	ended chan struct{}
}

var _ measured = &kinds{}

func newKinds(w *casePlane, title string) *kinds {
	w.t.Helper()
	w.cluster.MustKubectl("apply", "--server-side", "-f", example(w.t, "crds.yaml"), "-f", example(w.t, "operator.yaml"))
	w.cluster.MustKubectl("wait", "--for=condition=Established", "crd/centrals.platform.stackrox.io", poll.TimeoutFlag)
	for _, resource := range []string{"statefulsets", "daemonsets"} {
		w.runWorkloads(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource})
	}
	return &kinds{w: w, title: title, ready: map[string]bool{}, changed: make(chan struct{})}
}

func startOperator(w *casePlane, program, chart string) *kinds {
	w.t.Helper()
	k := newKinds(w, nameOperator)
	cmd := exec.Command(program, "operator", w.kubeconfig, chart)
	end, err := cmd.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	k.ended = make(chan struct{})
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	var failure error
	go func() {
		failure = cmd.Wait()
		close(k.ended)
	}()
	w.t.Cleanup(func() {
		_ = end.Close()
		if <-k.ended; failure != nil || complaints.Len() > 0 {
			w.t.Errorf("%s: %v\n%s", k.title, failure, complaints.String())
		}
	})
	k.processes = func() []int { return []int{cmd.Process.Pid} }
	k.by = plane.ByAgent("peer/")
	k.follow()
	return k
}

// startKinds starts Penstock with the ChartKind of the example, and waits until it is accepted.
func startKinds(w *casePlane, program *penstock.Program, chart string) *kinds {
	w.t.Helper()
	k := newKinds(w, nameKinds)
	images := registry.Serve(w.t)
	ref := images.Push(w.t, chart, "charts/central-services:4.9.0")
	server := program.Serve(w.t, w.cluster, penstock.DataDir(w.t), "--registry-cas-dir="+images.Dir, "--registry-auth-file="+filepath.Join(images.Dir, registry.AuthFile))
	k.processes = func() []int { return []int{server.Pid(), server.Etcd(w.t)} }
	k.by = plane.ByAgent("penstock/")
	content, err := os.ReadFile(example(w.t, "chartkinds.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(content), "\n---\n")
	first = strings.Replace(first, "registry.example.com/charts/central-services:4.9.0", ref, 1)
	// The author is recorded only when the webhooks answer, a moment later.
	var said any
	err = wait.PollUntilContextTimeout(w.t.Context(), settling, time.Minute, true, func(context.Context) (bool, error) {
		out := w.cluster.KubectlInput(first, "create", "--dry-run=server", "-o", "yaml", "-f", "-")
		said = out
		return out.ExitCode == 0 && strings.Contains(out.Stdout, "penstock.dev/author"), nil
	})
	if err != nil {
		w.t.Fatalf("nobody notes who writes ChartKinds: %v", said)
	}
	w.cluster.MustKubectlInput(first, "create", "-f", "-")
	w.cluster.MustKubectl("wait", "--for=condition="+chartkind.ConditionAccepted, "chartkind/central", poll.TimeoutFlag)
	k.follow()
	return k
}

func (k *kinds) name() string               { return k.title }
func (k *kinds) sends(r plane.Request) bool { return k.by(r) }

func (k *kinds) usage() (usage, error) {
	var all usage
	for _, pid := range k.processes() {
		cpu, err := measure.CPUOf(pid)
		if err != nil {
			return all, err
		}
		all.cpu += cpu
	}
	// It includes the memory of child processes.
	memory, err := measure.MemoryOf(k.processes()[0])
	all.peak = memory.Peak
	return all, err
}

func (k *kinds) rest() error {
	for _, pid := range k.processes() {
		if err := forgetPeak(pid); err != nil {
			return err
		}
	}
	return nil
}

func (k *kinds) follow() {
	k.w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	changes, err := k.w.near.Resource(centrals()).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		cancel()
		k.w.t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for change := range changes.ResultChan() {
			if central, ok := change.Object.(*unstructured.Unstructured); ok && change.Type != watch.Deleted {
				k.note(central)
			}
		}
	})
	k.w.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func (k *kinds) note(central *unstructured.Unstructured) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ready[central.GetNamespace()] = report.StatusOf(central).Is(report.Ready, metav1.ConditionTrue)
	close(k.changed)
	k.changed = make(chan struct{})
}

func (k *kinds) until(ctx context.Context, what string, is func(ready map[string]bool) bool) error {
	for {
		k.mu.Lock()
		done, changed := is(k.ready), k.changed
		k.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-k.ended:
			return fmt.Errorf("waiting for %s: %s has ended", what, k.title)
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		}
	}
}

// install creates a Central in each of count namespaces, and waits until all are available.
func (k *kinds) install(ctx context.Context, count int) (time.Duration, error) {
	var wanted []release
	for i := range count {
		wanted = append(wanted, release{namespace: tenant(i)})
	}
	k.w.namespaces(wanted)
	began := time.Now()
	for i := range count {
		central := &unstructured.Unstructured{Object: map[string]any{"apiVersion": centrals().GroupVersion().String(), "kind": "Central", "spec": map[string]any{}}}
		central.SetName("central")
		if _, err := k.w.near.Resource(centrals()).Namespace(tenant(i)).Create(ctx, central, metav1.CreateOptions{}); err != nil {
			return 0, fmt.Errorf("making Centrals: %w", err)
		}
	}
	err := k.until(ctx, "all Centrals to be available", func(ready map[string]bool) bool {
		for i := range count {
			if !ready[tenant(i)] {
				return false
			}
		}
		return true
	})
	return time.Since(began), err
}

// setAvailable writes the status of a Deployment as its controller does when its last Pod fails or
// works again.
func (k *kinds) setAvailable(ctx context.Context, namespace string, up bool) error {
	status := map[string]any{"availableReplicas": 0, "readyReplicas": 0, "unavailableReplicas": 1, "conditions": []any{map[string]any{"type": "Available", "status": "False"}}}
	if up {
		status = map[string]any{"availableReplicas": 1, "readyReplicas": 1, "unavailableReplicas": nil, "conditions": []any{map[string]any{"type": "Available", "status": "True"}}}
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err == nil {
		_, err = k.w.near.Resource(deployments()).Namespace(namespace).
			Patch(ctx, "scanner", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "deployment-controller"}, "status")
	}
	if err != nil {
		return fmt.Errorf("acting for the controller of Deployments: %w", err)
	}
	return nil
}
