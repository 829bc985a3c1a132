package validation

import (
	"slices"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func TestRevisionUpdate(t *testing.T) {
	state := func(s olm.LifecycleState) change {
		return withSpec(func(spec *olm.ClusterExtensionRevisionSpec) { spec.LifecycleState = s })
	}
	none := func(*olm.ClusterExtensionRevision) {}
	cases := map[string]struct {
		reason      string
		old, change change
		want        []string
		mentions    string
	}{
		"Nothing":  {reason: "the same again", change: none},
		"Pause":    {reason: "may change", change: state(olm.LifecycleStatePaused)},
		"Resume":   {reason: "may change back", old: state(olm.LifecycleStatePaused), change: state(olm.LifecycleStateActive)},
		"Archive":  {reason: "may be archived while paused", old: state(olm.LifecycleStatePaused), change: state(olm.LifecycleStateArchived)},
		"Archived": {reason: "an archived one may be written otherwise", old: state(olm.LifecycleStateArchived), change: state(olm.LifecycleStateArchived)},
		"Revive": {
			reason: "what it gave up may be gone", old: state(olm.LifecycleStateArchived), change: state(olm.LifecycleStateActive),
			want: []string{invalid + "spec.lifecycleState"}, mentions: "Archived is final",
		},
		"State": {
			reason: "allowed values are listed", change: state("Done"),
			want: []string{notSupported + "spec.lifecycleState"},
		},
		"Deadline": {reason: "may change", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.ProgressDeadlineMinutes = 5 })},
		"Delay":    {reason: "may change: somebody has seen enough", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.SuccessDelaySeconds = 60 })},
		"OnFailure": {reason: "may change: somebody wants the way back", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) {
			s.OnFailure, s.ProgressDeadlineMinutes = olm.OnFailureRollback, 5
		})},
		"DeadlineOfRollback": {
			reason: "a deadline that something hangs on cannot be taken away alone",
			old: withSpec(func(s *olm.ClusterExtensionRevisionSpec) {
				s.OnFailure, s.ProgressDeadlineMinutes = olm.OnFailureRollback, 5
			}),
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.ProgressDeadlineMinutes = 0 }),
			want:   []string{invalid + "spec.onFailure"}, mentions: "needs spec.progressDeadlineMinutes",
		},
		"Teardown": {reason: "may change", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.TeardownPolicy = olm.TeardownPolicyOrphan })},
		"NegativeDeadline": {
			reason: "still a number of minutes", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.ProgressDeadlineMinutes = -5 }),
			want: []string{invalid + "spec.progressDeadlineMinutes"},
		},
		"Labels": {reason: "other labels are free", change: func(r *olm.ClusterExtensionRevision) { r.Labels["a"] = "b" }},
		"ChainLabel": {
			reason: "a revision stays in its extension", change: func(r *olm.ClusterExtensionRevision) { r.Labels[v1alpha1.ChainLabel] = "flux" },
			want: []string{invalid + "metadata.labels[penstock.dev/chain]"}, mentions: "cannot change",
		},
		"NoChainLabel": {
			reason: "or removed", change: func(r *olm.ClusterExtensionRevision) { delete(r.Labels, v1alpha1.ChainLabel) },
			want: []string{missing + "metadata.labels[penstock.dev/chain]"},
		},
		"Revision": {
			reason: "immutable", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.Revision = 4 }),
			want: []string{invalid + "spec.revision"}, mentions: immutable,
		},
		"Previous": {
			reason: "immutable", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.Previous = s.Previous[:1] }),
			want: []string{invalid + "spec.previous"}, mentions: immutable,
		},
		"Target": {
			reason: "what is there stays there", change: to("hosted"),
			want: []string{invalid + "spec.targetRef"}, mentions: immutable,
		},
		"Collision": {
			reason: "immutable", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.CollisionProtection = olm.CollisionProtectionNone }),
			want: []string{invalid + "spec.collisionProtection"}, mentions: immutable,
		},
		"Probes": {
			reason: "immutable", change: withProbe(func(p *olm.ProgressionProbe) { p.Assertions[0].ConditionEqual.Type = "Ready" }),
			want: []string{invalid + "spec.progressionProbes"}, mentions: immutable,
		},
		"Content": {
			reason: "the object is named, and no content printed",
			change: withObject(func(o *olm.RevisionObject) { o.Digest = "sha256:" + strings.Repeat("c", 64) }),
			want:   []string{invalid + "spec.phases[config]"},
			mentions: "spec.phases[config]: Invalid value: " + immutable +
				"; objects[0] (v1 ConfigMap argocd/cm) has another manifest",
		},
		"ObjectReplaced": {
			reason: "both are named", change: withObject(func(o *olm.RevisionObject) { o.Name = "other" }),
			want: []string{invalid + "spec.phases[config]"}, mentions: "objects[0] is v1 ConfigMap argocd/other, was v1 ConfigMap argocd/cm",
		},
		"ObjectCollision": {
			reason: "decides what is overwritten", change: withObject(func(o *olm.RevisionObject) { o.CollisionProtection = olm.CollisionProtectionNone }),
			want: []string{invalid + "spec.phases[config]"}, mentions: `(v1 ConfigMap argocd/cm) had collisionProtection ""`,
		},
		"ObjectAdded": {
			reason: "amounts are named",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) {
				s.Phases[1].Objects = append(s.Phases[1].Objects, object("v1", "Service", "server"))
			}),
			want: []string{invalid + "spec.phases[deploy]"}, mentions: "has 2 objects, had 1",
		},
		"ObjectsReordered": {
			reason: "order is content", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { slices.Reverse(s.Phases[0].Objects) }),
			want: []string{invalid + "spec.phases[config]"}, mentions: "objects[0] is v1 Secret argocd/s",
		},
		"PhaseCollision": {
			reason: "decides what is overwritten",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) {
				s.Phases[1].CollisionProtection = olm.CollisionProtectionNone
			}),
			want: []string{invalid + "spec.phases[deploy]"}, mentions: `collisionProtection was ""`,
		},
		"PhaseAdded": {
			reason: "immutable",
			change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.Phases = append(s.Phases, olm.RevisionPhase{Name: "new"}) }),
			want:   []string{invalid + "spec.phases[new]"}, mentions: "the phase was added",
		},
		"PhaseRenamed": {
			reason: "a removed and an added one", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.Phases[1].Name = "new" }),
			want: []string{invalid + "spec.phases[new]", invalid + "spec.phases[deploy]"}, mentions: "the phase was added",
		},
		"PhasesReordered": {
			reason: "order is content", change: withSpec(func(s *olm.ClusterExtensionRevisionSpec) { slices.Reverse(s.Phases) }),
			want: []string{invalid + "spec.phases"}, mentions: "the order of the phases changed",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.old == nil {
				tc.old = none
			}
			old := revision(tc.old)
			updated := revision(tc.old, tc.change)
			checkErrors(t, tc.reason, ValidateRevisionUpdate(updated, old), tc.want, tc.mentions)
		})
	}
}

// TestPhasesUpdateErrors: an update with too many phases gets at most as many errors as a revision
// may have phases.
func TestPhasesUpdateErrors(t *testing.T) {
	updated := revision(withSpec(func(s *olm.ClusterExtensionRevisionSpec) { s.Phases = numbered(20_000, 0) }))
	if errs := ValidateRevisionUpdate(updated, revision()); len(errs) != v1alpha1.MaxPhases {
		t.Errorf("%d errors, want %d", len(errs), v1alpha1.MaxPhases)
	}
}
