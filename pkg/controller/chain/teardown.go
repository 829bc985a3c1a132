package chain

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/text"
)

// gone describes a revision that is archived or being deleted.
func (w *writer) gone(revision *olmv1alpha1.ClusterExtensionRevision, found finding) {
	for i := range w.status.Phases {
		phase := &w.status.Phases[i]
		*phase = olmv1alpha1.PhaseStatus{Name: phase.Name, State: olmv1alpha1.PhaseStateArchived, Objects: phase.Objects, StartedAt: phase.StartedAt, AvailableAt: phase.AvailableAt}
	}
	reason, message := reasonArchived, "the revision is archived"
	if !revision.DeletionTimestamp.IsZero() {
		reason, message = reasonTearingDown, "the revision is being deleted"
		switch {
		case withdrawn(revision):
			message = "the proposal is withdrawn"
		case removed(revision):
			message = "the revision is removed by retention"
		}
	}
	w.set(olmv1alpha1.ConditionAvailable, false, reason, message)
	if !w.is(olmv1alpha1.ConditionSucceeded) {
		w.set(olmv1alpha1.ConditionSucceeded, false, reason, message)
	}
	switch {
	case len(found.leaving) > 0 && found.freeze != nil:
		w.set(olmv1alpha1.ConditionProgressing, true, reasonFrozen, clip(fmt.Sprintf(
			"%s; %s %s still to go", found.freeze, text.Count(len(found.leaving), "object"), verb(len(found.leaving)))))
	case len(found.leaving) > 0:
		w.set(olmv1alpha1.ConditionProgressing, true, reasonTearingDown,
			fmt.Sprintf("%s %s still to go: %s", text.Count(len(found.leaving), "object"), verb(len(found.leaving)), describe(found.leaving[0])))
	case found.remaining != nil && found.targetErr != nil:
		w.set(olmv1alpha1.ConditionProgressing, true, reasonTargetUnavailable, clip(found.targetErr.Error()))
	case found.remaining != nil:
		w.set(olmv1alpha1.ConditionProgressing, true, reasonTearingDown,
			clip(fmt.Sprintf("%s still has the content of this revision, until the revision that lists the object now reaches it", found.remaining)))
	default:
		w.set(olmv1alpha1.ConditionProgressing, false, reason, message)
	}
	w.given(revision, found, reason, message)
	if found.remaining != nil && found.targetErr != nil && needsPerson(found.targetErr) {
		for _, kind := range []string{olmv1alpha1.ConditionFailing, olmv1alpha1.ConditionStalled} {
			w.set(kind, true, reasonTargetUnavailable, clip(found.targetErr.Error()))
		}
		return
	}
	// A failure that requires an acknowledgement comes first, because users can answer only while
	// status shows the question.
	person := first(found.leaving, func(f rollout.Failure) bool { return f.Acknowledge != "" })
	if person == nil {
		person = first(found.leaving, func(f rollout.Failure) bool { return f.NeedsPerson })
	}
	w.fail(person, first(found.leaving, func(f rollout.Failure) bool { return f.Stuck }))
	if person != nil {
		w.set(olmv1alpha1.ConditionStalled, true, person.Reason, describe(*person))
	} else {
		w.set(olmv1alpha1.ConditionStalled, false, reasonNotStalled, nothingStalls)
	}
}

// given sets Ready to True for an archived revision without objects: it has reached the requested
// state. A revision that is being deleted is never Ready.
func (w *writer) given(revision *olmv1alpha1.ClusterExtensionRevision, found finding, reason, message string) {
	if len(found.leaving) == 0 && found.remaining == nil && revision.DeletionTimestamp.IsZero() {
		w.set(olmv1alpha1.ConditionReady, true, reason, message+": no object in the cluster belongs to it any more")
		return
	}
	if left := meta.FindStatusCondition(w.status.Conditions, olmv1alpha1.ConditionProgressing); left.Status == metav1.ConditionTrue {
		reason, message = left.Reason, left.Message
	}
	w.set(olmv1alpha1.ConditionReady, false, reason, message)
}

func first(failures []rollout.Failure, is func(rollout.Failure) bool) *rollout.Failure {
	if i := slices.IndexFunc(failures, is); i >= 0 {
		return &failures[i]
	}
	return nil
}
