package report

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// notAvailable is the problem of a workload that needs time, or a user's attention.
const notAvailable = "not available"

const maxNames = 20

// Workload is a workload that a revision expects.
type Workload struct {
	// Kind is Deployment, StatefulSet or DaemonSet.
	Kind, Namespace, Name string
	// None is true if the manifest requests zero replicas.
	None bool
}

// Kinds of workloads, of the group apps.
const (
	Deployment  = "Deployment"
	StatefulSet = "StatefulSet"
	DaemonSet   = "DaemonSet"
)

// Workloads are the known workloads of a custom resource.
type Workloads struct {
	// Unknown is the reason why the workloads or their states are unknown; empty otherwise.
	Unknown string
	// Installed is true if a revision exists.
	Installed bool
	Expected  []Workload
	// Find returns a workload; nil if it does not exist.
	Find func(Workload) *unstructured.Unstructured
}

// Volatile returns the part of the status that changes between passes: Ready and Progressing.
func Volatile(object *unstructured.Unstructured, workloads Workloads, now metav1.Time) []metav1.Condition {
	stored := StatusOf(object)
	return stamped(stored, now, workloads.ready(), progressing(object, stored))
}

func progressing(object *unstructured.Unstructured, stored Status) metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(Progressing, status, reason, message)
	}
	message := func(kind string) string { return stored.find(kind).Message }
	switch generation := object.GetGeneration(); {
	case object.GetDeletionTimestamp() != nil:
		return is(metav1.ConditionTrue, ReasonDeleting, "the installed objects are being deleted")
	// The observed generation is higher after a restore from a backup.
	case generation != stored.ObservedGeneration && stored.Is(Paused, metav1.ConditionTrue):
		return is(metav1.ConditionTrue, ReasonReconciling, "Reconciliation is paused by an annotation")
	case generation != stored.ObservedGeneration:
		return is(metav1.ConditionTrue, ReasonReconciling, "Reconciliation in progress")
	case stored.Is(Irreconcilable, metav1.ConditionTrue):
		return is(metav1.ConditionTrue, Irreconcilable, message(Irreconcilable))
	case stored.Is(ReleaseFailed, metav1.ConditionTrue):
		return is(metav1.ConditionTrue, ReleaseFailed, message(ReleaseFailed))
	case stored.Is(Deployed, metav1.ConditionUnknown):
		return is(metav1.ConditionTrue, ReasonReconciling, "Reconciliation in progress")
	default:
		return is(metav1.ConditionFalse, ReasonReconcileSuccessful, "Reconciliation completed")
	}
}

// ready is True when every workload that the revision expects is available.
func (w Workloads) ready() metav1.Condition {
	switch {
	case w.Unknown != "":
		return condition(Ready, metav1.ConditionUnknown, ReasonWorkloadsUnknown, w.Unknown)
	case !w.Installed:
		return condition(Ready, metav1.ConditionFalse, ReasonNoWorkloads, "No workloads found")
	case len(w.Expected) == 0:
		return condition(Ready, metav1.ConditionTrue, ReasonNoWorkloads, "No workloads are expected")
	}
	var missing []string
	for _, one := range w.Expected {
		if why, _ := one.problem(w.Find(one)); why != "" {
			missing = append(missing, one.Name+" ("+why+")")
		}
	}
	if len(missing) == 0 {
		return condition(Ready, metav1.ConditionTrue, ReasonWorkloadsReady, "All workloads are ready")
	}
	slices.Sort(missing)
	count, more := len(missing), ""
	if count > maxNames {
		missing, more = missing[:maxNames], ", ..."
	}
	return condition(Ready, metav1.ConditionFalse, ReasonWorkloadsNotReady,
		fmt.Sprintf("%d of %d workloads are not ready: %s%s", count, len(w.Expected), strings.Join(missing, ", "), more))
}

// IsSettling reports whether the only problem is that workload controllers have not observed the
// newest spec yet. That lasts some milliseconds after each change of a workload.
func (w Workloads) IsSettling() bool {
	if w.Unknown != "" || !w.Installed {
		return false
	}
	settling := false
	for _, one := range w.Expected {
		why, passes := one.problem(w.Find(one))
		if why != "" && !passes {
			return false
		}
		settling = settling || passes
	}
	return settling
}

// problem returns the reason why a workload is not available; empty if it is. The text does not
// change while the workload is unavailable. passes is true when the only reason is that the
// workload's controller has not observed the newest spec.
func (w Workload) problem(object *unstructured.Unstructured) (why string, passes bool) {
	if object == nil {
		return "missing", false
	}
	number := func(otherwise int64, path ...string) int64 {
		if value, found, err := unstructured.NestedInt64(object.Object, path...); found && err == nil {
			return value
		}
		return otherwise
	}
	wanted := number(1, "spec", "replicas")
	switch {
	case object.GetDeletionTimestamp() != nil:
		return "being deleted", false
	case w.Kind != DaemonSet && wanted == 0 && !w.None:
		return "scaled to zero", false
	case number(0, "status", "observedGeneration") < object.GetGeneration():
		return notAvailable, true
	case w.Kind == Deployment && !isAvailable(object),
		w.Kind == StatefulSet && number(0, "status", "availableReplicas") < wanted,
		w.Kind == DaemonSet && (number(0, "status", "desiredNumberScheduled") == 0 ||
			number(0, "status", "numberAvailable") < number(0, "status", "desiredNumberScheduled")):
		return notAvailable, false
	}
	return "", false
}

func isAvailable(object *unstructured.Unstructured) bool {
	return StatusOf(object).Is("Available", metav1.ConditionTrue)
}
