package chain

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// available reports whether the objects for which a layer is responsible are available.
func (w *writer) available(found finding, leads bool, own share, message string) {
	part := reasonSuperseded
	if own.superseded == 0 {
		part = reasonPaused
	}
	before := meta.FindStatusCondition(w.status.Conditions, olmv1alpha1.ConditionAvailable)
	switch {
	case own.none() && (!leads || own.superseded > 0):
		w.set(olmv1alpha1.ConditionAvailable, false, part, message)
	case own.whole() && found.layer.Complete:
		w.set(olmv1alpha1.ConditionAvailable, true, reasonRolledOut, own.String())
	case found.layer.Complete || !leads && own.complete:
		w.set(olmv1alpha1.ConditionAvailable, true, part, clip(own.String()))
	case found.layer.Unknown && before != nil && before.Status != metav1.ConditionFalse:
		// It was available, and no failure is known.
		w.say(olmv1alpha1.ConditionAvailable, metav1.ConditionUnknown, reasonUnknown, message)
	default:
		w.set(olmv1alpha1.ConditionAvailable, false, reasonUnavailable, message)
	}
}

// describeIdle describes a layer that must not progress, because it is paused or a newer layer replaces
// it. A user asked for that, so the layer is not Stalled, and clients need not wait for Ready.
// Progressing has the reason.
func (w *writer) describeIdle(message string) {
	because := meta.FindStatusCondition(w.status.Conditions, olmv1alpha1.ConditionProgressing)
	reason, why := because.Reason, because.Message
	w.set(olmv1alpha1.ConditionStalled, false, reason, why)
	available := meta.FindStatusCondition(w.status.Conditions, olmv1alpha1.ConditionAvailable)
	switch {
	case reason == reasonPaused, available.Status == metav1.ConditionTrue, available.Reason == reasonSuperseded:
		w.set(olmv1alpha1.ConditionReady, true, reason, why)
	default:
		w.say(olmv1alpha1.ConditionReady, available.Status, available.Reason, message)
	}
}

func isPaused(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused
}
