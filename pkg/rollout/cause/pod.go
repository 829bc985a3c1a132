package cause

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Ranks of findings: a higher rank is more informative.
const (
	rankReady = iota
	rankStarting
	rankCreating
	rankGate
	rankProbe
	rankInit
	rankEnded
	rankUnscheduled
	rankContainer
	rankCrash
	rankImage
	rankConfig
)

type finding struct {
	Cause
	rank int
}

// OfPods returns the most informative cause among the Pods of one workload, and the number of Pods
// with this cause. It returns false if all Pods are fine. Pods that are being deleted count only if
// the workload has no other Pods.
func OfPods(pods []corev1.Pod) (Cause, bool) {
	live := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if len(live) == 0 {
		live = pods
	}
	findings := make([]finding, 0, len(live))
	for i := range live {
		if f := ofPod(&live[i]); f.rank > rankReady {
			findings = append(findings, f)
		}
	}
	if len(findings) == 0 {
		return Cause{}, false
	}
	worst := slices.MaxFunc(findings, func(a, b finding) int {
		return cmp.Or(a.rank-b.rank, int(a.Restarts-b.Restarts), -cmp.Compare(a.Object.Name, b.Object.Name))
	})
	worst.Pods = len(live)
	for _, f := range findings {
		if f.Reason == worst.Reason && f.Container == worst.Container && f.rank == worst.rank {
			worst.Alike++
		}
	}
	return worst.Cause, true
}

func ofPod(pod *corev1.Pod) finding {
	base := Cause{Object: PodID(pod)}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return finding{rank: rankReady}
	case corev1.PodFailed:
		return failedPod(pod, base)
	}
	if c := condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return finding{unscheduled(pod, base, c), rankUnscheduled}
	}
	if f, found := initContainers(pod, base); found {
		return f
	}
	return containers(pod, base)
}

// PodID returns the identity of a Pod.
func PodID(pod *corev1.Pod) manifest.ID {
	return manifest.ID{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}
}

// failedPod returns the finding about a Pod that failed: by a container, or as a whole.
func failedPod(pod *corev1.Pod, base Cause) finding {
	if camelCase.MatchString(pod.Status.Reason) { // such as Evicted
		base.Reason = pod.Status.Reason
		return finding{base.because(pod.Status.Message), rankEnded}
	}
	for _, list := range []struct {
		init     bool
		statuses []corev1.ContainerStatus
	}{{true, pod.Status.InitContainerStatuses}, {false, pod.Status.ContainerStatuses}} {
		for i := range list.statuses {
			if ended := list.statuses[i].State.Terminated; ended != nil && ended.ExitCode != 0 {
				return finding{exited(inContainer(base, &list.statuses[i], list.init), ended, "Error"), rankEnded}
			}
		}
	}
	base.Reason = "Failed"
	return finding{base.because(pod.Status.Message), rankEnded}
}

// initContainers finds the first init container that is not finished. The kubelet starts them one
// after the other. A sidecar counts as finished once it has started.
func initContainers(pod *corev1.Pod, base Cause) (finding, bool) {
	statuses := byName(pod.Status.InitContainerStatuses)
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		status := statuses[spec.Name]
		sidecar := ptr.Deref(spec.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways
		switch {
		case status == nil:
			return finding{}, false // the kubelet has not processed the Pod yet
		case sidecar && ptr.Deref(status.Started, false):
			continue
		case !sidecar && status.State.Terminated != nil && status.State.Terminated.ExitCode == 0:
			continue
		}
		c := inContainer(base, status, true)
		if f, found := trouble(pod, spec, status, c); found {
			return f, true
		}
		if status.State.Running != nil {
			c.Reason, c.Facts = InitContainerRunning, "has not ended"
			if sidecar {
				c.Reason, c.Facts = StartupProbeFailing, ""
			}
			return finding{c, rankInit}, true
		}
		return finding{}, false
	}
	return finding{}, false
}

// containers returns the worst finding among the containers of a Pod.
func containers(pod *corev1.Pod, base Cause) finding {
	statuses := byName(pod.Status.ContainerStatuses)
	worst := finding{rank: rankReady}
	for i := range pod.Spec.Containers {
		spec := &pod.Spec.Containers[i]
		status := statuses[spec.Name]
		if status == nil {
			continue
		}
		if f := ofContainer(pod, spec, status, inContainer(base, status, false)); f.rank > worst.rank {
			worst = f
		}
	}
	if worst.rank > rankReady {
		return worst
	}
	if c := condition(pod, corev1.PodReady); c != nil && c.Status == corev1.ConditionTrue {
		return worst
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if c := condition(pod, gate.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			base.Reason, base.Facts = ReadinessGate, "its condition "+word(string(gate.ConditionType))+" is not True"
			return finding{base, rankGate}
		}
	}
	base.Reason = Starting
	return finding{base, rankStarting}
}

func ofContainer(pod *corev1.Pod, spec *corev1.Container, status *corev1.ContainerStatus, c Cause) finding {
	if f, found := trouble(pod, spec, status, c); found {
		return f
	}
	switch {
	case status.State.Running != nil && status.Ready:
		return finding{rank: rankReady}
	case status.State.Running != nil && spec.StartupProbe != nil && !ptr.Deref(status.Started, true):
		c.Reason = StartupProbeFailing
		return finding{c, rankProbe}
	case status.State.Running != nil && spec.ReadinessProbe != nil:
		c.Reason = ReadinessProbeFailing
		return finding{c, rankProbe}
	}
	return finding{rank: rankReady}
}

// trouble returns a finding if a container does not start, or ends.
func trouble(pod *corev1.Pod, spec *corev1.Container, status *corev1.ContainerStatus, c Cause) (finding, bool) {
	last := status.LastTerminationState.Terminated
	if ended := status.State.Terminated; ended != nil {
		if ended.ExitCode != 0 {
			return finding{exited(c, ended, "Error"), rankCrash}, true
		}
		return finding{}, false
	}
	if waiting := status.State.Waiting; waiting != nil {
		return waits(pod, spec, waiting, last, c)
	}
	if last != nil && (last.ExitCode != 0 || last.Reason == OOMKilled) && !status.Ready && status.RestartCount > 0 {
		// It is running for a moment, between two crashes.
		return finding{crashing(c, last), rankCrash}, true
	}
	return finding{}, false
}

func waits(pod *corev1.Pod, spec *corev1.Container, waiting *corev1.ContainerStateWaiting, last *corev1.ContainerStateTerminated, c Cause) (finding, bool) {
	switch waiting.Reason {
	case "", "PodInitializing":
		return finding{}, false
	case "ContainerCreating":
		c.Container, c.Init, c.Restarts, c.Reason = "", false, 0, waiting.Reason
		return finding{c, rankCreating}, true
	case CrashLoopBackOff:
		if last != nil {
			return finding{crashing(c, last), rankCrash}, true
		}
		c.Reason = CrashLoopBackOff
		return finding{c, rankCrash}, true
	case "ErrImagePull", "ImagePullBackOff", "ImageInspectError", "ErrImageNeverPull", "InvalidImageName", "RegistryUnavailable", "SignatureValidationFailed":
		if c.Reason = waiting.Reason; c.Reason == "ErrImagePull" {
			c.Reason = "ImagePullBackOff" // the kubelet alternates between these two reasons
		}
		c.Image = spec.Image
		return finding{c.because(waiting.Message), rankImage}, true
	case "CreateContainerConfigError":
		c.Reason = waiting.Reason
		return finding{misconfigured(pod, spec, c, waiting.Message), rankConfig}, true
	}
	c.Reason = reasonOr(waiting.Reason, "Waiting")
	if last != nil {
		c.ExitCode = ptr.To(last.ExitCode)
	}
	return finding{c.because(waiting.Message), rankContainer}, true
}

func exited(c Cause, ended *corev1.ContainerStateTerminated, otherwise string) Cause {
	c.ExitCode = ptr.To(ended.ExitCode)
	c.Reason = otherwise
	if ended.Reason == OOMKilled || otherwise != "" {
		c.Reason = reasonOr(ended.Reason, otherwise)
	}
	return c.because(ended.Message)
}

// crashing returns the cause of a container that has crashed and will crash again.
func crashing(c Cause, last *corev1.ContainerStateTerminated) Cause {
	if c = exited(c, last, ""); c.Reason != OOMKilled {
		c.Reason = CrashLoopBackOff
	}
	return c
}

func inContainer(c Cause, status *corev1.ContainerStatus, init bool) Cause {
	c.Container, c.Init, c.Restarts = status.Name, init, status.RestartCount
	return c
}

func byName(statuses []corev1.ContainerStatus) map[string]*corev1.ContainerStatus {
	named := make(map[string]*corev1.ContainerStatus, len(statuses))
	for i := range statuses {
		named[statuses[i].Name] = &statuses[i]
	}
	return named
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
