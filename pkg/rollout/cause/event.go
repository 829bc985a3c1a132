package cause

import (
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// NeedsEvents reports whether Events of the object can refine the cause.
func (c Cause) NeedsEvents() bool {
	switch c.Reason {
	case "ContainerCreating", ReadinessProbeFailing, StartupProbeFailing, NoPods, ClaimNotBound:
		return true
	}
	return false
}

// ByEvents refines a cause with Warning Events of its object. pod is the Pod of the cause, or nil.
func (c Cause) ByEvents(events []corev1.Event, pod *corev1.Pod) Cause {
	newest := slices.Clone(events)
	slices.SortStableFunc(newest, func(a, b corev1.Event) int { return seenAt(&b).Compare(seenAt(&a)) })
	for i := range newest {
		if better, found := c.byEvent(&newest[i], pod); found {
			return better
		}
	}
	return c
}

func (c Cause) byEvent(event *corev1.Event, pod *corev1.Pod) (Cause, bool) {
	if event.Type != corev1.EventTypeWarning {
		return c, false
	}
	switch reason := event.Reason; {
	case c.Reason == "ContainerCreating" && pod != nil:
		switch reason {
		case "FailedMount", "FailedAttachVolume", "FailedMapVolume", "FailedCreatePodSandBox", "NetworkNotReady", "FailedPrepareDynamicResources":
			c.Reason = reason
			if found, ok := lacking(mounted(pod), pod.Namespace, event.Message); ok {
				c.Related, c.Facts = &found.id, found.facts
			}
			return c.because(event.Message), true
		}
	case c.Reason == ReadinessProbeFailing && reason == "Unhealthy" && strings.HasPrefix(event.Message, "Readiness probe"),
		c.Reason == StartupProbeFailing && reason == "Unhealthy" && strings.HasPrefix(event.Message, "Startup probe"):
		c.Facts = answered(event.Message)
		return c.because(event.Message), true
	case c.Reason == NoPods && reason == "FailedCreate":
		c.Reason = reason
		return refused(c, c.Object.Namespace, event.Message), true
	case c.Reason == ClaimNotBound && (reason == "ProvisioningFailed" || reason == "FailedBinding" || reason == "ClaimLost"):
		c.Reason = reason
		if class, found := between(event.Message, `storageclass.storage.k8s.io "`, `"`, "not found"); found {
			c.Related, c.Facts = &manifest.ID{Group: "storage.k8s.io", Kind: "StorageClass", Name: class}, "does not exist"
		}
		return c.because(event.Message), true
	}
	return c, false
}

// statusCode matches the kubelet's message about the HTTP status of a probe.
var statusCode = regexp.MustCompile(`HTTP probe failed with statuscode: (\d{3})\b`)

// answered describes the failure of a probe in our words.
func answered(written string) string {
	if code := statusCode.FindStringSubmatch(written); code != nil {
		return "is answered HTTP " + code[1]
	}
	switch {
	case strings.Contains(written, "connection refused"):
		return "nothing listens on its port"
	case strings.Contains(written, "context deadline exceeded"), strings.Contains(written, "timed out"), strings.Contains(written, "i/o timeout"):
		return "is not answered in time"
	}
	return ""
}

func seenAt(event *corev1.Event) time.Time {
	at := event.LastTimestamp.Time
	if event.EventTime.After(at) {
		at = event.EventTime.Time
	}
	if event.Series != nil && event.Series.LastObservedTime.After(at) {
		at = event.Series.LastObservedTime.Time
	}
	return at
}

// OfMissingPods returns the cause of a workload, or of its ReplicaSet, without Pods.
func OfMissingPods(id manifest.ID) Cause { return Cause{Reason: NoPods, Object: id} }
