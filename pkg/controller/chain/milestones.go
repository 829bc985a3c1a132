package chain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/rolloutevents"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// repeatAfter is how long the same event of a revision is not repeated, so that a flapping
	// state causes one event.
	repeatAfter = time.Hour
	// maxMilestones bounds the different events of a revision that are remembered, and so the
	// events within repeatAfter. End events are always recorded.
	maxMilestones = 20
	// stuckAfter is the time without availability after which an event reports the cause: a shorter
	// failure can end by itself.
	stuckAfter = time.Minute
)

// Reasons of events on revisions, except events about changes in the cluster.
const (
	eventBegun     = rolloutevents.Begun
	eventPhase     = rolloutevents.PhaseAvailable
	eventStuck     = "Stuck"
	eventFailing   = "Failing"
	eventStalled   = "Stalled"
	eventSucceeded = rolloutevents.Succeeded
	eventRolled    = "RolledBack"
	eventArchived  = rolloutevents.Archived
	eventDeleted   = "Deleted"
	eventRemoved   = "Removed"
)

type milestone struct {
	warning         bool
	reason, message string
	// key distinguishes milestones with the same reason.
	key string
}

// end reports whether the event happens only once in the life of a revision.
func (m milestone) end() bool {
	return m.reason == eventSucceeded || m.reason == eventRolled || m.reason == eventArchived
}

// milestones returns the events between two statuses of a revision, in order. They depend only on
// stored statuses, so a restart repeats none.
func milestones(revision *olmv1alpha1.ClusterExtensionRevision, before, after *olmv1alpha1.ClusterExtensionRevisionStatus, now time.Time) []milestone {
	var found []milestone
	add := func(warning bool, reason, key, message string) {
		found = append(found, milestone{warning, reason, message, key})
	}
	turned := func(kind string) *metav1.Condition {
		if c := meta.FindStatusCondition(after.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue && !meta.IsStatusConditionTrue(before.Conditions, kind) {
			return c
		}
		return nil
	}
	fresh := !meta.IsStatusConditionTrue(before.Conditions, olmv1alpha1.ConditionSucceeded)
	succeeded := turned(olmv1alpha1.ConditionSucceeded)
	layer := rev.IsLayer(revision)
	if layer && fresh {
		if turned(olmv1alpha1.ConditionProgressing) != nil || len(before.Conditions) == 0 && meta.IsStatusConditionTrue(after.Conditions, olmv1alpha1.ConditionSucceeded) {
			add(false, eventBegun, "", begun(revision))
		}
		// When the last phase becomes available, the rollout succeeds, and that event covers all
		// phases.
		if phases := madeAvailable(before.Phases, after.Phases); len(phases) > 0 && succeeded == nil && !isPaused(revision) {
			add(false, eventPhase, strings.Join(phases, ","), nowAvailable(phases, after.Phases))
		}
	}
	failing, stalled := turned(olmv1alpha1.ConditionFailing), turned(olmv1alpha1.ConditionStalled)
	if failing != nil {
		add(true, eventFailing, failing.Reason, failing.Reason+": "+failing.Message)
	}
	if stalled != nil && (failing == nil || failing.Reason != stalled.Reason) {
		add(true, eventStalled, stalled.Reason, stalled.Reason+": "+stalled.Message)
	}
	if c := meta.FindStatusCondition(after.Conditions, olmv1alpha1.ConditionAvailable); layer && c != nil && c.Status == metav1.ConditionFalse && !now.Before(c.LastTransitionTime.Add(stuckAfter)) {
		if failure := explained(after.Phases); failure != nil {
			add(true, eventStuck, failure.Kind+"/"+failure.Namespace+"/"+failure.Name+"/"+failure.Cause.Reason,
				fmt.Sprintf("%s %s: %s", failure.Kind, strings.TrimPrefix(failure.Namespace+"/"+failure.Name, "/"), failure.Message))
		}
	}
	if succeeded != nil {
		add(false, eventSucceeded, "", complete(revision, after.Phases, now))
	}
	if c := turned(olmv1alpha1.ConditionRolledBack); c != nil {
		add(c.Reason == reasonDeadline, eventRolled, "", c.Message)
	}
	if c := archivedNow(before, after); c != nil {
		add(false, eventArchived, "", c.Message)
	}
	return found
}

// archivedNow returns the condition Ready of an archived revision that just gave up its last
// object.
func archivedNow(before, after *olmv1alpha1.ClusterExtensionRevisionStatus) *metav1.Condition {
	was, is := meta.FindStatusCondition(before.Conditions, olmv1alpha1.ConditionReady), meta.FindStatusCondition(after.Conditions, olmv1alpha1.ConditionReady)
	given := func(c *metav1.Condition) bool {
		return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reasonArchived
	}
	if was == nil || given(was) || !given(is) {
		return nil
	}
	return is
}

func begun(revision *olmv1alpha1.ClusterExtensionRevision) string {
	return rolloutOf(revision) + " has begun"
}

func rolloutOf(revision *olmv1alpha1.ClusterExtensionRevision) string {
	n := 0
	for _, phase := range revision.Spec.Phases {
		n += len(phase.Objects)
	}
	return fmt.Sprintf("the rollout of %s in %s", text.Count(n, "object"), text.Count(len(revision.Spec.Phases), "phase"))
}

// complete describes a complete rollout and its duration. The start of the first phase is known in
// whole seconds.
func complete(revision *olmv1alpha1.ClusterExtensionRevision, phases []olmv1alpha1.PhaseStatus, now time.Time) string {
	var first *metav1.Time
	for i := range phases {
		if at := phases[i].StartedAt; at != nil && (first == nil || at.Before(first)) {
			first = at
		}
	}
	message := rolloutOf(revision) + " is complete"
	if first == nil {
		return message
	}
	if took := now.Sub(first.Time).Truncate(time.Second); took >= time.Second {
		return fmt.Sprintf("%s, %s after it began", message, took)
	}
	return message + ", within a second"
}

func madeAvailable(before, after []olmv1alpha1.PhaseStatus) []string {
	was := map[string]olmv1alpha1.PhaseState{}
	for _, phase := range before {
		was[phase.Name] = phase.State
	}
	var names []string
	for _, phase := range after {
		if phase.State == olmv1alpha1.PhaseStateAvailable && was[phase.Name] != olmv1alpha1.PhaseStateAvailable {
			names = append(names, phase.Name)
		}
	}
	return names
}

// nowAvailable names the phases that became available, and counts all available phases.
func nowAvailable(names []string, all []olmv1alpha1.PhaseStatus) string {
	done := 0
	for _, phase := range all {
		if phase.State == olmv1alpha1.PhaseStateAvailable || phase.State == olmv1alpha1.PhaseStateSuperseded {
			done++
		}
	}
	what := "phase " + names[0] + " is"
	if len(names) > 1 {
		what = "phases " + strings.Join(names, ", ") + " are"
	}
	return fmt.Sprintf("%s available; that is %d of %s", what, done, text.Count(len(all), "phase"))
}

// explained returns the first unready object with a known cause.
func explained(phases []olmv1alpha1.PhaseStatus) *olmv1alpha1.ObjectFailure {
	for i := range phases {
		for j := range phases[i].Failing {
			failure := &phases[i].Failing[j]
			if failure.Cause != nil && !slices.Contains([]string{cause.Starting, "ContainerCreating"}, failure.Cause.Reason) {
				return failure
			}
		}
	}
	return nil
}

// told has the times of a revision's recorded events, by reason and key.
type told map[string]time.Time

// fresh reports whether an event was not recorded lately, and remembers it.
func (t told) fresh(m milestone, now time.Time) bool {
	key := m.reason + " " + m.key
	if at, again := t[key]; again && now.Before(at.Add(repeatAfter)) {
		return false
	}
	for key, at := range t {
		if !now.Before(at.Add(repeatAfter)) {
			delete(t, key)
		}
	}
	if len(t) >= maxMilestones && !m.end() {
		return false
	}
	t[key] = now
	return true
}

// recordMilestones records the milestones of a rollout as events. If the status could not be
// stored, the next pass records the milestone again.
func (s *scope) recordMilestones(revision *olmv1alpha1.ClusterExtensionRevision, before olmv1alpha1.ClusterExtensionRevisionStatus) {
	known := s.known[revision.UID]
	for _, m := range milestones(revision, &before, &revision.Status, s.judged) {
		if known.told == nil {
			known.told = told{}
		}
		if known.told.fresh(m, s.judged) {
			s.event(revision, m.warning, m.reason, m.message)
		}
	}
}
