//go:build integration

package rollout_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// others creates the objects of controllers around a workload, and writes status as controllers and
// kubelets do.
type others struct {
	*chain
	ns string
}

// made creates an object with a controller owner, and writes its status.
func (o others) made(resource schema.GroupVersionResource, owner *unstructured.Unstructured, text string) *unstructured.Unstructured {
	o.t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		o.t.Fatalf("%v in\n%s", err, text)
	}
	u := &unstructured.Unstructured{Object: object}
	u.SetNamespace(o.ns)
	if owner != nil {
		yes := true
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(), Controller: &yes}})
	}
	status, hasStatus := object["status"]
	delete(object, "status")
	live, err := o.outsider.Resource(resource).Namespace(o.ns).Create(context.Background(), u, metav1.CreateOptions{})
	if err != nil {
		o.t.Fatalf("creating %s: %v", u.GetName(), err)
	}
	if hasStatus {
		o.status(resource, u.GetName(), status)
	}
	return live
}

func (o others) status(resource schema.GroupVersionResource, name string, status any) {
	o.t.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		o.t.Fatal(err)
	}
	_, err = o.outsider.Resource(resource).Namespace(o.ns).Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		o.t.Fatalf("writing the status of %s: %v", name, err)
	}
}

func core(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: resource}
}

func apps(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: resource}
}

// replicaSet creates an older ReplicaSet of a Deployment with a failed Pod, and returns the newest
// ReplicaSet.
func (o others) replicaSet(owner *unstructured.Unstructured) *unstructured.Unstructured {
	text := `
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: app-%[1]s, labels: {app: app, pod-template-hash: %[1]s}, annotations: {deployment.kubernetes.io/revision: "%[2]d"}}
spec:
  selector: {matchLabels: {app: app, pod-template-hash: %[1]s}}
  template:
    metadata: {labels: {app: app, pod-template-hash: %[1]s}}
    spec: {containers: [{name: main, image: "example.com/app:1"}]}
`
	old := o.made(apps("replicasets"), owner, fmt.Sprintf(text, "old", 9))
	o.pod(old, "app-old-1", "pod-template-hash: old", "containers: [{name: main, image: i}]", `
phase: Failed
reason: Evicted
`)
	return o.made(apps("replicasets"), owner, fmt.Sprintf(text, "new", 10))
}

func (o others) pod(owner *unstructured.Unstructured, name, labels, spec, status string) *unstructured.Unstructured {
	indent := func(text string) string { return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") }
	return o.made(core("pods"), owner, "apiVersion: v1\nkind: Pod\nmetadata: {name: "+name+", labels: {app: app, "+labels+"}}\nspec:\n"+indent(spec)+"\nstatus:\n"+indent(status))
}

func (o others) event(about *unstructured.Unstructured, reason, message string) {
	o.made(core("events"), nil, fmt.Sprintf(`
apiVersion: v1
kind: Event
metadata: {name: %s-%s}
involvedObject: {apiVersion: %s, kind: %s, namespace: %s, name: %s, uid: %s}
type: Warning
reason: %s
message: %q
lastTimestamp: "2026-01-02T03:04:05Z"
`, about.GetName(), strings.ToLower(reason), about.GetAPIVersion(), about.GetKind(), o.ns, about.GetName(), about.GetUID(), reason, message))
}

// workload returns a manifest of a workload kind whose Pods have the label app.
func workload(apiVersion, kind, ns, more string) map[string]any {
	var object map[string]any
	text := fmt.Sprintf(`{apiVersion: %s, kind: %s, metadata: {namespace: %s, name: app}, spec: {selector: {matchLabels: {app: app}}, template: {metadata: {labels: {app: app}}, spec: {containers: [{name: main, image: "example.com/app:1"}]}}%s}}`, apiVersion, kind, ns, more)
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		panic(err) // a mistake in a test
	}
	return object
}

// TestCauses: the engine reports the cause of an unready workload within a minute. One lookup costs
// at most three requests, by the client's counter and by kube-apiserver's audit log. Ready objects
// cause no lookup.
func TestCauses(t *testing.T) {
	t.Parallel()
	w := start(t)
	const observed = `{"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}`
	for name, tc := range map[string]struct {
		reason string
		object func(ns string) map[string]any
		// status is the workload's status before it is ready, ready its status afterwards.
		status, ready string
		around        func(o others, live *unstructured.Unstructured)
		want          string
		requests      int
	}{
		"cause-image": {
			reason: "the ReplicaSets and the Pods of the newest are listed",
			object: func(ns string) map[string]any { return workload("apps/v1", "Deployment", ns, "") },
			status: observed,
			around: func(o others, live *unstructured.Unstructured) {
				o.pod(o.replicaSet(live), "app-new-1", "pod-template-hash: new", `containers: [{name: main, image: "example.com/app:1"}]`, `
phase: Pending
containerStatuses: [{name: main, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: ErrImagePull, message: "hunter2"}}}]
`)
			},
			want:     "Pod cause-image/app-new-1: container main: ImagePullBackOff, image example.com/app:1",
			requests: 2,
		},
		"cause-probe": {
			reason: "how a probe is answered is in an Event: the third request",
			object: func(ns string) map[string]any { return workload("apps/v1", "Deployment", ns, "") },
			status: observed,
			around: func(o others, live *unstructured.Unstructured) {
				pod := o.pod(o.replicaSet(live), "app-new-1", "pod-template-hash: new", `containers: [{name: main, image: i, readinessProbe: {httpGet: {port: 80}}}]`, `
phase: Running
containerStatuses: [{name: main, ready: false, started: true, restartCount: 0, image: i, imageID: i, state: {running: {}}}]
`)
				o.event(pod, "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
			},
			want:     "Pod cause-probe/app-new-1: container main: ReadinessProbeFailing, is answered HTTP 503",
			requests: 3,
		},
		"cause-claim": {
			reason: "which claim is not bound, and of which class: the third request",
			object: func(ns string) map[string]any { return workload("apps/v1", "Deployment", ns, "") },
			status: observed,
			around: func(o others, live *unstructured.Unstructured) {
				o.made(core("persistentvolumeclaims"), nil, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}
`)
				o.pod(o.replicaSet(live), "app-new-1", "pod-template-hash: new", `
containers: [{name: main, image: i}]
volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`, `
phase: Pending
conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."}]
`)
			},
			want:     "Pod cause-claim/app-new-1: Unschedulable, PersistentVolumeClaim cause-claim/data is not bound: storage class fast has no volume for it",
			requests: 3,
		},
		"cause-quota": {
			reason: "what the Deployment says itself costs nothing",
			object: func(ns string) map[string]any { return workload("apps/v1", "Deployment", ns, "") },
			status: `{"observedGeneration": 1, "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "pods \"app-\" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=3, limited: pods=3"}]}`,
			around: func(others, *unstructured.Unstructured) {},
			want:   "Deployment.apps cause-quota/app: FailedCreate, ResourceQuota cause-quota/compute is used up",
		},
		"cause-statefulset": {
			reason: "no Pod exists, and an Event says why",
			object: func(ns string) map[string]any {
				return workload("apps/v1", "StatefulSet", ns, ", serviceName: app")
			},
			status: `{"observedGeneration": 1, "replicas": 0}`,
			ready:  `{"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}`,
			around: func(o others, live *unstructured.Unstructured) {
				o.event(live, "FailedCreate", `create Pod app-0 in StatefulSet app failed error: pods "app-0" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=3, limited: pods=3`)
			},
			want:     "StatefulSet.apps cause-statefulset/app: FailedCreate, ResourceQuota cause-statefulset/compute is used up",
			requests: 2,
		},
		"cause-daemonset": {
			reason: "the Pods of the newest template are listed",
			object: func(ns string) map[string]any { return workload("apps/v1", "DaemonSet", ns, "") },
			status: `{"observedGeneration": 1, "desiredNumberScheduled": 1, "currentNumberScheduled": 1, "numberMisscheduled": 0, "numberReady": 0}`,
			ready:  `{"observedGeneration": 1, "desiredNumberScheduled": 1, "currentNumberScheduled": 1, "numberMisscheduled": 0, "numberReady": 1, "updatedNumberScheduled": 1, "numberAvailable": 1}`,
			around: func(o others, live *unstructured.Unstructured) {
				o.pod(live, "app-x", `pod-template-generation: "1"`, `containers: [{name: main, image: i}]`, `
phase: Running
containerStatuses: [{name: main, ready: false, restartCount: 4, image: i, imageID: i, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]
`)
			},
			want:     "Pod cause-daemonset/app-x: container main: OOMKilled, exit code 137, 4 restarts",
			requests: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := w.in(t).chain(name)
			now := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC))
			c.clock, c.explains = now, true
			object := tc.object(c.home())
			kind := object["kind"].(string)
			resource := apps(strings.ToLower(kind) + "s")
			waits := fmt.Sprintf("1/all %s: ProbeFailed", id(object))

			c.become(rev(1).phase("all", object))
			c.stuck(waits)
			o := others{c, name}
			live, err := c.outsider.Resource(resource).Namespace(name).Get(context.Background(), "app", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			tc.around(o, live)
			write := func(text string) {
				var status any
				if err := json.Unmarshal([]byte(text), &status); err != nil {
					t.Fatal(err)
				}
				o.status(resource, "app", status)
			}
			write(tc.status)
			c.until("seen", func(r rollout.Report) bool { return !strings.Contains(messages(r), "has not") })

			// The first lookup is due after ten seconds. No lookup happens before the next is due.
			for _, round := range []struct{ wait, looks int }{{9, 0}, {1, 1}, {0, 0}, {9, 0}, {1, 1}} {
				mark, from := c.Audit().Mark(), c.sent()
				now.SetTime(now.Now().Add(time.Duration(round.wait) * time.Second))
				report, err := c.pass()
				if err != nil {
					t.Fatal(err)
				}
				if got := messages(report); round.looks > 0 && !strings.HasSuffix(got, "; "+tc.want) {
					t.Errorf("%s:\n got %q\nwant %q", tc.reason, got, tc.want)
				}
				want := costs{}
				if n := round.looks * tc.requests; n > 0 {
					want[targetclient.Explain] = n
				}
				c.accounts(mark, from, tc.reason, want)
			}

			// Ready objects cause no lookup.
			if tc.ready == "" {
				tc.ready = `{"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "conditions": []}`
			}
			write(tc.ready)
			c.until("complete", complete)
			now.SetTime(now.Now().Add(time.Hour))
			c.quiet()
		})
	}
}
