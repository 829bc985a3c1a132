package chain

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/manifest/release"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/text"
)

// Reasons of conditions.
const (
	reasonRolledOut   = "RolledOut"
	reasonRollingOut  = "RollingOut"
	reasonRepairing   = "Repairing"
	reasonUnavailable = "Unavailable"
	reasonNotYet      = "NotYet"
	reasonSoaking     = "Soaking"
	reasonSuperseded  = "Superseded"
	reasonPaused      = "Paused"
	reasonArchived    = "Archived"
	reasonTearingDown = "TearingDown"
	reasonInvalid     = "Invalid"
	reasonDeadline    = "ProgressDeadlineExceeded"
	reasonNoFailure   = "NoFailure"
	reasonNotStalled  = "NotStalled"
	reasonTrouble     = "PassFailed"
	reasonRequested   = "Requested"
	reasonRefused     = "RollbackRefused"
	reasonNoTarget    = "NoEarlierSuccess"
	reasonIsRollback  = "IsRollback"
	reasonOvertaken   = "Overtaken"
	reasonReleased    = "Released"
	reasonUnknown     = "Unseen"
	reasonFrozen      = "Frozen"

	reasonInvalidManifests = "InvalidManifests"
	reasonWaitingForLevel  = "WaitingForLevel"

	reasonTargetUnavailable = "TargetUnavailable"
)

// What is said when there is nothing to say.
const (
	nothingFails  = "nothing fails"
	nothingStalls = "nothing waits for a person, and no deadline has passed"
)

// finding is what a pass found of one revision.
type finding struct {
	// layer is nil for a revision that is archived or being deleted.
	layer *rollout.LayerReport
	// newest is true for the newest layer of the chain that is not paused, which
	// alone progresses.
	newest bool
	// successor names the layer that progresses instead, for one that is older, and
	// taking are the newer layers that have objects, newest first.
	successor string
	taking    []string
	// leaving are the objects whose content is this revision's and that still
	// have to go.
	leaving []rollout.Failure
	// remaining is an object that still carries the content of a revision that is no
	// layer any more.
	remaining *manifest.ID
	// next is the next newer revision of the chain, nil for none.
	next *olmv1alpha1.ClusterExtensionRevision
	// chainHeld is what holds the chain's owner, told on the newest revision.
	chainHeld holding
	// freeze is why nothing may be written, nil when it may.
	freeze *rollout.Freeze
	// inverted are objects that wait for a later install level.
	inverted []release.Inversion
	// invalid is why the revision cannot be compiled.
	invalid error
	// targetErr is why nothing is known of the cluster, and nothing done.
	targetErr error
}

// status is the status of a revision after a pass, a function of what was found
// and of the status before: transition times and the latch Succeeded carry over.
func status(revision *olmv1alpha1.ClusterExtensionRevision, found finding, now time.Time) olmv1alpha1.ClusterExtensionRevisionStatus {
	s := &writer{generation: revision.Generation, now: now, status: *revision.Status.DeepCopy()}
	s.status.ObservedGeneration = revision.Generation
	s.keep(olmv1alpha1.ConditionSucceeded)
	switch {
	case found.targetErr != nil && rev.IsLayer(revision):
		s.unusableTarget(found.targetErr)
	case found.invalid != nil:
		s.invalid(found.invalid)
	case found.layer == nil:
		s.gone(revision, found)
	default:
		s.status.Phases = phaseStatuses(revision, found.layer)
		s.active(revision, found)
	}
	s.rolledBack(revision, found.next)
	s.hold(revision, found.next == nil, found.chainHeld)
	return s.status
}

// troubled is the status of a revision whose pass failed: nobody keeps it as it
// should be until that is cured. What was observed before stays.
func troubled(revision *olmv1alpha1.ClusterExtensionRevision, trouble error, now time.Time) olmv1alpha1.ClusterExtensionRevisionStatus {
	w := &writer{generation: revision.Generation, now: now, status: *revision.Status.DeepCopy()}
	for _, kind := range []string{olmv1alpha1.ConditionFailing, olmv1alpha1.ConditionStalled} {
		w.set(kind, true, reasonTrouble, clip(trouble.Error()))
	}
	return w.status
}

// writer sets conditions.
type writer struct {
	generation int64
	now        time.Time
	status     olmv1alpha1.ClusterExtensionRevisionStatus
}

func (w *writer) set(kind string, value bool, reason, message string) {
	s := metav1.ConditionFalse
	if value {
		s = metav1.ConditionTrue
	}
	w.say(kind, s, reason, message)
}

// say sets a condition that may be Unknown.
func (w *writer) say(kind string, s metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&w.status.Conditions, metav1.Condition{
		Type: kind, Status: s, Reason: reason, Message: message,
		ObservedGeneration: w.generation, LastTransitionTime: metav1.NewTime(w.now),
	})
}

// keep says of a latch that it holds for this generation, too: kubectl wait does
// not believe what was said of another one.
func (w *writer) keep(kind string) {
	if latch := meta.FindStatusCondition(w.status.Conditions, kind); latch != nil && latch.Status == metav1.ConditionTrue {
		latch.ObservedGeneration = w.generation
	}
}

// current is the revision with the status as it is by now.
func (w *writer) current(revision *olmv1alpha1.ClusterExtensionRevision) *olmv1alpha1.ClusterExtensionRevision {
	current := *revision
	current.Status = w.status
	return &current
}

func (w *writer) is(kind string) bool {
	return meta.IsStatusConditionTrue(w.status.Conditions, kind)
}

// active describes a layer: what is true of what it answers for.
func (w *writer) active(revision *olmv1alpha1.ClusterExtensionRevision, found finding) {
	leads := found.newest && !isPaused(revision) // the newest is paused when all are
	own := shareOf(found.layer, found.taking)
	message, person, stuck := summary(found.layer)
	if level := found.layer.Level; level != nil && level.Waiting > 0 && leads {
		message = waitingForLevel(level, found.inverted)
	}
	if message == "" {
		message = clip(own.String())
	}
	w.available(found, leads, own, message)
	if left := w.succeed(revision, found, own); left != "" {
		message = left
	}
	w.progress(revision, found, own, message)
	w.fail(person, stuck)
	if !leads {
		w.aside(message)
		return
	}
	w.stall(revision, person, message)
	w.ready(message, own)
}

// available tells whether what a layer answers for is as it was rolled out.
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
		// It was available, and nothing is known to be otherwise.
		w.say(olmv1alpha1.ConditionAvailable, metav1.ConditionUnknown, reasonUnknown, message)
	default:
		w.set(olmv1alpha1.ConditionAvailable, false, reasonUnavailable, message)
	}
}

// aside describes a layer that is not to progress: it is paused, or a newer one takes
// its place. That was asked for and is reached, so nothing stalls it, and clients that
// wait for Ready need not wait for it. Progressing says which of the two it is.
func (w *writer) aside(message string) {
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

// succeed turns Succeeded True once the newest layer has been complete for long
// enough. It returns what that still takes, when only time is missing.
func (w *writer) succeed(revision *olmv1alpha1.ClusterExtensionRevision, found finding, own share) string {
	end, available := soaked(revision, w.status.Conditions)
	switch {
	case w.is(olmv1alpha1.ConditionSucceeded):
	case !available || !found.newest || !own.whole():
		// What a newer revision has, even a paused one, does not make this one succeed.
		w.set(olmv1alpha1.ConditionSucceeded, false, reasonNotYet, "the rollout has not been complete yet")
	case w.now.Before(end):
		left := fmt.Sprintf("all objects are available; the revision has succeeded when they still are at %s, after %s",
			end.UTC().Format(time.RFC3339), text.Count(revision.Spec.SuccessDelaySeconds, "second"))
		w.set(olmv1alpha1.ConditionSucceeded, false, reasonSoaking, left)
		return left
	default:
		w.set(olmv1alpha1.ConditionSucceeded, true, reasonRolledOut, "the rollout was complete once")
	}
	return ""
}

// progress tells whether anything is under way.
func (w *writer) progress(revision *olmv1alpha1.ClusterExtensionRevision, found finding, own share, message string) {
	switch {
	case isPaused(revision):
		w.set(olmv1alpha1.ConditionProgressing, false, reasonPaused, "the revision is paused: nothing is written")
	case found.freeze != nil && !found.layer.Complete && (found.newest || !own.complete):
		w.set(olmv1alpha1.ConditionProgressing, false, reasonFrozen, clip(found.freeze.String()+"; nothing is written"))
	case !found.newest:
		w.set(olmv1alpha1.ConditionProgressing, false, reasonSuperseded, found.successor+" takes the objects over as it reaches them")
	case found.layer.Level != nil && found.layer.Level.Waiting > 0:
		w.set(olmv1alpha1.ConditionProgressing, true, reasonWaitingForLevel, message)
	case found.layer.Complete && !own.whole():
		w.set(olmv1alpha1.ConditionProgressing, false, reasonSuperseded, message)
	case found.layer.Complete && !w.is(olmv1alpha1.ConditionSucceeded):
		w.set(olmv1alpha1.ConditionProgressing, true, reasonSoaking, message)
	case found.layer.Complete:
		w.set(olmv1alpha1.ConditionProgressing, false, reasonRolledOut, "the rollout is complete")
	case !w.is(olmv1alpha1.ConditionSucceeded):
		w.set(olmv1alpha1.ConditionProgressing, true, reasonRollingOut, message)
	case !applied(found.layer) && !found.layer.Unknown:
		w.set(olmv1alpha1.ConditionProgressing, true, reasonRepairing, message)
	default:
		w.set(olmv1alpha1.ConditionProgressing, false, reasonRolledOut, "rolled out; see Available")
	}
}

// fail tells whether somebody should look. What is stuck is tried again, and may go on by
// itself: it is Failing, and not Stalled.
func (w *writer) fail(person, stuck *rollout.Failure) {
	switch {
	case person != nil:
		w.set(olmv1alpha1.ConditionFailing, true, person.Reason, describe(*person))
	case stuck != nil:
		w.set(olmv1alpha1.ConditionFailing, true, stuck.Reason, describe(*stuck))
	default:
		w.set(olmv1alpha1.ConditionFailing, false, reasonNoFailure, nothingFails)
	}
}

// stall tells whether nothing moves.
func (w *writer) stall(revision *olmv1alpha1.ClusterExtensionRevision, person *rollout.Failure, message string) {
	switch {
	case person != nil:
		w.set(olmv1alpha1.ConditionStalled, true, person.Reason, describe(*person))
	case overdue(w.current(revision), w.now):
		w.set(olmv1alpha1.ConditionStalled, true, reasonDeadline,
			clip(fmt.Sprintf("the rollout takes longer than %s; %s", text.Count(revision.Spec.ProgressDeadlineMinutes, "minute"), message)))
	default:
		w.set(olmv1alpha1.ConditionStalled, false, reasonNotStalled, nothingStalls)
	}
}

// ready joins Succeeded and Available of the layer that progresses.
func (w *writer) ready(message string, own share) {
	switch {
	case w.is(olmv1alpha1.ConditionSucceeded) && w.is(olmv1alpha1.ConditionAvailable):
		w.set(olmv1alpha1.ConditionReady, true, reasonRolledOut, clip(own.String()))
	case w.is(olmv1alpha1.ConditionSucceeded) && meta.IsStatusConditionPresentAndEqual(w.status.Conditions, olmv1alpha1.ConditionAvailable, metav1.ConditionUnknown):
		available := meta.FindStatusCondition(w.status.Conditions, olmv1alpha1.ConditionAvailable)
		w.say(olmv1alpha1.ConditionReady, metav1.ConditionUnknown, available.Reason, message)
	case w.is(olmv1alpha1.ConditionSucceeded):
		w.set(olmv1alpha1.ConditionReady, false, reasonUnavailable, message)
	default:
		w.set(olmv1alpha1.ConditionReady, false, reasonNotYet, message)
	}
}

// gone describes a revision that is archived or being deleted.
func (w *writer) gone(revision *olmv1alpha1.ClusterExtensionRevision, found finding) {
	for i := range w.status.Phases {
		phase := &w.status.Phases[i]
		*phase = olmv1alpha1.PhaseStatus{Name: phase.Name, State: olmv1alpha1.PhaseStateArchived, Objects: phase.Objects}
	}
	reason, message := reasonArchived, "the revision is archived"
	if !revision.DeletionTimestamp.IsZero() {
		reason, message = reasonTearingDown, "the revision is being deleted"
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
			clip(fmt.Sprintf("%s still has the content of this revision; it waits for the revision that lists it to reach it", found.remaining)))
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
	// What asks comes first: it can be answered only while status asks it.
	person := first(found.leaving, func(f rollout.Failure) bool { return f.Reason == rollout.ReasonBudget })
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

// given tells whether an archived revision has given up all it had: that is what was
// asked for. One that is being deleted is never Ready.
func (w *writer) given(revision *olmv1alpha1.ClusterExtensionRevision, found finding, reason, message string) {
	if len(found.leaving) == 0 && found.remaining == nil && revision.DeletionTimestamp.IsZero() {
		w.set(olmv1alpha1.ConditionReady, true, reason, message+": nothing in the cluster is its any more")
		return
	}
	if left := meta.FindStatusCondition(w.status.Conditions, olmv1alpha1.ConditionProgressing); left.Status == metav1.ConditionTrue {
		reason, message = left.Reason, left.Message
	}
	w.set(olmv1alpha1.ConditionReady, false, reason, message)
}

// first returns the first failure that is as a function says, or nil.
func first(failures []rollout.Failure, is func(rollout.Failure) bool) *rollout.Failure {
	if i := slices.IndexFunc(failures, is); i >= 0 {
		return &failures[i]
	}
	return nil
}

// unusableTarget describes a revision whose cluster is not known or cannot be used: what it was
// it may still be.
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
	// The deadline of the rollout does not count meanwhile, as while it is frozen.
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

// invalid describes a revision that cannot be compiled.
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
