//go:build integration

package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// farRevision returns a revision in three phases. Its third phase waits for a Deployment in the
// second.
func farRevision(extension string, number int) string {
	return fmt.Sprintf(`apiVersion: olm.operatorframework.io/v1alpha1
kind: ClusterExtensionRevision
metadata: {name: %[1]s-%[2]d}
spec:
  revision: %[2]d
  progressDeadlineMinutes: 1
  phases:
  - name: configuration
    objects:
    - object: {apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s, namespace: default}, data: {number: "%[2]d"}}
  - name: deploy
    objects:
    - object:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: %[1]s, namespace: default, labels: {number: "%[2]d"}}
        spec: {selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: main, image: registry.example.com/%[1]s}]}}}
  - name: after
    objects:
    - object: {apiVersion: v1, kind: ConfigMap, metadata: {name: %[1]s-after, namespace: default}, data: {number: "%[2]d"}}
`, extension, number)
}

// makeAvailable does the work of the Deployment controller, which does not run in the target. It
// waits until the Deployment belongs to the revision.
func (w *hostAndTarget) makeAvailable(t *testing.T, name, number string) {
	t.Helper()
	becomes(t, "the Deployment "+name, func() string {
		return w.target.Kubectl("get", "deployment", name, "-o", "jsonpath=revision {.metadata.labels.number}").Stdout
	}, "revision "+number)
	generation := w.target.MustKubectl("get", "deployment", name, "-o", "jsonpath={.metadata.generation}")
	w.target.MustKubectl("patch", "deployment", name, "--subresource=status", "--type=merge", "-p", fmt.Sprintf(
		`{"status":{"observedGeneration":%s,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,"conditions":[{"type":"Available","status":"True","reason":"MinimumReplicasAvailable"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}}`, generation))
}

// targetFar: a target works at a distance of 50 ms. Phases wait and continue, drift is repaired,
// and no deadline passes.
func targetFar(t *testing.T, w *hostAndTarget) {
	w.way.Far(t, 50*time.Millisecond)
	defer w.way.Far(t, 0)
	w.MustKubectlInput(farRevision("far", 1), "create", "-f", "-")
	becomes(t, "the phase that waits", func() string { return w.condition("far-1", "Progressing") }, "phase deploy (2 of 3)", "default/far: its controller has not reported")
	if got := numberOf(w.target, "far-after")(); got != "" {
		t.Errorf("the phase after the Deployment was rolled out: %q", got)
	}
	w.makeAvailable(t, "far", "1")
	becomes(t, "the rollout", func() string { return w.condition("far-1", "Ready") }, "True ")
	if got := w.condition("far-1", "Stalled"); !strings.HasPrefix(got, "False ") {
		t.Errorf("the revision is stalled: %s", got)
	}
	w.target.MustKubectl("patch", "configmap", "far", "--type=merge", "-p", `{"data":{"number":"drifted"}}`)
	becomes(t, "the repaired object", numberOf(w.target, "far"), "1")
	w.MustKubectl("delete", "cer", "far-1")
	if got := numberOf(w.target, "far")() + numberOf(w.target, "far-after")(); got != "" {
		t.Errorf("after the deletion, the target has %q", got)
	}
}

// targetAway: the target is not reachable. Revisions with objects there are kept, others may be
// deleted. When it is back, the requested changes are made, and no others.
func targetAway(t *testing.T, w *hostAndTarget) {
	ready := func(name string) {
		t.Helper()
		extension, number, _ := strings.Cut(name, "-")
		w.makeAvailable(t, extension, number)
		becomes(t, "the rollout of "+name, func() string { return w.condition(name, "Ready") }, "True ")
	}
	for _, name := range []string{"leaving", "staying"} {
		w.MustKubectlInput(farRevision(name, 1), "create", "-f", "-")
		ready(name + "-1")
	}
	w.MustKubectlInput(farRevision("staying", 2), "create", "-f", "-")
	ready("staying-2")
	becomes(t, "the older revision", func() string {
		return w.MustKubectl("get", "cer", "staying-1", "-o", "jsonpath={.spec.lifecycleState}") + " " + w.condition("staying-1", "Progressing")
	}, "Archived", "False ")
	w.way.Cut()
	becomes(t, "the loss", func() string { return w.condition("staying-2", "Available") }, "Unknown ")
	w.MustKubectl("delete", "cer", "leaving-1", "staying-1", "--wait=false")
	w.MustKubectlInput(farRevision("staying", 3), "create", "-f", "-")
	becomes(t, "what keeps the revision", func() string { return w.condition("leaving-1", "Progressing") + w.condition("leaving-1", "Failing") }, "True ")
	if got := w.MustKubectl("get", "cer", "leaving-1", "-o", "jsonpath={.metadata.finalizers}"); !strings.Contains(got, "teardown") {
		t.Errorf("the revision has forgotten its objects: %q", got)
	}
	if got := numberOf(w.target, "leaving")() + numberOf(w.target, "staying")(); got != "12" {
		t.Errorf("the target has %q", got)
	}
	w.way.Mend(t)
	becomes(t, "the deletion", func() string {
		return w.Kubectl("get", "cer", "leaving-1", "staying-1").String()
	}, `"leaving-1" not found`, `"staying-1" not found`)
	if got := numberOf(w.target, "leaving")() + numberOf(w.target, "leaving-after")(); got != "" {
		t.Errorf("after the deletion, the target has %q", got)
	}
	becomes(t, "the next revision", numberOf(w.target, "staying"), "3")
	w.target.MustKubectl("get", "deployment", "staying")
	ready("staying-3")
	w.MustKubectl("delete", "cer", "staying-3", "staying-2", "--ignore-not-found")
}
