package cause_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/rollout/cause"
)

// TestOfPods uses Pods as kubelets and schedulers of Kubernetes 1.36 write them.
func TestOfPods(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, spec, status string
		want                 string
	}{
		"ready": {"nothing is wrong", main, `
phase: Running
conditions: [{type: PodScheduled, status: "True"}, {type: Ready, status: "True"}]
containerStatuses:
- {name: main, ready: true, started: true, restartCount: 3, image: i, imageID: i, state: {running: {startedAt: "2026-01-02T03:04:05Z"}}, lastState: {terminated: {exitCode: 1, reason: Error}}}
`, ""},
		"succeeded": {"it has done its work", main, `{phase: Succeeded}`, ""},
		"unschedulable": {"how many nodes, and for what; not the taint", `
containers:
- {name: main, image: i, resources: {requests: {cpu: "8", example.com/gpu: "1"}}}
`, `
phase: Pending
conditions:
- type: PodScheduled
  status: "False"
  reason: Unschedulable
  message: '0/9 nodes are available: 1 Insufficient example.com/gpu, 2 node(s) had untolerated taint {team: hunter2}, 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 4 Insufficient cpu, 1 Insufficient hunter2. preemption: 0/9 nodes are available: 3 Preemption is not helpful for scheduling, 5 No preemption victims found for incoming pod.'
`, "Pod a/p: Unschedulable, none of 9 nodes fits: 1 with insufficient example.com/gpu, 4 with insufficient cpu, 1 with insufficient a resource, 3 with a taint that is not tolerated"},
		"unschedulable-one-node": {"the singular", main, `
phase: Pending
conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."}]
`, "Pod a/p: Unschedulable, none of 1 node fits: 1 not matched by its node selector or affinity"},
		"unschedulable-no-nodes": {"a cluster without nodes", main, `
phase: Pending
conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "no nodes available to schedule pods"}]
`, "Pod a/p: Unschedulable"},
		"claim-missing": {"the claim that the scheduler names is one of the Pod's", main + `
volumes:
- {name: data, persistentVolumeClaim: {claimName: data}}
`, `
phase: Pending
conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: '0/3 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.'}]
`, "Pod a/p: Unschedulable, PersistentVolumeClaim a/data does not exist"},
		"claim-unbound": {"there is only one that it can be", main + `
volumes:
- {name: data, persistentVolumeClaim: {claimName: data}}
`, `
phase: Pending
conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: '0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.'}]
`, "Pod a/p: Unschedulable, PersistentVolumeClaim a/data is not bound"},
		"gated": {"the controller that has to lift the gate is in its name", main + `
schedulingGates: [{name: kueue.x-k8s.io/admission}]
`, `
phase: Pending
conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated, message: "Scheduling is blocked due to non-empty scheduling gates"}]
`, "Pod a/p: SchedulingGated, waits for kueue.x-k8s.io/admission"},
		"image": {"the image as the spec has it, not what the registry says", main, `
phase: Pending
conditions: [{type: PodScheduled, status: "True"}, {type: Ready, status: "False", reason: ContainersNotReady, message: "containers with unready status: [main]"}]
containerStatuses:
- {name: main, ready: false, started: false, restartCount: 0, image: quay.io/example/server:1, imageID: "", state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "quay.io/example/server:1": ErrImagePull: unauthorized: token hunter2'}}}
`, "Pod a/p: container main: ImagePullBackOff, image quay.io/example/server:1"},
		"image-just-now": {"the kubelet swaps the two words with every attempt", main, `
phase: Pending
containerStatuses: [{name: main, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: ErrImagePull, message: "rpc error: hunter2"}}}]
`, "Pod a/p: container main: ImagePullBackOff, image quay.io/example/server:1"},
		"crash": {"exit code and restarts, not the last words", main, `
phase: Running
containerStatuses:
- {name: main, ready: false, started: false, restartCount: 7, image: i, imageID: i, state: {waiting: {reason: CrashLoopBackOff, message: "back-off 5m0s restarting failed container=main pod=p_a(uid)"}}, lastState: {terminated: {exitCode: 3, reason: Error, message: "panic: password hunter2", startedAt: "2026-01-02T03:04:05Z", finishedAt: "2026-01-02T03:04:06Z"}}}
`, "Pod a/p: container main: CrashLoopBackOff, exit code 3, 7 restarts"},
		"crash-running": {"between two ends it is the same", main, `
phase: Running
containerStatuses:
- {name: main, ready: false, started: true, restartCount: 7, image: i, imageID: i, state: {running: {startedAt: "2026-01-02T03:04:05Z"}}, lastState: {terminated: {exitCode: 3, reason: Error}}}
`, "Pod a/p: container main: CrashLoopBackOff, exit code 3, 7 restarts"},
		"crash-first": {"it has ended once", main, `
phase: Running
containerStatuses: [{name: main, ready: false, started: false, restartCount: 0, image: i, imageID: i, state: {terminated: {exitCode: 1, reason: Error, message: hunter2}}}]
`, "Pod a/p: container main: Error, exit code 1"},
		"oom": {"the kernel's word counts more than the kubelet's", main, `
phase: Running
containerStatuses:
- {name: main, ready: false, started: false, restartCount: 1, image: i, imageID: i, state: {waiting: {reason: CrashLoopBackOff, message: back-off}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}
`, "Pod a/p: container main: OOMKilled, exit code 137, 1 restart"},
		"no-binary": {"what the runtime says is in Text", main, `
phase: Running
containerStatuses:
- {name: main, ready: false, started: false, restartCount: 2, image: i, imageID: i, state: {waiting: {reason: RunContainerError, message: 'exec: "/hunter2": no such file'}}, lastState: {terminated: {exitCode: 128, reason: StartError}}}
`, "Pod a/p: container main: RunContainerError, exit code 128, 2 restarts"},
		"no-configmap": {"which one, by what the spec refers to", `
containers:
- {name: main, image: i, envFrom: [{configMapRef: {name: other}}, {configMapRef: {name: settings}}]}
`, `
phase: Pending
containerStatuses: [{name: main, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: CreateContainerConfigError, message: 'configmap "settings" not found'}}}]
`, "Pod a/p: container main: CreateContainerConfigError, ConfigMap a/settings does not exist"},
		"no-key": {"which key of which Secret", `
containers:
- {name: main, image: i, env: [{name: P, valueFrom: {secretKeyRef: {name: login, key: password}}}]}
`, `
phase: Pending
containerStatuses: [{name: main, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: CreateContainerConfigError, message: "couldn't find key password in Secret a/login"}}}]
`, "Pod a/p: container main: CreateContainerConfigError, Secret a/login has no key password"},
		"no-reference": {"a name that the spec does not have is not repeated", main, `
phase: Pending
containerStatuses: [{name: main, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: CreateContainerConfigError, message: 'secret "hunter2" not found'}}}]
`, "Pod a/p: container main: CreateContainerConfigError"},
		"root": {"known words of the kubelet", main, `
phase: Pending
containerStatuses: [{name: main, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: CreateContainerConfigError, message: 'container has runAsNonRoot and image will run as root (pod: "p_a(uid)", container: main)'}}}]
`, "Pod a/p: container main: CreateContainerConfigError, runAsNonRoot is set, and the image runs as root or as a user without a number"},
		"init-hangs": {"nothing else starts before it ends", `
initContainers: [{name: done, image: i}, {name: wait, image: i}]
containers: [{name: main, image: i}]
`, `
phase: Pending
initContainerStatuses:
- {name: done, ready: true, restartCount: 0, image: i, imageID: i, state: {terminated: {exitCode: 0, reason: Completed}}}
- {name: wait, ready: false, started: true, restartCount: 0, image: i, imageID: i, state: {running: {startedAt: "2026-01-02T03:04:05Z"}}}
containerStatuses: [{name: main, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: PodInitializing}}}]
`, "Pod a/p: init container wait: InitContainerRunning, has not ended"},
		"init-crashes": {"the init container and not the one that waits for it", `
initContainers: [{name: migrate, image: i}]
containers: [{name: main, image: i}]
`, `
phase: Pending
initContainerStatuses: [{name: migrate, ready: false, restartCount: 4, image: i, imageID: i, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 2, reason: Error}}}]
containerStatuses: [{name: main, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: PodInitializing}}}]
`, "Pod a/p: init container migrate: CrashLoopBackOff, exit code 2, 4 restarts"},
		"sidecar": {"a sidecar that runs holds nothing up", `
initContainers: [{name: proxy, image: i, restartPolicy: Always}]
containers: [{name: main, image: i, readinessProbe: {httpGet: {port: 80}}}]
`, `
phase: Running
initContainerStatuses: [{name: proxy, ready: true, started: true, restartCount: 0, image: i, imageID: i, state: {running: {}}}]
containerStatuses: [{name: main, ready: false, started: true, restartCount: 0, image: i, imageID: i, state: {running: {}}}]
`, "Pod a/p: container main: ReadinessProbeFailing"},
		"startup": {"the probe that has to pass first", `
containers: [{name: main, image: i, startupProbe: {httpGet: {port: 80}}, readinessProbe: {httpGet: {port: 80}}}]
`, `
phase: Running
containerStatuses: [{name: main, ready: false, started: false, restartCount: 0, image: i, imageID: i, state: {running: {}}}]
`, "Pod a/p: container main: StartupProbeFailing"},
		"gate": {"somebody else has to set the condition", main + `
readinessGates: [{conditionType: target-health.example.com/ready}]
`, `
phase: Running
conditions: [{type: Ready, status: "False", reason: ReadinessGatesNotReady}]
containerStatuses: [{name: main, ready: true, started: true, restartCount: 0, image: i, imageID: i, state: {running: {}}}]
`, "Pod a/p: ReadinessGate, its condition target-health.example.com/ready is not True"},
		"creating": {"what it waits for is in Events", main, `
phase: Pending
conditions: [{type: PodScheduled, status: "True"}]
containerStatuses: [{name: main, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: ContainerCreating}}}]
`, "Pod a/p: ContainerCreating"},
		"new":     {"nobody has looked at it yet", main, `{phase: Pending}`, "Pod a/p: Starting"},
		"evicted": {"the word of the kubelet", main, `{phase: Failed, reason: Evicted, message: "The node was low on resource: memory. hunter2"}`, "Pod a/p: Evicted"},
		"failed": {"a Pod of a Job", main, `
phase: Failed
containerStatuses: [{name: main, ready: false, restartCount: 0, image: i, imageID: i, state: {terminated: {exitCode: 9, reason: Error, message: hunter2}}}]
`, "Pod a/p: container main: Error, exit code 9"},
		"odd-reason": {"a reason that is no word is not repeated", main, `
phase: Pending
containerStatuses: [{name: main, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: "hunter2 is the password"}}}]
`, "Pod a/p: container main: Waiting"},
	} {
		t.Run(name, func(t *testing.T) {
			found, known := cause.OfPods([]corev1.Pod{pod(t, "p", tc.spec, tc.status)})
			if got := said(found, known); got != tc.want {
				t.Errorf("%s:\n got %q\nwant %q", tc.reason, got, tc.want)
			}
			if strings.Contains(fmt.Sprintf("%s %s %s", found.Reason, found.Container, found), secret) {
				t.Errorf("%q has what a component wrote", found)
			}
		})
	}
}

// TestWorst: if Pods have several causes, the worst cause is reported.
func TestWorst(t *testing.T) {
	crash := func(name string, restarts int) corev1.Pod {
		return pod(t, name, main, fmt.Sprintf(`
phase: Running
containerStatuses: [{name: main, ready: false, restartCount: %d, image: i, imageID: i, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]
`, restarts))
	}
	image := pod(t, "image", main, `
phase: Pending
containerStatuses: [{name: main, ready: false, restartCount: 0, image: i, imageID: "", state: {waiting: {reason: ImagePullBackOff}}}]
`)
	waiting := pod(t, "waiting", main, `{phase: Pending}`)
	leaving := crash("leaving", 99)
	leaving.DeletionTimestamp = &waiting.CreationTimestamp
	for name, tc := range map[string]struct {
		reason string
		pods   []corev1.Pod
		want   string
	}{
		"none":     {"nothing is known", nil, ""},
		"restarts": {"the most restarts, and how many are like it", []corev1.Pod{crash("a", 1), crash("b", 5), waiting}, "Pod a/b (and 1 more of 3): container main: CrashLoopBackOff, exit code 1, 5 restarts"},
		"names":    {"of equal ones always the same", []corev1.Pod{crash("b", 1), crash("a", 1)}, "Pod a/a (and 1 more of 2): container main: CrashLoopBackOff, exit code 1, 1 restart"},
		"tells":    {"what tells more", []corev1.Pod{waiting, crash("a", 5), image}, "Pod a/image: container main: ImagePullBackOff, image quay.io/example/server:1"},
		"leaving":  {"those that go do not count", []corev1.Pod{leaving, waiting}, "Pod a/waiting: Starting"},
		"all-go":   {"unless there is no other", []corev1.Pod{leaving}, "Pod a/leaving: container main: CrashLoopBackOff, exit code 1, 99 restarts"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := said(cause.OfPods(tc.pods)); got != tc.want {
				t.Errorf("%s:\n got %q\nwant %q", tc.reason, got, tc.want)
			}
		})
	}
}
