package chain

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// unusableTarget describes a revision whose cluster is unknown or unavailable. The objects may
// still be as they were.
func (w *writer) unusableTarget(err error) {
	message := clip(err.Error())
	before := meta.FindStatusCondition(w.status.Conditions, olmv1alpha1.ConditionAvailable)
	if before != nil && before.Status != metav1.ConditionFalse {
		w.say(olmv1alpha1.ConditionAvailable, metav1.ConditionUnknown, reasonTargetUnavailable, message)
	} else {
		w.set(olmv1alpha1.ConditionAvailable, false, reasonTargetUnavailable, message)
	}
	if !w.is(olmv1alpha1.ConditionSucceeded) {
		w.set(olmv1alpha1.ConditionSucceeded, false, reasonNotYet, "the rollout has not been complete yet")
	}
	// The deadline of the rollout does not count during this time, as during a freeze.
	w.set(olmv1alpha1.ConditionProgressing, false, reasonTargetUnavailable, message)
	for _, kind := range []string{olmv1alpha1.ConditionFailing, olmv1alpha1.ConditionStalled} {
		if needsPerson(err) {
			w.set(kind, true, reasonTargetUnavailable, message)
		} else {
			w.set(kind, false, reasonTargetUnavailable, message)
		}
	}
	w.ready(message, share{})
}

func (w *writer) invalid(err error) {
	reason, message := reasonOf(err), err.Error()
	if reason == reasonInvalid {
		message = clip(message)
	}
	for _, kind := range []string{olmv1alpha1.ConditionReady, olmv1alpha1.ConditionAvailable, olmv1alpha1.ConditionProgressing} {
		w.set(kind, false, reason, message)
	}
	for _, kind := range []string{olmv1alpha1.ConditionFailing, olmv1alpha1.ConditionStalled} {
		w.set(kind, true, reason, message)
	}
}
