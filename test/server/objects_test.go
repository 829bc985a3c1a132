//go:build integration

package server_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// registrySecret is part of a registry's answer and must not appear in any status.
const registrySecret = "hunter4-of-the-registry"

// The objects of a revision. Its Deployment cannot pull its image, and its webhook has no server.
const (
	objectsSettings = `{apiVersion: v1, kind: ConfigMap, metadata: {name: objs, namespace: a}, data: {k: v}}`
	objectsCreds    = `{apiVersion: v1, kind: Secret, metadata: {name: objs, namespace: a}, stringData: {password: hunter2}}`
	objectsApp      = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: objs, namespace: a}, spec: {selector: {matchLabels: {app: objs}}, template: {metadata: {labels: {app: objs}}, spec: {containers: [{name: main, image: "example.com/objs:1"}]}}}}`
	objectsWebhook  = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: objs}, webhooks: [{name: objs.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {service: {namespace: a, name: objs}}, rules: [{apiGroups: [objs.example.com], apiVersions: [v1], resources: [objs], operations: [CREATE]}]}]}`
	objectsPods     = `apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: objs-1, namespace: a, labels: {app: objs, pod-template-hash: "1"}, annotations: {deployment.kubernetes.io/revision: "1"}, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: objs, uid: %[1]s, controller: true}]}
spec:
  selector: {matchLabels: {app: objs, pod-template-hash: "1"}}
  template: {metadata: {labels: {app: objs, pod-template-hash: "1"}}, spec: {containers: [{name: main, image: i}]}}
`
	objectsPod = `apiVersion: v1
kind: Pod
metadata: {name: objs-1-x, namespace: a, labels: {app: objs, pod-template-hash: "1"}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: objs-1, uid: %[1]s, controller: true}]}
spec: {containers: [{name: main, image: "example.com/objs:1"}]}
`
	objectsStatus = `{"status":{"phase":"Pending","containerStatuses":[{"name":"main","ready":false,"restartCount":0,"image":"i","imageID":"","state":{"waiting":{"reason":"ImagePullBackOff","message":"unauthorized: ` + registrySecret + `"}}}]}}`
)

// objectsAnswer has the fields of an answer that the test reads.
type objectsAnswer struct {
	Withheld int
	Objects  []struct {
		Kind, Name, State, Reason, Detail string
		Cause                             *struct {
			Reason string
			Object struct{ Kind, Name string }
		}
		LastRepair *struct{ Message string }
	}
}

// lines returns the number of withheld objects, then one line per object. A line mentions a detail
// but does not contain it.
func (a objectsAnswer) lines() []string {
	out := []string{fmt.Sprintf("withheld %d", a.Withheld)}
	for _, o := range a.Objects {
		line := strings.TrimSpace(fmt.Sprintf("%s %s %s", o.Kind, o.State, o.Reason))
		if o.Cause != nil {
			line += fmt.Sprintf(" by %s of %s %s", o.Cause.Reason, o.Cause.Object.Kind, o.Cause.Object.Name)
		}
		if o.Detail != "" {
			line += ", with detail"
		}
		if o.LastRepair != nil {
			line += ", repaired: " + o.LastRepair.Message
		}
		out = append(out, line)
	}
	return out
}

// liveObjects: an administrator sees in status why a workload is not available. The subresource
// objects shows the state of every object that the reader may read.
func liveObjects(t *testing.T, w *liveHost) {
	revision := strings.ReplaceAll(liveRevision(1, "Active", objectsSettings, objectsCreds, objectsApp), "live-1", "objs-1")
	// In the same phase as the workload, the webhook would have to wait for it.
	revision = strings.Replace(revision, "  - name: all\n", "  - name: hooks\n    objects:\n    - object: "+objectsWebhook+"\n  - name: all\n", 1)
	w.MustKubectlInput(revision, "create", "-f", "-")
	uid := func(kind, name string) string {
		var out string
		eventually(t, "made: "+kind, func() error {
			got := w.Kubectl("get", kind, name, "--namespace=a", "-o", "jsonpath={.metadata.uid}")
			if out = got.Stdout; got.ExitCode != 0 || out == "" {
				return missingError{got.String()}
			}
			return nil
		})
		return out
	}
	w.MustKubectlInput(fmt.Sprintf(objectsPods, uid("deployment", "objs")), "create", "-f", "-")
	w.MustKubectlInput(fmt.Sprintf(objectsPod, uid("replicaset", "objs-1")), "create", "-f", "-")
	w.MustKubectl("patch", "pod", "objs-1-x", "--namespace=a", "--subresource=status", "--type=merge", "-p", objectsStatus)
	w.MustKubectl("patch", "deployment", "objs", "--namespace=a", "--subresource=status", "--type=merge", "-p", `{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"unavailableReplicas":1}}`)
	w.MustKubectl("patch", "configmap", "objs", "--namespace=a", "--type=merge", "--field-manager=somebody", "-p", `{"data":{"k":"theirs"}}`)

	eventually(t, "the cause in describe", func() error {
		out := w.MustKubectl("describe", "cer", "objs-1")
		if !strings.Contains(out, "Pod a/objs-1-x: container main: ImagePullBackOff, image example.com/objs:1") {
			return missingError{out}
		}
		if strings.Contains(out, registrySecret) {
			t.Fatalf("status has the registry's answer:\n%s", out)
		}
		return nil
	})
	const repaired = "ConfigMap Available, repaired: .data.k was changed by somebody"
	app, hook := "Deployment Unready ProbeFailed by ImagePullBackOff of Pod objs-1-x", "ValidatingWebhookConfiguration Available"
	for user, want := range map[string][]string{
		"no-patch":  {"withheld 0", hook + " NoEndpoints by NoEndpoints of ValidatingWebhookConfiguration objs", repaired, "Secret Available", app + ", with detail"},
		"no-list":   {"withheld 0", hook, repaired, "Secret Available", app},
		"no-create": {"withheld 3", repaired},
		"no-get":    {"withheld 4"},
	} {
		as := w.User(user, "live-readers")
		eventually(t, "objects for "+user, func() error { return objectsSay(t, as, want) })
	}
	if out := w.User("no-patch", "live-readers").MustKubectl("get", "cer", "objs-1", "--subresource=objects", "-o", "wide"); !strings.Contains(out, registrySecret) ||
		!strings.Contains(out, "Unready") || !strings.HasPrefix(out, "PHASE") {
		t.Errorf("the table is:\n%s", out)
	}
	if out := w.User("nobody").Kubectl("get", "cer", "objs-1", "--subresource=objects"); out.ExitCode == 0 || !strings.Contains(out.Stderr, "forbidden") {
		t.Errorf("without the right to the subresource: %s", out)
	}
	w.MustKubectl("delete", "cer", "objs-1", poll.TimeoutFlag)
}

// objectsSay compares an answer with the expected lines.
func objectsSay(t *testing.T, as *cluster.Access, want []string) error {
	t.Helper()
	out := as.Kubectl("get", "cer", "objs-1", "--subresource=objects", "-o", "json")
	if out.ExitCode != 0 {
		return missingError{out.String()}
	}
	var got objectsAnswer
	if err := json.Unmarshal([]byte(out.Stdout), &got); err != nil {
		return err
	}
	if diff := cmp.Diff(want, got.lines()); diff != "" {
		return missingError{diff}
	}
	return nil
}
