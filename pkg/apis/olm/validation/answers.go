package validation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// question is a question in the status of a revision. A user answers it with an annotation.
type question struct {
	annotation string
	// condition asks the question while it is True, and has one of reasons if reasons is set. Its
	// message ends with the annotation and the answer, as a user types them.
	condition string
	reasons   []string
}

// questions returns the questions whose answer must not be given before status asks. An early
// answer could allow a deletion that no user has seen, and Penstock would check the user's rights
// for the objects at that earlier time. BudgetExceeded and NotEmpty are reasons of the engine; the
// message of another reason may have text of other writers.
func questions() []question {
	return []question{
		{annotation: v1alpha1.AcknowledgeDeletionAnnotation, condition: v1alpha1.ConditionStalled, reasons: []string{"BudgetExceeded", "NotEmpty"}},
		{annotation: v1alpha1.ReleaseHoldAnnotation, condition: v1alpha1.ConditionHeld},
	}
}

// validateAnswers refuses new answers that the stored status of the revision does not ask for. old
// is empty for a new revision, whose status asks for nothing. A user who resumes a paused revision,
// or approves it for later, may acknowledge the removed objects of a diff by their digest.
func validateAnswers(updated, old *olm.ClusterExtensionRevision, removed []string) field.ErrorList {
	var errs field.ErrorList
	for _, q := range questions() {
		path := field.NewPath("metadata", "annotations").Key(q.annotation)
		known := map[string]bool{q.asks(old): true}
		if q.annotation == v1alpha1.AcknowledgeDeletionAnnotation && (Unpauses(updated, old) || ApprovesLater(updated, old)) {
			for _, digest := range removed {
				known[digest] = true
			}
		}
		for _, answer := range answersIn(old.Annotations[q.annotation]) {
			known[answer] = true
		}
		for _, answer := range answersIn(updated.Annotations[q.annotation]) {
			if !known[answer] {
				errs = append(errs, field.Invalid(path, answer, q.expects(old)))
				break
			}
		}
	}
	return errs
}

// Unpauses reports whether an update resumes a paused revision.
func Unpauses(updated, old *olm.ClusterExtensionRevision) bool {
	return old.Spec.LifecycleState == olm.LifecycleStatePaused && updated.Spec.LifecycleState == olm.LifecycleStateActive
}

// ApprovesLater reports whether an update approves a proposal for a later time: it sets or changes
// the time or the diff.
func ApprovesLater(updated, old *olm.ClusterExtensionRevision) bool {
	differs := func(key string) bool { return updated.Annotations[key] != old.Annotations[key] }
	return WaitsForApproval(old) && updated.Spec.LifecycleState == olm.LifecycleStatePaused && updated.Annotations[v1alpha1.ApproveNotBeforeAnnotation] != "" &&
		(differs(v1alpha1.ApproveNotBeforeAnnotation) || differs(v1alpha1.ApproveAnnotation))
}

// WaitsForApproval reports whether a revision is a proposal that no user has approved. It was never
// resumed, so none of its objects are in the cluster, even if a user changed other fields of its
// spec.
func WaitsForApproval(revision *olm.ClusterExtensionRevision) bool {
	return revision.Annotations[v1alpha1.ProposedAnnotation] == "true" && revision.Spec.LifecycleState == olm.LifecycleStatePaused
}

// answersIn returns the answers in the value of an annotation.
func answersIn(value string) []string {
	var answers []string
	for answer := range strings.SplitSeq(value, ",") {
		if answer = strings.TrimSpace(answer); answer != "" {
			answers = append(answers, answer)
		}
	}
	return answers
}

// asks returns the answer that status asks for, or "".
func (q question) asks(revision *olm.ClusterExtensionRevision) string {
	said := meta.FindStatusCondition(revision.Status.Conditions, q.condition)
	if said == nil || said.Status != metav1.ConditionTrue || len(q.reasons) > 0 && !slices.Contains(q.reasons, said.Reason) {
		return ""
	}
	_, answer, found := strings.Cut(said.Message[strings.LastIndex(said.Message, " ")+1:], q.annotation+"=")
	if !found {
		return ""
	}
	return answer
}

func (q question) expects(old *olm.ClusterExtensionRevision) string {
	condition := q.condition
	if len(q.reasons) > 0 {
		condition += ", reason " + strings.Join(q.reasons, " or ")
	}
	asked := q.asks(old)
	switch {
	case old.Name == "":
		return fmt.Sprintf("must not be set when a revision is created: it answers condition %s, once that condition asks for it", condition)
	case asked == "":
		return fmt.Sprintf("must be the value that status of this revision asks for in condition %s, which asks for nothing at the moment", condition)
	default:
		return fmt.Sprintf("must be %q, as status of this revision asks in condition %s", asked, condition)
	}
}
