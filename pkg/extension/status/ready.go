package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/approval"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/text"
)

// Reasons of Ready, in addition to results and reasons of revisions.
const (
	reasonRevisionsUnknown = "RevisionsUnknown"
	reasonNotStalled       = "NotStalled"
	reasonDeleting         = "Deleting"
	reasonProposed         = "Proposed"
	reasonPaused           = "Paused"
	reasonUnavailable      = "Unavailable"
)

const maxObjects = 5

// readiness returns the condition Ready, and whether a user must act. The first that applies
// decides:
//
//  1. the failed pass, if the current spec was never installed;
//  2. the newest revision: held, being rolled out, or proposed;
//  3. the installed version.
func readiness(facts Facts, v view) (said, bool) {
	outcome := facts.Outcome
	verdict, failed := verdicts()[outcome.Result]
	switch {
	case failed && !settled(facts, v):
		return said{metav1.ConditionFalse, string(outcome.Result), joined(outcome)}, verdict.person
	case held(v) != nil:
		return said{metav1.ConditionFalse, string(Held), held(v).Message}, true
	case v.latest() != nil:
		return v.latest().readiness()
	case v.proposal != nil && !settled(facts, v):
		told := proposal(v, outcome)
		told.status = metav1.ConditionFalse
		return told, false
	case v.installed == nil:
		return said{metav1.ConditionFalse, string(Pending), cmp.Or(joined(outcome), "it is not known yet what to install")}, false
	}
	said, person := v.installed.readiness()
	switch {
	case outcome.waits():
		said.message += "; " + waiting(outcome)
	case failed:
		said.message += fmt.Sprintf("; no other version can be installed (%s): %s", outcome.Result, joined(outcome))
	case v.proposal != nil:
		said.message += "; " + proposal(v, outcome).message
	}
	return said, person
}

func waiting(outcome Outcome) string {
	if outcome.Bundle == nil {
		return "an upgrade waits: " + joined(outcome)
	}
	return fmt.Sprintf("an upgrade to %s waits: %s", outcome.Bundle.Version, joined(outcome))
}

func joined(outcome Outcome) string {
	if outcome.Message == "" || outcome.Why == "" {
		return outcome.Message + outcome.Why
	}
	return outcome.Message + ": " + outcome.Why
}

// readiness returns the condition Ready for a revision, and whether a user must act.
func (r revision) readiness() (said, bool) {
	title := r.title()
	stalled, failing, available := r.condition(olmv1alpha1.ConditionStalled), r.condition(olmv1alpha1.ConditionFailing), r.condition(olmv1alpha1.ConditionAvailable)
	person := r.is(olmv1alpha1.ConditionStalled)
	progressing := r.condition(olmv1alpha1.ConditionProgressing)
	switch {
	case r.is(olmv1alpha1.ConditionFailing):
		return said{metav1.ConditionFalse, failing.Reason, title + ": " + cmp.Or(r.objects(), failing.Message)}, person
	case person:
		return said{metav1.ConditionFalse, stalled.Reason, title + ": " + withObjects(stalled.Message, r.objects())}, true
	case r.paused():
		return said{metav1.ConditionFalse, reasonPaused, title + " is paused; resume it with: kubectl penstock resume " + r.Name}, false
	case progressing != nil && progressing.Reason == revisionFrozen:
		return said{metav1.ConditionFalse, revisionFrozen, title + ": " + progressing.Message}, false
	case !r.is(olmv1alpha1.ConditionSucceeded):
		return said{metav1.ConditionFalse, ReasonRollingOut, title + " is rolling out" + after(": ", cmp.Or(r.objects(), messageOf(progressing)))}, false
	case available == nil || available.Status == metav1.ConditionUnknown:
		return said{metav1.ConditionUnknown, reasonOf(available), title + " is installed; it is not known whether it is available" + after(": ", messageOf(available))}, false
	case available.Status == metav1.ConditionFalse:
		return said{metav1.ConditionFalse, reasonUnavailable, title + " is installed, and not available: " + cmp.Or(r.objects(), available.Message)}, false
	}
	return said{metav1.ConditionTrue, ReasonSucceeded, title + " is installed and available" + r.warnings() + r.drift()}, false
}

// drift returns the reported drift, to append to a message.
func (r revision) drift() string {
	if !r.is(olmv1alpha1.ConditionDriftReported) {
		return ""
	}
	return after("; ", messageOf(r.condition(olmv1alpha1.ConditionDriftReported)))
}

// warnings returns the warnings of rendering, to append to a message.
func (r revision) warnings() string {
	all := r.Annotations[extension.WarningsAnnotation]
	if all == "" {
		return ""
	}
	return "; its content has warnings: " + strings.Join(strings.Split(all, "\n"), "; ")
}

// objects names the first phase with failing objects, and these objects with their reasons. It is
// empty if no phase has any.
func (r revision) objects() string {
	for i, phase := range r.Status.Phases {
		if len(phase.Failing) == 0 {
			continue
		}
		lines := make([]string, 0, maxObjects)
		for _, object := range phase.Failing[:min(len(phase.Failing), maxObjects)] {
			lines = append(lines, fmt.Sprintf("%s (%s): %s", objectOf(object), cmp.Or(cause(object), object.Reason), object.Message))
		}
		more := len(phase.Failing) - len(lines) + int(phase.FailingOmitted)
		if more > 0 {
			lines = append(lines, text.Count(more, "more object"))
		}
		return fmt.Sprintf("phase %s (%d of %d, %d of %d objects available): %s", phase.Name, i+1, len(r.Status.Phases), phase.Available, phase.Objects, strings.Join(lines, "; "))
	}
	return ""
}

// cause returns the reasons of the object's failure and of its cause, such as "ProbeFailed,
// ImagePullBackOff"; empty without a known cause.
func cause(object olmv1alpha1.ObjectFailure) string {
	if object.Cause == nil || object.Cause.Reason == "" {
		return ""
	}
	return object.Reason + ", " + object.Cause.Reason
}

// withObjects replaces the details of a message by the failing objects, if there are any.
func withObjects(message, objects string) string {
	if objects == "" {
		return message
	}
	said, _, _ := strings.Cut(message, "; ")
	return said + "; " + objects
}

func after(separator, message string) string {
	if message == "" {
		return ""
	}
	return separator + message
}

func messageOf(condition *metav1.Condition) string {
	if condition == nil {
		return ""
	}
	return condition.Message
}

func reasonOf(condition *metav1.Condition) string {
	if condition == nil {
		return string(Pending)
	}
	return condition.Reason
}

// proposal describes the proposed revision, and the commands to review and approve it.
func proposal(v view, outcome Outcome) said {
	r := v.proposal
	what := "an installation"
	if v.installed != nil {
		what = "an upgrade"
	}
	where := ""
	if channel := r.Annotations[extension.ChannelAnnotation]; channel != "" {
		where = ", from channel " + channel
	}
	if given := approval.Pending(r.Annotations); given != nil {
		message := fmt.Sprintf("%s%s is approved by %s and begins when a maintenance window lets it, not before %s", r.title(), where, given.User, given.NotBefore.UTC().Format(time.RFC3339))
		if outcome.Later != "" {
			message += ": " + outcome.Later
		}
		return said{reason: string(WaitingForWindow), message: message}
	}
	message := fmt.Sprintf("%s%s is proposed as %s and waits for approval", r.title(), where, what)
	if given := approval.Ended(r.Annotations); given != nil {
		message += fmt.Sprintf(" again: the approval by %s had no effect: %s", given.User, given.Why)
	}
	if why := r.Annotations[olmv1alpha1.LifecycleReasonAnnotation]; why != "" {
		message += ": " + why
	}
	name, _, _ := olm.ChainOf(r.Name)
	return said{reason: reasonProposed, message: message + r.warnings() + "; review and approve it with: kubectl penstock upgrade " + name}
}

// deleting sets the status of an extension that is being deleted. Conditions about catalogs do not
// change.
func (w *writer) deleting(v view) {
	w.installed(v, Outcome{})
	w.set(Available, availability(v))
	w.activeRevisions(v)
	left := deleting(v)
	w.set(Progressing, said{metav1.ConditionTrue, left.reason, left.message})
	w.set(Ready, left)
	w.stalled(left, false)
	if meta.FindStatusCondition(w.status.Conditions, Deprecated) == nil {
		w.deprecationsUnknown(v)
	}
	if meta.FindStatusCondition(w.status.Conditions, UpgradeAvailable) == nil {
		w.set(UpgradeAvailable, said{metav1.ConditionUnknown, reasonNoCatalogData, "the extension is being deleted"})
	}
}

func deleting(v view) said {
	message := "the extension is being deleted"
	if v.leaving > 0 {
		message += "; " + text.Count(v.leaving, "revision") + " with objects are left"
	}
	if v.newest != nil {
		if objects := (revision{v.newest.ClusterExtensionRevision}).objects(); objects != "" {
			message += ": " + objects
		}
	}
	return said{metav1.ConditionFalse, reasonDeleting, message}
}
