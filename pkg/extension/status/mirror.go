package status

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

// said is a condition without its type and times.
type said struct {
	status          metav1.ConditionStatus
	reason, message string
}

// Reasons of revisions that this package distinguishes. Other reasons are copied.
const (
	revisionDeadline  = "ProgressDeadlineExceeded"
	revisionFrozen    = "Frozen"
	revisionInvalid   = "Invalid"
	revisionManifests = "InvalidManifests"
	objectCollision   = "Collision"
	objectProbe       = "ProbeFailed"
	objectWaiting     = "Waiting"
	objectPaused      = "Paused"
)

const maxRevisions = 8

// available returns the condition Available of a revision, with OLM v1's texts.
func (r revision) available() said {
	condition := r.condition(olmv1alpha1.ConditionAvailable)
	switch {
	case condition == nil:
		return r.rollingOut(metav1.ConditionFalse)
	case condition.Status == metav1.ConditionTrue:
		return said{metav1.ConditionTrue, ReasonProbesSucceeded, "Objects are available and pass all probes."}
	case condition.Status == metav1.ConditionUnknown:
		return said{metav1.ConditionUnknown, ReasonReconciling, condition.Message}
	}
	if failed := r.failed(); failed != "" {
		return said{metav1.ConditionUnknown, ReasonReconciling, failed}
	}
	if probes := r.probes(); probes != "" {
		return said{metav1.ConditionFalse, ReasonProbeFailure, probes}
	}
	if r.is(olmv1alpha1.ConditionSucceeded) {
		return said{metav1.ConditionFalse, ReasonProbeFailure, condition.Message}
	}
	return r.rollingOut(metav1.ConditionFalse)
}

// progressing returns the condition Progressing of a revision, with OLM v1's texts.
func (r revision) progressing() said {
	progressing, stalled := r.condition(olmv1alpha1.ConditionProgressing), r.condition(olmv1alpha1.ConditionStalled)
	switch {
	case proposed(r):
		return said{metav1.ConditionFalse, ReasonBlocked, "Revision " + r.version() + " is proposed and waits for approval."}
	case r.paused():
		return said{metav1.ConditionFalse, ReasonBlocked, "Revision " + r.version() + " is paused."}
	case r.is(olmv1alpha1.ConditionStalled) && stalled.Reason == revisionDeadline:
		return said{metav1.ConditionFalse, ReasonProgressDeadlineExceeded, fmt.Sprintf("Revision has not rolled out for %d minute(s). Last status: %s",
			r.Spec.ProgressDeadlineMinutes, r.rollingOut(metav1.ConditionTrue).message)}
	case progressing != nil && progressing.Reason == revisionFrozen:
		return said{metav1.ConditionFalse, ReasonBlocked, progressing.Message}
	}
	if failed := r.failed(); failed != "" {
		return said{metav1.ConditionTrue, ReasonRetrying, failed}
	}
	if r.is(olmv1alpha1.ConditionSucceeded) {
		return said{metav1.ConditionTrue, ReasonSucceeded, fmt.Sprintf("Revision %s has rolled out.", r.version())}
	}
	return r.rollingOut(metav1.ConditionTrue)
}

func (r revision) rollingOut(status metav1.ConditionStatus) said {
	return said{status, ReasonRollingOut, fmt.Sprintf("Revision %s is rolling out.", r.version())}
}

// failed returns OLM v1's message for an error that its engine retries: any failure except failing
// probes. It is empty without a failure.
func (r revision) failed() string {
	if failing := r.condition(olmv1alpha1.ConditionFailing); failing != nil && failing.Status == metav1.ConditionTrue {
		switch failing.Reason {
		case revisionInvalid, revisionManifests:
			return "revision validation error: " + failing.Message
		}
	}
	for i, phase := range r.Status.Phases {
		var collisions []string
		for _, object := range phase.Failing {
			switch object.Reason {
			case objectProbe, objectWaiting, objectPaused, revisionFrozen:
			case objectCollision:
				collisions = append(collisions, objectOf(object)+": "+object.Message)
			default:
				return objectOf(object) + ": " + object.Message
			}
		}
		if len(collisions) > 0 {
			return fmt.Sprintf("revision object collisions in phase %d\n%s", i, strings.Join(collisions, "\n\n"))
		}
	}
	failing := r.condition(olmv1alpha1.ConditionFailing)
	if failing == nil || failing.Status != metav1.ConditionTrue || failing.Reason == objectProbe {
		return ""
	}
	return failing.Message
}

// probes names the first object of each phase whose probe fails, as OLM v1 does.
func (r revision) probes() string {
	var lines []string
	for _, phase := range r.Status.Phases {
		for _, object := range phase.Failing {
			if object.Reason == objectProbe {
				lines = append(lines, fmt.Sprintf("Object %s.%s %s/%s: %s", object.Kind, object.APIVersion, object.Namespace, object.Name, object.Message))
				break
			}
		}
	}
	return strings.Join(lines, "\n")
}

// objectOf formats the name of an object as in all messages of Penstock.
func objectOf(object olmv1alpha1.ObjectFailure) string {
	if object.Namespace == "" {
		return object.Kind + " " + object.Name
	}
	return object.Kind + " " + object.Namespace + "/" + object.Name
}

// activeRevisions lists the installed revision, and the other revisions with their conditions,
// oldest first. It keeps the transition times of conditions.
func (w *writer) activeRevisions(v view) {
	before := map[string][]metav1.Condition{}
	for _, one := range w.status.ActiveRevisions {
		before[one.Name] = one.Conditions
	}
	w.status.ActiveRevisions = nil
	if v.installed != nil {
		w.status.ActiveRevisions = append(w.status.ActiveRevisions, extension.ActiveRevision{Name: v.installed.Name})
	}
	rolling := v.rolling
	if v.proposal != nil {
		rolling = append(rolling[:len(rolling):len(rolling)], *v.proposal)
	}
	// Only the newest are listed. The definition limits the list, and each entry has two messages.
	rolling = rolling[max(0, len(rolling)-maxRevisions+len(w.status.ActiveRevisions)):]
	for _, r := range rolling {
		active := extension.ActiveRevision{Name: r.Name, Conditions: append([]metav1.Condition(nil), before[r.Name]...)}
		w.setIn(&active.Conditions, Available, r.available())
		w.setIn(&active.Conditions, Progressing, r.progressing())
		w.status.ActiveRevisions = append(w.status.ActiveRevisions, active)
	}
}
