package status

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/resolve"
)

// reached is OLM v1's message for an extension with nothing left to do.
const reached = "Desired state reached"

// progress returns the condition Progressing: the failure of the pass, or else the condition of the
// newest revision.
func progress(facts Facts, v view) said {
	if verdict, failed := verdicts()[facts.Outcome.Result]; failed && !keeps(facts, v) {
		message := facts.Outcome.Message
		if bundle := facts.Outcome.Bundle; verdict.resolved && bundle != nil {
			message = fmt.Sprintf("error for resolved bundle %q with version %q: %s", bundle.Name, bundle.Version, message)
		}
		return said{verdict.progressing, verdict.reason, message}
	}
	switch latest := v.latest(); {
	case latest != nil:
		return latest.progressing()
	case v.proposal != nil && !settled(facts, v):
		return v.proposal.progressing()
	case held(v) != nil:
		return said{metav1.ConditionFalse, ReasonBlocked, held(v).Message}
	case v.installed != nil && (facts.Outcome.Result == Settled || keeps(facts, v) || settled(facts, v)):
		return said{metav1.ConditionTrue, ReasonSucceeded, reached}
	}
	message := facts.Outcome.Message
	if message == "" {
		message = "it is not known yet what to install"
	}
	return said{metav1.ConditionTrue, ReasonRetrying, message}
}

// keeps reports whether the installed version stays without an error. That is so while an upgrade
// waits to begin by itself. It is also so if the catalogs no longer exist; like OLM v1, keeps then
// checks that the spec still allows the installed version.
func keeps(facts Facts, v view) bool {
	if facts.Outcome.waits() {
		return v.installed != nil && v.latest() == nil
	}
	if facts.Outcome.Result != NoCatalog || v.installed == nil || v.latest() != nil {
		return false
	}
	catalog := facts.Extension.Spec.Source.Catalog
	return catalog == nil || resolve.InRange(v.installed.version(), catalog.Version)
}

// settled reports whether the installed content is the result of the current spec. Catalogs may
// have newer versions since. During a hold after a rollback it is not settled. For extensions with
// a Helm release the hold is in the outcome of the pass, not in a revision.
func settled(facts Facts, v view) bool {
	if v.installed == nil || v.latest() != nil || facts.Undecided || held(v) != nil || facts.Outcome.Result == Held {
		return false
	}
	generation := facts.Extension.Generation
	if v.installed.Annotations[extension.GenerationAnnotation] == strconv.FormatInt(generation, 10) {
		return true
	}
	// Equal content creates no new revision. Then the condition Ready of the last pass proves it:
	// it is about this generation and the installed version.
	told := meta.FindStatusCondition(facts.Extension.Status.Conditions, Ready)
	return told != nil && told.ObservedGeneration == generation && isAboutInstalled(told.Reason)
}

// isAboutInstalled reports whether a reason of Ready is about the installed version.
func isAboutInstalled(reason string) bool {
	switch reason {
	case string(Pending), string(WaitingForWindow), ReasonRollingOut, reasonProposed, reasonRevisionsUnknown, reasonDeleting:
		return false
	}
	_, failed := verdicts()[Result(reason)]
	return !failed
}

// held returns the condition Held while a rollback prevents new revisions; nil otherwise.
func held(v view) *metav1.Condition {
	if v.newest == nil {
		return nil
	}
	condition := v.newest.condition(olmv1alpha1.ConditionHeld)
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return nil
	}
	return condition
}
