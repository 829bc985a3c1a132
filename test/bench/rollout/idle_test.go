package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/test/bench/measure"
)

// idleness is a number of extensions that are rolled out and idle.
type idleness struct {
	extensions, objects, revisions int
	// memory limits the memory of Penstock beyond an empty Penstock, in MB.
	memory float64
}

func (i idleness) String() string {
	return fmt.Sprintf("%d extensions of %d objects and %d revisions", i.extensions, i.objects, i.revisions)
}

// idle measures the memory of idle extensions. It also measures the time from the readiness of a
// revision's last object to Succeeded, with the idle extensions present.
func (b *bench) idle(t *testing.T, i idleness) {
	t.Helper()
	w := newCasePlane(t, 0)
	o := startOurs(w, b.program, nameOurs, false)
	empty := b.resident(w, o, i, "empty", measure.Memory{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for number := range i.revisions {
		b.say("%s: revision %d of each", i, number+1)
		var releases []release
		for n := range i.extensions {
			releases = append(releases, smallRelease(fmt.Sprintf("small-%04d", n), i.objects, fmt.Sprint(number+1), "1"))
		}
		w.namespaces(releases)
		if _, err := o.apply(ctx, releases); err != nil {
			t.Fatal(err)
		}
	}
	full := b.resident(w, o, i, "at rest", empty)
	b.report.AtMost("memory above empty, "+i.String(), i.memory, measure.MB(full.RSS)-measure.MB(empty.RSS), "MB")

	var took []float64
	const probes = 9
	for n := range probes {
		took = append(took, millis(b.lastProbe(ctx, w, o, n)))
	}
	spread := measure.SpreadOf(took)
	b.report.Table("From the last object's readiness to Succeeded, ms", "beside", "median", "10% to 90%").
		Row(i.String(), fmt.Sprintf("%.0f", spread.Median), fmt.Sprintf("%.0f to %.0f", spread.Low, spread.High))
	b.report.AtMost("from readiness to Succeeded beside "+i.String(), 100, spread.Median, "ms")
}

// resident adds the memory of Penstock at rest to the table.
func (b *bench) resident(w *casePlane, o *ours, i idleness, state string, empty measure.Memory) measure.Memory {
	w.t.Helper()
	const rest = 30 * time.Second
	<-time.After(rest)
	m, err := measure.MemoryOf(o.server.Pid())
	if err != nil {
		w.t.Fatal(err)
	}
	o.profile(i.String() + " " + state)
	above := ""
	if empty.RSS > 0 {
		above = fmt.Sprintf("%.0f", measure.MB(m.RSS)-measure.MB(empty.RSS))
	}
	b.report.Table("Memory of penstock, MB", "with", "state", "resident", "above empty", "heap and stacks", "mapped files", "peak").
		Row(i.String(), state, fmt.Sprintf("%.0f", measure.MB(m.RSS)), above, fmt.Sprintf("%.0f", measure.MB(m.Anon)), fmt.Sprintf("%.0f", measure.MB(m.File)), fmt.Sprintf("%.0f", measure.MB(m.Peak)))
	return m
}

// profile writes the heap profile into the folder PROFILE. Without PROFILE it does nothing, because
// a profile forces a garbage collection.
func (o *ours) profile(name string) {
	o.w.t.Helper()
	dir := os.Getenv("PROFILE")
	if dir == "" {
		return
	}
	content := o.server.Fetch(o.w.t, o.w.config, "/debug/pprof/heap?gc=1")
	if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll("heap "+name, " ", "-")+".pprof"), []byte(content), 0o600); err != nil {
		o.w.t.Fatalf("writing the profile of %s: %v", name, err)
	}
}

// lastProbe rolls out a Deployment that is not ready, makes it ready, and returns the time until
// its revision has Succeeded.
func (b *bench) lastProbe(ctx context.Context, w *casePlane, o *ours, n int) time.Duration {
	w.t.Helper()
	r := smallRelease(fmt.Sprint(heldPrefix, n), 1, "1", "1")
	name, body := o.revision(r)
	if _, err := o.revisions.Patch(ctx, name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: author}); err != nil {
		w.t.Fatal(err)
	}
	client := w.near.Resource(deployments()).Namespace(r.namespace)
	live, err := client.Get(ctx, r.name, metav1.GetOptions{})
	for err != nil && ctx.Err() == nil {
		<-time.After(10 * time.Millisecond)
		live, err = client.Get(ctx, r.name, metav1.GetOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	<-time.After(settling)
	status, err := json.Marshal(map[string]any{"status": available(live)})
	if err != nil {
		w.t.Fatal(err)
	}
	began := time.Now()
	if _, err := client.Patch(ctx, r.name, types.MergePatchType, status, metav1.PatchOptions{FieldManager: "deployment-controller"}, "status"); err != nil {
		w.t.Fatal(err)
	}
	if err := o.succeeded(ctx, []string{name}); err != nil {
		w.t.Fatal(err)
	}
	return time.Since(began)
}

func available(live *unstructured.Unstructured) map[string]any {
	if live.GetKind() == "DaemonSet" {
		return map[string]any{
			"observedGeneration": live.GetGeneration(), "currentNumberScheduled": 1, "desiredNumberScheduled": 1,
			"numberAvailable": 1, "numberReady": 1, "numberMisscheduled": 0,
		}
	}
	replicas, _, _ := unstructured.NestedInt64(live.Object, "spec", "replicas")
	return map[string]any{
		"observedGeneration": live.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas,
		"readyReplicas": replicas, "availableReplicas": replicas,
		"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
	}
}
