//go:build integration

package chartkind_test

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/chartkind/report"
)

// hostile: foreign text in a Central, and foreign objects with its labels, do not change its
// status. Penstock adopts no foreign object.
func hostile(w shared) {
	const name = "c"
	made := w.central(name, "scanner: {replicas: 1}")
	// The condition of another manager stays when Penstock's conditions change.
	w.MustKubectlInput(fmt.Sprintf(`{apiVersion: platform.stackrox.io/v1alpha1, kind: Central, metadata: {name: %s, namespace: %s}, status: {conditions: [
		{type: Backup, status: "True", reason: Done, message: theirs, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, name, w.name),
		"apply", "--server-side", "--subresource=status", "--field-manager=backup", "-f", "-")
	// A Deployment with the workloads' label that is not in the revision does not count.
	for _, namespace := range []string{w.name, "default"} {
		w.MustKubectlInput(fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: stranger-%[1]s, namespace: %[2]s, labels: {penstock.dev/chain: central-%[1]s}},
			spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: main, image: x}]}}}}`, w.name, namespace), "create", "-f", "-")
	}
	w.MustKubectl("-n", w.name, "scale", "deployment/scanner", "--replicas=0")
	found := w.awaitCentral(name, "a workload of its own is missing", is(report.Ready, "False", report.ReasonWorkloadsNotReady))
	if got := conditionOf(found, report.Ready, "False", "").Message; got != "1 of 5 workloads are not ready: scanner (scaled to zero)" {
		w.t.Error(got)
	}
	w.MustKubectl("-n", w.name, "scale", "deployment/scanner", "--replicas=1")
	w.awaitCentral(name, "it is ready again", settled)
	// A status in a write of the spec is dropped, and so is a spec in a write of the status. A
	// client cannot set the generation.
	w.patch(name, `{"metadata":{"generation":99},"spec":{"central":{"db":{"size":"20Gi"}}},"status":{"reconciledVersion":"0.0.1","observedGeneration":99}}`)
	w.MustKubectl("-n", w.name, "patch", "central", name, "--subresource=status", "--type=merge", "-p", `{"spec":{"central":{"db":{"size":"99Gi"}}}}`)
	found = w.awaitCentral(name, "its second generation is installed", func(object *unstructured.Unstructured) bool {
		return object != nil && object.GetGeneration() == made.GetGeneration()+1 && settled(object)
	})
	status := report.StatusOf(found)
	if status.ReconciledVersion != "4.9.0" || !status.Is("Backup", "True") {
		w.t.Errorf("its status is %+v", status)
	}
	if i := slices.IndexFunc(status.Conditions, func(one metav1.Condition) bool { return one.Type == "Backup" }); i != len(report.StatusOf(made).Conditions) {
		w.t.Errorf("the condition of somebody else has come to be the %d. of %+v", i+1, status.Conditions)
	}
	if got := w.MustKubectl("-n", w.name, "get", "configmap", "central-config", "-o", "jsonpath={.data.dbSize}"); got != "20Gi" {
		w.t.Errorf("the chart was given %s", got)
	}
	// A wrong status is corrected at the next event.
	w.MustKubectl("-n", w.name, "patch", "central", name, "--subresource=status", "--type=merge", "-p", `{"status":{"observedGeneration":99,"conditions":[]}}`)
	w.awaitCentral(name, "Ready and Progressing come back", all(is(report.Ready, "True", ""), is(report.Progressing, "True", report.ReasonReconciling)))
	w.MustKubectl("-n", w.name, "annotate", "central", name, "touched=yes")
	w.awaitCentral(name, "the rest comes back", settled)
	w.MustKubectl("-n", w.name, "delete", "deployment", "stranger-"+w.name)
	w.MustKubectl("-n", "default", "delete", "deployment", "stranger-"+w.name)
	// Terminal colours and line breaks in a message do not appear in kubectl's list.
	w.patch(name, `{"spec":{"customize":{"labels":{"bad":"\u001b[31m\nx"}}}}`)
	w.awaitCentral(name, "no valid object is made of it", func(object *unstructured.Unstructured) bool {
		return observed(object) && (is(report.Progressing, "True", report.Irreconcilable)(object) || is(report.Progressing, "True", report.ReleaseFailed)(object))
	})
	if out := w.MustKubectl("-n", w.name, "get", "centrals"); strings.Contains(out, "\x1b") || strings.Count(strings.TrimSpace(out), "\n") != 1 {
		w.t.Errorf("kubectl prints %q", out)
	}
}
