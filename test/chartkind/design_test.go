//go:build integration

package chartkind_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// considerations tests the first five considerations of the design as subtests on one Central.
// RaceConditionHandling (races) tests the sixth, and ScaleTesting (scale) the seventh.
func considerations(w shared) {
	w.central(columned, "central: {adminPasswordSecretName: admin-password}, scanner: {scannerComponent: Enabled, replicas: 1}")
	for _, one := range []struct {
		name string
		do   func(shared)
	}{
		{"VersionColumn", func(w shared) { w.shows("installed", "4.9.0") }},
		{"AdminPasswordColumn", func(w shared) { w.shows("installed", "admin-password") }},
		{"MessageColumn", messageColumn},
		{"AvailableColumn", availableColumn},
		{"ProgressingColumn", progressingColumn},
		{"Paused", paused},
	} {
		w.t.Run(one.name, func(t *testing.T) {
			step := w
			step.Cluster, step.t = w.Cluster.In(t), t
			one.do(step)
		})
	}
}

const columned = "stackrox-central-services"

// shows checks that the Central's row, as kubectl prints it, contains texts.
func (w shared) shows(what string, has ...string) {
	w.t.Helper()
	lines := strings.Split(strings.TrimSpace(w.MustKubectl("-n", w.name, "get", "centrals")), "\n")
	for _, text := range has {
		if row := lines[len(lines)-1]; !strings.Contains(row, text) {
			w.t.Errorf("%s: want %q in %s", what, text, row)
		}
	}
}

// messageColumn checks Message and the order of all columns; Age is last.
func messageColumn(w shared) {
	header, _, _ := strings.Cut(w.MustKubectl("-n", w.name, "get", "centrals"), "\n")
	if got := strings.Join(strings.Fields(header), " "); got != "NAME VERSION ADMINPASSWORD MESSAGE AVAILABLE PROGRESSING AGE" {
		w.t.Errorf("the columns are %s", got)
	}
	w.shows("installed", "StackRox Central Services has been installed.")
}

// availableColumn checks that Available follows the workloads without a pass of the revision
// controller.
func availableColumn(w shared) {
	w.shows("installed", "True", report.ReasonReconcileSuccessful)
	mark, before, renders := w.Audit().Mark(), w.has(), w.renders()
	w.MustKubectl("-n", w.name, "scale", "deployment/scanner", "--replicas=0")
	found := w.awaitCentral(columned, "a workload is scaled down by hand", is(report.Ready, "False", report.ReasonWorkloadsNotReady))
	if got := conditionOf(found, report.Ready, "False", "").Message; got != "1 of 5 workloads are not ready: scanner (scaled to zero)" {
		w.t.Error(got)
	}
	w.shows("scaled down", "False", report.ReasonReconcileSuccessful)
	w.MustKubectl("-n", w.name, "scale", "deployment/scanner", "--replicas=1")
	w.awaitCentral(columned, "it is scaled up again", settled)
	if writes, passes := w.written(mark, "penstock-chartkinds-status"), w.written(mark, "penstock-chartkinds"); writes > 3 || passes != 0 || w.has() != before || w.renders() != renders {
		w.t.Errorf("2 transitions, and one other problem between them, took %d writes of the one loop and %d of the other, %d revisions and %d renderings", writes, passes, w.has()-before, w.renders()-renders)
	}
}

// progressingColumn checks Progressing during a change, and for a change that is not possible.
func progressingColumn(w shared) {
	seen := w.progress(columned, func() {
		w.patch(columned, `{"spec":{"central":{"db":{"size":"20Gi"}}}}`)
	}, settled)
	if seen != "ReconcileSuccessful Reconciling ReconcileSuccessful" {
		w.t.Errorf("a change of spec showed %s", seen)
	}
	w.patch(columned, `{"spec":{"scanner":{"replicas":-1}}}`)
	broken := w.awaitCentral(columned, "its configuration cannot be", all(is(report.Progressing, "True", report.Irreconcilable), observed))
	w.shows("broken", report.Irreconcilable, "4.9.0", "the chart cannot be rendered")
	if conditionOf(broken, report.Deployed, "True", report.ReasonUpgradeError) == nil {
		w.t.Errorf("what was installed is not Deployed any more: %v", report.StatusOf(broken).Conditions)
	}
	w.patch(columned, `{"spec":{"scanner":{"replicas":2}}}`)
	w.awaitCentral(columned, "it is repaired", all(settled, is(report.Irreconcilable, "False", "")))
	w.shows("recovered", "StackRox Central Services has been installed.", "True", report.ReasonReconcileSuccessful)
}

// paused checks that metadata without meaning for the chart creates no revision. While paused,
// nothing changes; afterwards, all changes are applied.
func paused(w shared) {
	before := w.has()
	w.MustKubectl("-n", w.name, "label", "central", columned, "team=a")
	w.MustKubectl("-n", w.name, "annotate", "central", columned, "charts.penstock.dev/paused=true")
	w.awaitCentral(columned, "it is paused", is(report.Paused, "True", ""))
	w.patch(columned, `{"spec":{"central":{"db":{"size":"30Gi"}}}}`)
	w.awaitCentral(columned, "the change waits", is(report.Progressing, "True", report.ReasonReconciling))
	if w.has() != before {
		w.t.Errorf("%d revisions were made for a label, and while paused", w.has()-before)
	}
	w.MustKubectl("-n", w.name, "annotate", "central", columned, "charts.penstock.dev/paused-")
	w.awaitCentral(columned, "it goes on", all(settled, is(report.Paused, "False", "")))
	if got := w.MustKubectl("-n", w.name, "get", "configmap", "central-config", "-o", "jsonpath={.data.dbSize}"); got != "30Gi" {
		w.t.Errorf("the chart was given %s", got)
	}
}

// progress returns the values of the column Progressing during an action, without repetitions.
func (w shared) progress(name string, do func(), until func(*unstructured.Unstructured) bool) string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), poll.Patience)
	defer cancel()
	client := w.host.Resource(centrals).Namespace(w.name)
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	watching, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: live.GetResourceVersion()})
	if err != nil {
		w.t.Fatal(err)
	}
	defer watching.Stop()
	var seen []string
	add := func(object *unstructured.Unstructured) {
		for _, one := range report.StatusOf(object).Conditions {
			if one.Type == report.Progressing && (len(seen) == 0 || seen[len(seen)-1] != one.Reason) {
				seen = append(seen, one.Reason)
			}
		}
	}
	add(live)
	do()
	for {
		select {
		case <-ctx.Done():
			w.t.Fatalf("%s: it does not come to an end; Progressing was %v", name, seen)
		case event := <-watching.ResultChan():
			object, ok := event.Object.(*unstructured.Unstructured)
			if event.Type == watch.Modified && ok {
				add(object)
				if object.GetGeneration() > live.GetGeneration() && until(object) {
					return strings.Join(seen, " ")
				}
			}
		}
	}
}

// races tests the sixth consideration of the design: many clients write the spec at the same time,
// while a Deployment flaps. No write is lost, and the status matches the last write.
func races(w shared) {
	writers := 20
	if os.Getenv("FULL") == "1" {
		writers = 100
	}
	const name = "raced"
	w.central(name, "scanner: {replicas: 1}")
	var running sync.WaitGroup
	for i := range writers {
		running.Go(func() {
			patch, _ := json.Marshal(map[string]any{"spec": map[string]any{"customize": map[string]any{"labels": map[string]any{fmt.Sprintf("writer-%d", i): "yes"}}}})
			if _, err := w.host.Resource(centrals).Namespace(w.name).Patch(w.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				w.t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	running.Go(func() {
		for i := range 6 {
			patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, i%2)
			if _, err := w.host.Resource(deployments).Namespace(w.name).Patch(w.t.Context(), "scanner", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "scale"); err != nil {
				w.t.Errorf("flapping: %v", err)
			}
		}
	})
	running.Wait()
	w.MustKubectl("-n", w.name, "scale", "deployment/scanner", "--replicas=1")
	found := w.awaitCentral(name, "all of it is installed", settled)
	if labels, _, _ := unstructured.NestedMap(found.Object, "spec", "customize", "labels"); len(labels) != writers {
		w.t.Errorf("of %d writers, %d are in the spec", writers, len(labels))
	}
	w.await(configMaps, w.name, "central-config", "it has the label of every writer", func(object *unstructured.Unstructured) bool {
		count := 0
		if object != nil {
			for label := range object.GetLabels() {
				if strings.HasPrefix(label, "writer-") {
					count++
				}
			}
		}
		return count == writers
	})
	for line := range strings.Lines(w.server.Complaints()) {
		if strings.Contains(line, w.name) {
			w.t.Errorf("what is no trouble is complained of: %s", line)
		}
	}
	// The two controllers do not trigger each other, so after the last change soon a second passes
	// without a request. The last scaling may still be reported before.
	var requests plane.Requests
	for range 10 {
		mark := w.Audit().Mark()
		timer := time.NewTimer(time.Second) // no wait for an event: nothing must happen meanwhile
		<-timer.C
		requests = w.Audit().Since(mark, plane.ByUser(operator), plane.Not(plane.ByVerb("watch")), func(r plane.Request) bool { return r.Namespace == w.name })
		if len(requests) == 0 {
			return
		}
	}
	w.t.Errorf("it does not come to rest:\n%s", requests)
}
