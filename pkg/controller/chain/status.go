package chain

import (
	"fmt"
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

	// Reasons while drift is reported and not repaired.
	reasonDriftFound = "DriftFound"
	reasonNoDrift    = "NoDrift"

	// Reasons for MetricChecks, after and while all objects are available.
	reasonMetricFailed  = "MetricCheckFailed"
	reasonMetricUnknown = "MetricCheckUnknown"

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
	reasonUnknown     = "Unknown"
	reasonFrozen      = "Frozen"
	reasonHanded      = "HandedToHelm"
	reasonHanding     = "HandingToHelm"

	reasonInvalidManifests = "InvalidManifests"
	reasonWaitingForLevel  = "WaitingForLevel"

	reasonTargetUnavailable = "TargetUnavailable"
)

// Messages of conditions that have nothing to report.
const (
	nothingFails  = "nothing fails"
	nothingStalls = "nothing waits for a person, and no deadline has passed"
)

type finding struct {
	// layer is nil if the revision is archived or being deleted.
	layer *rollout.LayerReport
	// newest is true for the leading layer: the newest that is not paused. Only that layer
	// progresses.
	newest bool
	// successor names the layer that progresses instead of an older one. taking lists the newer
	// layers that have objects, newest first.
	successor string
	taking    []string
	// leaving holds the objects that still have this revision's content and must be deleted.
	leaving []rollout.Failure
	// remaining is an object that still has the content of a revision that is no longer a layer.
	remaining *manifest.ID
	// next is the next newer revision of the chain, or nil.
	next *olmv1alpha1.ClusterExtensionRevision
	// chainHeld is the hold of the chain's owner, reported on the newest revision.
	chainHeld ownerHold
	// freeze is the reason why the engine must not write; nil for none.
	freeze *rollout.Freeze
	// inverted holds the objects that depend on a later install level.
	inverted []release.Inversion
	measured []olmv1alpha1.MetricMeasurement
	// invalid is the reason why the revision cannot be compiled.
	invalid error
	// targetErr is the reason why the cluster is unknown, so that the engine does nothing.
	targetErr error
	began     time.Time
}

// status returns the status of a revision after a pass. It depends on the findings and the earlier
// status, from which it keeps transition times and the latch Succeeded.
func status(revision *olmv1alpha1.ClusterExtensionRevision, found finding, now time.Time) olmv1alpha1.ClusterExtensionRevisionStatus {
	s := &writer{generation: revision.Generation, now: now, status: *revision.Status.DeepCopy()}
	s.status.ObservedGeneration = revision.Generation
	s.keep(olmv1alpha1.ConditionSucceeded)
	switch {
	case found.targetErr != nil && rev.IsLayer(revision):
		s.unusableTarget(found.targetErr)
	case found.invalid != nil:
		s.invalid(found.invalid)
	case found.layer == nil && isKept(revision):
		s.handed(revision, found)
	case found.layer == nil:
		s.gone(revision, found)
	default:
		s.status.MetricChecks = found.measured
		s.status.Phases = timed(revision, phaseStatuses(revision, found.layer), found.began, now)
		s.active(revision, found)
	}
	s.rolledBack(revision, found.next)
	if !isKept(revision) {
		s.hold(revision, found.next == nil, found.chainHeld)
	}
	return s.status
}

// troubled returns the status of a revision whose pass failed: Penstock does not maintain its
// objects until the cause is removed. Earlier observations stay.
func troubled(revision *olmv1alpha1.ClusterExtensionRevision, trouble error, now time.Time) olmv1alpha1.ClusterExtensionRevisionStatus {
	w := &writer{generation: revision.Generation, now: now, status: *revision.Status.DeepCopy()}
	for _, kind := range []string{olmv1alpha1.ConditionFailing, olmv1alpha1.ConditionStalled} {
		w.set(kind, true, reasonTrouble, clip(trouble.Error()))
	}
	return w.status
}

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
		Type: kind, Status: s, Reason: reason, Message: text.Punctuated(message),
		ObservedGeneration: w.generation, LastTransitionTime: metav1.NewTime(w.now),
	})
}

// keep sets the generation of a latched condition to the current one: kubectl wait ignores a
// condition of another generation.
func (w *writer) keep(kind string) {
	if latch := meta.FindStatusCondition(w.status.Conditions, kind); latch != nil && latch.Status == metav1.ConditionTrue {
		latch.ObservedGeneration = w.generation
	}
}

// current returns a copy of the revision with the status written so far.
func (w *writer) current(revision *olmv1alpha1.ClusterExtensionRevision) *olmv1alpha1.ClusterExtensionRevision {
	current := *revision
	current.Status = w.status
	return &current
}

// message returns the message of a condition; empty if there is none.
func (w *writer) message(kind string) string {
	if c := meta.FindStatusCondition(w.status.Conditions, kind); c != nil {
		return c.Message
	}
	return ""
}

func (w *writer) is(kind string) bool {
	return meta.IsStatusConditionTrue(w.status.Conditions, kind)
}

// active writes the status of an active layer, about the objects for which it is responsible.
func (w *writer) active(revision *olmv1alpha1.ClusterExtensionRevision, found finding) {
	leads := found.newest && !isPaused(revision) // the newest can be paused only if all are
	own := shareOf(found.layer, found.taking)
	message, person, stuck := summary(found.layer)
	if level := found.layer.Level; level != nil && level.Waiting > 0 && leads {
		message = waitingForLevel(level, found.inverted)
	}
	if message == "" {
		message = clip(own.String())
	}
	w.drift(revision, found, leads)
	w.available(found, leads, own, message)
	if left := w.succeed(revision, found, own); left != "" {
		message = left
	}
	w.progress(revision, found, own, message)
	w.fail(person, stuck)
	if !leads {
		w.describeIdle(message)
		return
	}
	w.stall(revision, person, message)
	w.ready(message, own)
}

// succeed sets Succeeded to True once the newest layer has been complete for its success delay, and
// its MetricChecks answer Yes. It returns a message about the remaining time if nothing else is
// missing.
func (w *writer) succeed(revision *olmv1alpha1.ClusterExtensionRevision, found finding, own share) string {
	end, available := soaked(revision, w.status.Conditions)
	verdict, why := metricVerdict(revision, w.status.MetricChecks, end)
	switch {
	case w.is(olmv1alpha1.ConditionSucceeded):
	case !available || !found.newest || !own.whole():
		// Objects of a newer revision do not count for this one, even if the newer one is paused.
		w.set(olmv1alpha1.ConditionSucceeded, false, reasonNotYet, "the rollout has not been complete yet")
	case verdict == olmv1alpha1.MetricNo:
		w.set(olmv1alpha1.ConditionSucceeded, false, reasonMetricFailed, clip(why))
		return why
	case w.now.Before(end):
		left := fmt.Sprintf("all objects are available; the revision succeeds if they still are at %s, after %s",
			end.UTC().Format(time.RFC3339), text.Count(revision.Spec.SuccessDelaySeconds, "second"))
		if len(revision.Spec.MetricChecks) > 0 {
			left += ", and its MetricChecks say Yes"
		}
		w.set(olmv1alpha1.ConditionSucceeded, false, reasonSoaking, left)
		return left
	case verdict != olmv1alpha1.MetricYes:
		reason := reasonMetricUnknown
		if verdict == "" {
			reason = reasonSoaking
		}
		left := clip("all objects are available; the revision succeeds when its MetricChecks say Yes: " + why)
		w.set(olmv1alpha1.ConditionSucceeded, false, reason, left)
		return left
	default:
		w.set(olmv1alpha1.ConditionSucceeded, true, reasonRolledOut, "the rollout was complete once")
	}
	return ""
}

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
		reason := reasonSoaking
		if soaking(w.current(revision)) {
			reason = meta.FindStatusCondition(w.status.Conditions, olmv1alpha1.ConditionSucceeded).Reason
		}
		w.set(olmv1alpha1.ConditionProgressing, reason != reasonMetricFailed, reason, message)
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

// fail reports whether a user should look. A stuck revision is retried and may continue by itself,
// so it is Failing but not Stalled.
func (w *writer) fail(person, stuck *rollout.Failure) {
	switch {
	case person != nil:
		w.set(olmv1alpha1.ConditionFailing, true, person.Reason, describe(*person))
	case stuck != nil:
		w.set(olmv1alpha1.ConditionFailing, true, stuck.Reason, describe(*stuck))
	case metricFailed(w.status.Conditions):
		w.set(olmv1alpha1.ConditionFailing, true, reasonMetricFailed, w.message(olmv1alpha1.ConditionSucceeded))
	default:
		w.set(olmv1alpha1.ConditionFailing, false, reasonNoFailure, nothingFails)
	}
}

// stall reports whether the rollout cannot continue.
func (w *writer) stall(revision *olmv1alpha1.ClusterExtensionRevision, person *rollout.Failure, message string) {
	switch {
	case person != nil:
		w.set(olmv1alpha1.ConditionStalled, true, person.Reason, describe(*person))
	case metricFailed(w.status.Conditions):
		w.set(olmv1alpha1.ConditionStalled, true, reasonMetricFailed, w.message(olmv1alpha1.ConditionSucceeded))
	case unanswered(w.current(revision), w.now):
		w.set(olmv1alpha1.ConditionStalled, true, reasonMetricUnknown, message)
	case overdue(w.current(revision), w.now):
		w.set(olmv1alpha1.ConditionStalled, true, reasonDeadline,
			clip(fmt.Sprintf("the rollout takes longer than %s; %s", text.Count(revision.Spec.ProgressDeadlineMinutes, "minute"), message)))
	default:
		w.set(olmv1alpha1.ConditionStalled, false, reasonNotStalled, nothingStalls)
	}
}

// ready derives Ready from Succeeded and Available of the leading layer.
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
