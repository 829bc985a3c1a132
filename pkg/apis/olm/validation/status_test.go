package validation

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func condition(kind string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: "Because", LastTransitionTime: metav1.NewTime(time.Unix(1, 0))}
}

func failures(n, messageLength int) []olm.ObjectFailure {
	out := make([]olm.ObjectFailure, n)
	for i := range out {
		out[i] = olm.ObjectFailure{APIVersion: "v1", Kind: "Pod", Name: "p", Reason: "ProbeFailed", Message: strings.Repeat("m", messageLength)}
	}
	return out
}

func TestStatusUpdate(t *testing.T) {
	phase := func(change func(*olm.PhaseStatus)) change {
		return withStatus(func(s *olm.ClusterExtensionRevisionStatus) { change(&s.Phases[0]) })
	}
	conditions := func(conditions ...metav1.Condition) change {
		return withStatus(func(s *olm.ClusterExtensionRevisionStatus) { s.Conditions = conditions })
	}
	at := func(seconds int64) *metav1.Time { return new(metav1.Unix(seconds, 0)) }
	cases := map[string]struct {
		reason      string
		old, change change
		want        []string
		mentions    string
	}{
		"Valid":      {reason: "the status that all cases start from", change: phase(func(*olm.PhaseStatus) {})},
		"Generation": {reason: "of the past", change: withStatus(func(s *olm.ClusterExtensionRevisionStatus) { s.ObservedGeneration = 1 })},
		"FutureGeneration": {
			reason: "nobody can have observed it", change: withStatus(func(s *olm.ClusterExtensionRevisionStatus) { s.ObservedGeneration = 3 }),
			want: []string{invalid + "status.observedGeneration"}, mentions: "from 0 to 2",
		},
		"Requester": {
			reason: "stamped by the server", change: withStatus(func(s *olm.ClusterExtensionRevisionStatus) { s.RequestedBy = &olm.Requester{Username: "mallory"} }),
			want: []string{invalid + "status.requestedBy"}, mentions: "immutable",
		},
		"Condition": {
			reason: "conditions have their own rules", change: conditions(metav1.Condition{Type: "Ready", Status: "Yes", Reason: "R", LastTransitionTime: metav1.NewTime(time.Unix(1, 0))}),
			want: []string{notSupported + "status.conditions[0].status"},
		},
		"Latched": {
			reason: "stays True", old: conditions(condition("Succeeded", metav1.ConditionTrue)), change: conditions(condition("Succeeded", metav1.ConditionTrue)),
		},
		"Unlatched": {
			reason: "others rely on it", old: conditions(condition("Succeeded", metav1.ConditionTrue)), change: conditions(condition("Succeeded", metav1.ConditionFalse)),
			want: []string{invalid + "status.conditions[Succeeded].status"}, mentions: "must stay True",
		},
		"LatchRemoved": {
			reason: "others rely on it", old: conditions(condition("Succeeded", metav1.ConditionTrue)), change: conditions(),
			want: []string{invalid + "status.conditions[Succeeded].status"},
		},
		"PhaseState": {
			reason: "allowed values are listed", change: phase(func(p *olm.PhaseStatus) { p.State = "Odd" }),
			want: []string{notSupported + "status.phases[0].state"}, mentions: `"Superseded"`,
		},
		"PhaseTwice": {
			reason: "a map by name", change: withStatus(func(s *olm.ClusterExtensionRevisionStatus) { s.Phases = append(s.Phases, s.Phases[0]) }),
			want: []string{duplicate + "status.phases[1].name"},
		},
		"TooManyPhases": {
			reason: "a revision has no more", change: withStatus(func(s *olm.ClusterExtensionRevisionStatus) {
				s.Phases = make([]olm.PhaseStatus, v1alpha1.MaxPhases+1)
			}),
			want: []string{many + "status.phases"},
		},
		"Count": {
			reason: "negative", change: phase(func(p *olm.PhaseStatus) { p.Available = -1 }),
			want: []string{invalid + "status.phases[0].available"},
		},
		"Times": {reason: "available when it started, or later", change: phase(func(p *olm.PhaseStatus) { p.StartedAt, p.AvailableAt = at(1), at(1) })},
		"NeverStarted": {
			reason: "available without a start", change: phase(func(p *olm.PhaseStatus) { p.AvailableAt = at(1) }),
			want: []string{missing + "status.phases[0].startedAt"},
		},
		"AvailableBefore": {
			reason: "available before it started", change: phase(func(p *olm.PhaseStatus) { p.StartedAt, p.AvailableAt = at(2), at(1) }),
			want: []string{invalid + "status.phases[0].availableAt"}, mentions: "1970-01-01T00:00:02Z",
		},
		"MostFailures": {reason: "as many as allowed, as long as allowed", change: phase(func(p *olm.PhaseStatus) {
			p.Failing = failures(v1alpha1.MaxReportedFailures, v1alpha1.MaxMessageLength)
		})},
		"TooManyFailures": {
			reason: "one more", change: phase(func(p *olm.PhaseStatus) { p.Failing = failures(v1alpha1.MaxReportedFailures+1, 1) }),
			want: []string{many + "status.phases[0].failing"}, mentions: "failingOmitted",
		},
		"LongMessage": {
			reason: "one byte more", change: phase(func(p *olm.PhaseStatus) { p.Failing = failures(1, v1alpha1.MaxMessageLength+1) }),
			want: []string{long + "status.phases[0].failing[0].message"}, mentions: "513 bytes, must have at most 512",
		},
		"NoReason": {
			reason: "a failure says what and why", change: phase(func(p *olm.PhaseStatus) { p.Failing = make([]olm.ObjectFailure, 1) }),
			want: []string{
				missing + "status.phases[0].failing[0].apiVersion", missing + "status.phases[0].failing[0].kind",
				missing + "status.phases[0].failing[0].name", missing + "status.phases[0].failing[0].reason",
			},
		},
		"Cause": {
			reason: "a cause says what and where", change: phase(func(p *olm.PhaseStatus) {
				p.Failing = failures(1, 1)
				p.Failing[0].Cause = &olm.FailureCause{}
			}),
			want: []string{
				missing + "status.phases[0].failing[0].cause.reason",
				missing + "status.phases[0].failing[0].cause.object.kind", missing + "status.phases[0].failing[0].cause.object.name",
			},
		},
		"TooLong": {
			reason: "the record would not fit into etcd", change: withStatus(func(s *olm.ClusterExtensionRevisionStatus) {
				s.RequestedBy = nil
				s.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionFalse)}
				s.Phases = nil
				for _, p := range numbered(30, 0) {
					s.Phases = append(s.Phases, olm.PhaseStatus{Name: p.Name, State: olm.PhaseStateFailing,
						Failing: failures(v1alpha1.MaxReportedFailures, v1alpha1.MaxMessageLength)})
				}
			}),
			want: []string{long + "status"}, mentions: "must have at most 196608",
		},
	}
	start := withStatus(func(s *olm.ClusterExtensionRevisionStatus) {
		s.ObservedGeneration = 2
		s.Phases = []olm.PhaseStatus{{Name: "config", State: olm.PhaseStateAvailable, Objects: 2, Applied: 2, Available: 2}}
	})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			old := revision(start)
			if tc.old != nil {
				old = revision(start, tc.old)
			}
			checkErrors(t, tc.reason, ValidateRevisionStatusUpdate(revision(start, tc.change), old), tc.want, tc.mentions)
		})
	}
}
