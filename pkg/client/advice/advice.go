package advice

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/approval"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/overview"
)

// Extension returns the reasons why an extension does not continue, at least one. Lists and exit
// codes use the first. Further reasons are about other revisions that need a user, an upgrade that
// does not start, and obstacles for the owner.
func Extension(e overview.Extension) []Advice {
	all := ofRevisions(e)
	all = append(all, ofAsked(e, all)...)
	if len(all) == 0 {
		return []Advice{{Signal: Stopped, Subject: cmp.Or(e.Name, "the extension"), What: "has no revision", Who: Author, Do: "make one", Command: "kubectl penstock deploy"}}
	}
	// Among equally urgent advice, the newest revision is first.
	slices.SortStableFunc(all, func(a, b Advice) int { return cmp.Compare(a.Signal.urgency(), b.Signal.urgency()) })
	return all
}

// ofRevisions returns the advice about the newest revision, and about older revisions that need a
// user or are rolled out.
func ofRevisions(e overview.Extension) []Advice {
	newest := e.Newest()
	if newest == nil {
		return nil
	}
	// A newer revision that was archived does not describe the extension.
	leads := leading(e.Revisions)
	var all []Advice
	if leads == nil || !ended(newest) {
		all = append(all, Revision(newest, e.Revisions))
	}
	if held := meta.FindStatusCondition(newest.Status.Conditions, v1alpha1.ConditionHeld); is(held, metav1.ConditionTrue) && held.Reason != "HandedToHelm" {
		hold := since(fromRevision(newest, "keeps the owner from making revisions", "Held", held.Message), held)
		if held.Reason == "IsRollback" { // replaces the annotation in the message
			extension, _, _ := olm.ChainOf(newest.Name)
			hold.Command = "kubectl penstock resume " + extension
		}
		all = append(all, hold)
	}
	for _, older := range e.Revisions[1:] {
		if failing(older) || older == leads {
			all = append(all, Revision(older, e.Revisions))
		}
	}
	return all
}

// ended reports whether a revision is archived, and needs no user.
func ended(r *v1alpha1.ClusterExtensionRevision) bool {
	return r.DeletionTimestamp == nil && r.Spec.LifecycleState == v1alpha1.LifecycleStateArchived && !failing(r)
}

// ofAsked returns the advice of a ClusterExtension that its revisions do not give: why no revision
// is created, or that the extension is in a worse state than its revisions show.
func ofAsked(e overview.Extension, said []Advice) []Advice {
	a := e.Asked
	if a == nil {
		return nil
	}
	if a.Ready {
		return ofReady(e, said)
	}
	given := fromAsked(a, a.Reason, a.Message).within(e.Newest(), e.Revisions)
	if given.Signal == NeedsAttention {
		given.What = "is not installed"
		if a.Installed != "" {
			given.What = "stays at " + a.Installed
		}
	}
	_, ofPass := extensionSteps()[a.Reason]
	for _, one := range said {
		if one.Signal.urgency() <= given.Signal.urgency() && (!ofPass || given.Signal != NeedsAttention) {
			return nil // a revision gives the same advice in more detail
		}
	}
	return []Advice{given}
}

// ofReady returns the advice about a healthy extension: a refused upgrade, or else its state.
func ofReady(e overview.Extension, said []Advice) []Advice {
	a := e.Asked
	if refused, known := extensionSteps()[a.UpgradeReason]; known && refused.signal == NeedsAttention {
		given := fromAsked(a, a.UpgradeReason, a.UpgradeMessage).within(e.Newest(), e.Revisions)
		given.Signal, given.What = Review, "stays at "+a.Installed
		return []Advice{given}
	}
	if len(said) > 0 {
		return nil
	}
	given := fromAsked(a, a.Reason, a.Message).within(e.Newest(), e.Revisions)
	given.What = "is installed and available"
	return []Advice{given}
}

func fromAsked(a *overview.Asked, reason, message string) Advice {
	steps := extensionSteps()
	if _, known := steps[reason]; !known {
		steps = revisionSteps()
	}
	given := from(steps, true, Advice{Subject: a.Name, What: doing(reason), Because: message, Reason: reason, Since: a.Since},
		strings.NewReplacer("{extension}", a.Name, "{revision}", a.Name))
	// A newer server may use an unknown reason, but Needs is known.
	if a.Needs {
		given.Signal = NeedsAttention
	}
	return given
}

// Revision returns the reason why a revision does not continue. The parameter of lists the known
// revisions of its extension: they decide whether the advice offers a rollback.
func Revision(r *v1alpha1.ClusterExtensionRevision, of []*v1alpha1.ClusterExtensionRevision) Advice {
	return ofRevision(r).within(r, of)
}

// within removes rolling back from the advice about r if no earlier revision has succeeded.
func (a Advice) within(r *v1alpha1.ClusterExtensionRevision, of []*v1alpha1.ClusterExtensionRevision) Advice {
	succeeded := slices.ContainsFunc(of, func(other *v1alpha1.ClusterExtensionRevision) bool {
		return r != nil && other.Spec.Revision < r.Spec.Revision && other.DeletionTimestamp == nil && meta.IsStatusConditionTrue(other.Status.Conditions, v1alpha1.ConditionSucceeded)
	})
	if a.alone != nil && !succeeded {
		a.Do, a.Command = a.alone.do, a.alone.command
	}
	a.alone = nil
	return a
}

func ofRevision(r *v1alpha1.ClusterExtensionRevision) Advice {
	conditions := r.Status.Conditions
	find := func(kind string) *metav1.Condition { return meta.FindStatusCondition(conditions, kind) }
	archived, deleted := r.Spec.LifecycleState == v1alpha1.LifecycleStateArchived, r.DeletionTimestamp != nil
	available, progressing, ready := find(v1alpha1.ConditionAvailable), find(v1alpha1.ConditionProgressing), find(v1alpha1.ConditionReady)
	succeeded := meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionSucceeded)
	switch {
	case objectmeta.IsUnreadable(r):
		return fromRevision(r, "cannot be read", objectmeta.ReasonUnreadable, r.Annotations[objectmeta.UnreadableAnnotation])
	case deleted && !overview.Observed(r):
		// The status is older than the deletion.
		return fromRevision(r, "is being deleted", "TearingDown", "")
	case is(find(v1alpha1.ConditionFailing), metav1.ConditionTrue):
		return with(r, "fails", find(v1alpha1.ConditionFailing), find(v1alpha1.ConditionRolledBack))
	case is(find(v1alpha1.ConditionStalled), metav1.ConditionTrue):
		return with(r, "does not go on", find(v1alpha1.ConditionStalled), find(v1alpha1.ConditionRolledBack))
	case progressing == nil && overview.Untried(r):
		return proposed(r)
	case progressing == nil:
		return fromRevision(r, "has not been looked at yet", objectmeta.ReasonPending, "")
	case r.Status.ObservedGeneration < r.Generation:
		return fromRevision(r, "has changed, and that has not been looked at yet", objectmeta.ReasonPending, "")
	case progressing.Reason == "Frozen":
		return with(r, "waits for the end of a freeze", progressing, nil)
	case progressing.Reason == "TargetUnavailable":
		return with(r, "waits for its cluster", progressing, nil)
	case deleted && is(progressing, metav1.ConditionTrue):
		return with(r, "is being deleted", progressing, nil)
	case archived && is(progressing, metav1.ConditionTrue):
		return with(r, "is archived, and gives up its objects", progressing, nil)
	case archived:
		return fromRevision(r, "is archived", "Archived", "")
	case deleted:
		return fromRevision(r, "is being deleted", "TearingDown", "")
	case progressing.Reason == "Paused" && overview.Untried(r):
		return since(proposed(r), progressing)
	case progressing.Reason == "Paused":
		return since(fromRevision(r, "is paused", "Paused", whyPaused(r, progressing.Message)), progressing)
	case progressing.Reason == "Superseded":
		return with(r, "is replaced", progressing, nil)
	case is(progressing, metav1.ConditionTrue):
		return inPhase(r, blocked(r, with(r, doing(progressing.Reason), progressing, nil)))
	case is(available, metav1.ConditionUnknown):
		return with(r, "was available, but it is not known whether it still is", available, nil)
	case is(available, metav1.ConditionFalse):
		return unready(r, with(r, "is not available", available, find(v1alpha1.ConditionRolledBack)))
	case succeeded && is(ready, metav1.ConditionTrue) && is(find(v1alpha1.ConditionDriftReported), metav1.ConditionTrue):
		return with(r, "is rolled out and available, and its drift is reported and not repaired", find(v1alpha1.ConditionDriftReported), nil)
	case succeeded && is(ready, metav1.ConditionTrue):
		return with(r, "is rolled out and available", ready, nil)
	default:
		return with(r, "is not ready", cmp.Or(ready, progressing), nil)
	}
}

// proposed returns the advice about a revision that was never rolled out. It waits for a user, or
// for the time that a user approved.
func proposed(r *v1alpha1.ClusterExtensionRevision) Advice {
	why := r.Annotations[overview.ReasonAnnotation]
	if given := approval.Pending(r.Annotations); given != nil {
		return fromRevision(r, "is approved, and begins later", "WaitingForWindow",
			fmt.Sprintf("%s approved it; it begins when a maintenance window lets it, not before %s", given.User, given.NotBefore.UTC().Format(time.RFC3339)))
	}
	if given := approval.Ended(r.Annotations); given != nil {
		why = strings.TrimSuffix(fmt.Sprintf("the approval by %s had no effect: %s; %s", given.User, given.Why, why), "; ")
	}
	return fromRevision(r, "is proposed, and waits for approval", "Proposed", why)
}

// whyPaused returns the user's reason for the pause. Without a reason, it returns the server's
// message without the words that the revision is paused.
func whyPaused(r *v1alpha1.ClusterExtensionRevision, message string) string {
	return cmp.Or(r.Annotations[overview.ReasonAnnotation], strings.TrimPrefix(message, "the revision is paused: "))
}

// leading returns the rolled out revision: the newest revision that is neither paused, archived nor
// deleted; nil for none.
func leading(newestFirst []*v1alpha1.ClusterExtensionRevision) *v1alpha1.ClusterExtensionRevision {
	for _, r := range newestFirst {
		if r.DeletionTimestamp == nil && r.Spec.LifecycleState == v1alpha1.LifecycleStateActive {
			return r
		}
	}
	return nil
}

// failing is true for a revision that waits for a user.
func failing(r *v1alpha1.ClusterExtensionRevision) bool {
	return objectmeta.IsUnreadable(r) || meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionFailing) ||
		meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionStalled)
}

func is(c *metav1.Condition, status metav1.ConditionStatus) bool {
	return c != nil && c.Status == status
}

func doing(reason string) string {
	switch reason {
	case "Repairing":
		return "is being repaired"
	case "MetricCheckUnknown":
		return "is complete, and waits for its MetricChecks"
	case "Soaking":
		return "is complete, and has to stay so for a while"
	case "Pending":
		return "has not been looked at yet"
	case "Deleting", "TearingDown":
		return "is being deleted"
	case "Proposed":
		return "waits for approval"
	case "Paused":
		return "is paused"
	case "WaitingForLevel":
		return "waits for an earlier install level"
	default:
		return "is rolling out"
	}
}

// with returns the advice of a condition. If refused is False, it explains why there was no
// automatic rollback, and gives the next step.
func with(r *v1alpha1.ClusterExtensionRevision, what string, c, refused *metav1.Condition) Advice {
	a := since(fromRevision(r, what, c.Reason, c.Message), c)
	if is(refused, metav1.ConditionFalse) {
		next := fromRevision(r, what, refused.Reason, refused.Message)
		a.Because += "; it is not rolled back by itself: " + next.Because
		a.Who, a.Do, a.Command, a.alone = next.Who, next.Do, next.Command, next.alone
	}
	return a
}

func since(a Advice, c *metav1.Condition) Advice {
	a.Since = c.LastTransitionTime
	return a
}

// unready adds the reason and the cause of the first object that holds a revision back. It keeps
// the advice about a refused rollback, which says more.
func unready(r *v1alpha1.ClusterExtensionRevision, a Advice) Advice {
	if is(meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionRolledBack), metav1.ConditionFalse) {
		return a
	}
	for i := range r.Status.Phases {
		for _, failure := range r.Status.Phases[i].Failing {
			if step, known := revisionSteps()[failure.Reason]; known && step.signal == NeedsAttention {
				of := fromRevision(r, a.What, failure.Reason, a.Because)
				of.Since = a.Since
				if explained(failure.Cause) {
					of.Cause = failure.Cause.Reason
				}
				return of
			}
		}
	}
	return a
}

// blocked replaces the advice about progress if an object waits for a user. Conditions report such
// an object only after a while.
func blocked(r *v1alpha1.ClusterExtensionRevision, a Advice) Advice {
	for i := range r.Status.Phases {
		for _, failure := range r.Status.Phases[i].Failing {
			next, known := revisionSteps()[failure.Reason]
			probed := failure.Reason == "ProbeFailed"
			if !known || next.who == Nobody || probed && !explained(failure.Cause) {
				continue
			}
			object := strings.TrimSpace(failure.Kind + " " + strings.TrimPrefix(failure.Namespace+"/"+failure.Name, "/"))
			of := fromRevision(r, a.What, failure.Reason, object+": "+failure.Message)
			of.Since = a.Since
			if probed {
				of.Cause = failure.Cause.Reason
			} else {
				of.Signal = a.Signal // it may be temporary; Failing is set if it lasts
			}
			return of
		}
	}
	return a
}

// explained reports whether the cause of an unready object is known, and is more than a recent
// start.
func explained(cause *v1alpha1.FailureCause) bool {
	if cause == nil {
		return false
	}
	switch cause.Reason {
	case "Starting", "ContainerCreating", "InitContainerRunning", "StartupProbeFailing", "ReadinessProbeFailing":
		return false
	}
	return true
}

func inPhase(r *v1alpha1.ClusterExtensionRevision, a Advice) Advice {
	for i, phase := range r.Status.Phases {
		switch phase.State {
		case v1alpha1.PhaseStateAvailable, v1alpha1.PhaseStateSuperseded:
		default:
			if !meta.IsStatusConditionTrue(r.Status.Conditions, v1alpha1.ConditionSucceeded) {
				a.What += fmt.Sprintf(", phase %s (%d of %d, %d of %d objects)", phase.Name, i+1, len(r.Status.Phases), phase.Available+phase.Superseded, phase.Objects)
				// The server's message begins with the phase, which is already in What.
				a.Because = strings.TrimPrefix(a.Because, fmt.Sprintf("phase %s (%d of %d): ", phase.Name, i+1, len(r.Status.Phases)))
			}
			return a
		}
	}
	return a
}

func fromRevision(r *v1alpha1.ClusterExtensionRevision, what, reason, message string) Advice {
	extension, _, _ := olm.ChainOf(r.Name)
	return from(revisionSteps(), overview.OfClusterExtension(r), Advice{Subject: r.Name, What: what, Because: message, Reason: reason},
		strings.NewReplacer("{extension}", extension, "{revision}", r.Name))
}

// from adds the step for the reason: for the user of a catalog, or for the user who creates
// revisions. If the message ends in a command, that command takes precedence.
func from(steps map[string]step, catalog bool, a Advice, names *strings.Replacer) Advice {
	next, known := steps[a.Reason]
	if !known {
		// A newer server wrote this reason. Only its message is known.
		next = step{signal: NeedsAttention, who: Author, do: "do what the message says, or ask with a newer version of this program"}
	}
	if catalog {
		if next.catalog != nil {
			next.do, next.command, next.alone = next.catalog.do, next.catalog.command, next.catalog.alone
		}
		if next.who == Author {
			next.who = Owner
		}
	}
	a.Signal, a.Who, a.Do, a.Command, a.alone = next.signal, next.who, next.do, names.Replace(next.command), nil
	if next.alone != nil {
		a.alone = &answer{do: next.alone.do, command: names.Replace(next.alone.command)}
	}
	if before, command := commandIn(a.Because); command != "" {
		a.Because, a.Command = before, command
		if a.alone != nil {
			a.alone.command = command
		}
	}
	return a
}

// Plan returns the reason why a plan does not continue, and the next step.
func Plan(plan *hcov1alpha1.ConfigurationPlan) Advice {
	describe := func(what, reason, message string) Advice {
		return from(planSteps(), false, Advice{Subject: "plan " + plan.Name, What: what, Because: message, Reason: reason}, strings.NewReplacer("{plan}", plan.Name))
	}
	ready := meta.FindStatusCondition(plan.Status.Conditions, hcov1alpha1.ConditionReady)
	upgrade := meta.FindStatusCondition(plan.Status.Conditions, hcov1alpha1.ConditionUpgradeAvailable)
	switch {
	case objectmeta.IsUnreadable(plan):
		return describe("cannot be read", objectmeta.ReasonUnreadable, plan.Annotations[objectmeta.UnreadableAnnotation])
	case ready == nil || plan.Status.Phase == "":
		return describe("has not been looked at yet", objectmeta.ReasonPending, "")
	case plan.Status.Phase == hcov1alpha1.PhaseInProgress && strings.HasPrefix(plan.Status.Message, frozenBy):
		a := describe("waits for the end of a freeze", ready.Reason, plan.Status.Message)
		freeze := revisionSteps()["Frozen"]
		a.Signal, a.Who, a.Do, a.Command = freeze.signal, freeze.who, freeze.do, freeze.command
		return a
	case plan.Status.Phase == hcov1alpha1.PhaseCompleted && is(upgrade, metav1.ConditionTrue):
		return describe("is carried out, but would be different today", upgrade.Reason, plan.Status.Message)
	default:
		message := plan.Status.Message
		if message == "" {
			message = ready.Message
		}
		a := describe(inWords(plan.Status.Phase), ready.Reason, message)
		if plan.Status.Phase == hcov1alpha1.PhaseInProgress && awaitsPool(plan) {
			a.Do = "It continues when the Machine Config Operator has done that; if it does not run, the plan waits until its time is over"
		}
		return a
	}
}

// awaitsPool reports whether an item waits for an action of the Machine Config Operator.
func awaitsPool(plan *hcov1alpha1.ConfigurationPlan) bool {
	for i := range plan.Status.Items {
		item := &plan.Status.Items[i]
		if item.State == hcov1alpha1.ItemInProgress && strings.HasPrefix(item.Message, "Waiting for ") && strings.Contains(item.Message, "MachineConfigPool") {
			return true
		}
	}
	return false
}

// frozenBy begins the message of a plan that is being executed while the cluster is frozen: its
// conditions have no separate reason for that.
const frozenBy = "frozen by "

func inWords(phase hcov1alpha1.Phase) string {
	switch phase {
	case hcov1alpha1.PhasePending, hcov1alpha1.PhaseDrafting:
		return "is being computed"
	case hcov1alpha1.PhasePrerequisiteFailed:
		return "cannot be computed"
	case hcov1alpha1.PhaseReviewRequired:
		return "waits for its approval"
	case hcov1alpha1.PhaseScheduled:
		return "is approved, and waits for its turn"
	case hcov1alpha1.PhaseInProgress:
		return "is being carried out"
	case hcov1alpha1.PhaseCompleted:
		return "is carried out"
	case hcov1alpha1.PhaseCompletedWithErrors:
		return "is carried out, but for items that failed"
	case hcov1alpha1.PhaseFailed:
		return "has failed"
	case hcov1alpha1.PhaseDrifted:
		return "was carried out, but its targets were changed since"
	case hcov1alpha1.PhaseExpired:
		return "was not approved in time"
	case hcov1alpha1.PhaseIgnored:
		return "is to be ignored"
	default:
		return "is " + string(phase)
	}
}
