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

// question is a question in the status of a revision. A person answers it by an annotation.
type question struct {
	annotation string
	// condition that asks when it is True, with one of the reasons if some are given: its message
	// ends with the annotation and the answer, as one types them.
	condition string
	reasons   []string
}

// questions are those whose answer counts for one thing only. A user who knows the answer
// before the question could let something go on that nobody has seen yet, and be judged
// by what there is now. The reasons of the first one are those of the engine; other reasons
// of its condition have messages with words of others.
func questions() []question {
	return []question{
		{annotation: v1alpha1.AcknowledgeDeletionAnnotation, condition: v1alpha1.ConditionStalled, reasons: []string{"BudgetExceeded", "NotEmpty"}},
		{annotation: v1alpha1.ReleaseHoldAnnotation, condition: v1alpha1.ConditionHeld},
	}
}

// validateAnswers refuses answers that are new and that status of the revision, as it is
// stored, does not ask for; old is empty for a new revision, which asks for none. A user who
// lets a paused revision go on, or approves it for later, may acknowledge what a diff with an earlier one showed as
// removed, by its digest.
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

// Unpauses tells whether an update lets a paused revision go on.
func Unpauses(updated, old *olm.ClusterExtensionRevision) bool {
	return old.Spec.LifecycleState == olm.LifecycleStatePaused && updated.Spec.LifecycleState == olm.LifecycleStateActive
}

// ApprovesLater tells whether an update approves a proposal for a later time: it names the time, or the
// diff, that was not named before.
func ApprovesLater(updated, old *olm.ClusterExtensionRevision) bool {
	differs := func(key string) bool { return updated.Annotations[key] != old.Annotations[key] }
	return WaitsForApproval(old) && updated.Spec.LifecycleState == olm.LifecycleStatePaused && updated.Annotations[v1alpha1.ApproveNotBeforeAnnotation] != "" &&
		(differs(v1alpha1.ApproveNotBeforeAnnotation) || differs(v1alpha1.ApproveAnnotation))
}

// WaitsForApproval tells whether Penstock has made a revision that somebody has to approve, and
// nobody has. It was never let go on, so that nothing of it is in the cluster, whatever else
// of its spec somebody has changed.
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

// asks returns the answer that status asks for, empty for none.
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
