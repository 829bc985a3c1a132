package chain

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// played is the state of a layer with fifteen objects in a pass.
type played struct {
	of []func(*olmv1alpha1.ClusterExtensionRevision)
	// superseded of the fifteen objects belong to a newer layer; pending are not reached yet.
	superseded, pending int
	failures            []rollout.Failure
}

func (p played) report(number int64) rollout.LayerReport {
	own := 15 - p.superseded - p.pending
	phase := rollout.PhaseReport{
		Name: "deploy", Reached: p.pending < 15, Objects: 15, Superseded: p.superseded, Pending: p.pending,
		Applied: own, Available: own, Failures: p.failures,
	}
	if len(p.failures) > 0 && own > 0 {
		phase.Available -= len(p.failures)
	}
	return rollout.LayerReport{Revision: number, Complete: p.pending == 0 && len(p.failures) == 0, Phases: []rollout.PhaseReport{phase}}
}

// TestLayers: the status of each layer describes only the objects for which the layer is
// responsible.
func TestLayers(t *testing.T) {
	type revise = func(*olmv1alpha1.ClusterExtensionRevision)
	of := func(change ...revise) []revise { return change }
	paused := state(olmv1alpha1.LifecycleStatePaused)
	collision := []rollout.Failure{failure(rollout.ReasonCollision, true)}
	waits := []rollout.Failure{failure(rollout.ReasonProbe, false)}
	differs := []rollout.Failure{failure(rollout.ReasonPaused, false)}
	rejected := []rollout.Failure{failure(rollout.ReasonRejected, true)}
	const (
		object   = "Deployment.apps argocd/server: 0 of 1 replicas available"
		phase    = "phase deploy (1 of 1): " + object
		takes2   = "argocd-2 takes the objects over as it reaches them"
		takes3   = "argocd-3 takes the objects over as it reaches them"
		isPaused = "the revision is paused: nothing is written"
		all      = "15 objects in 1 phase are as rolled out"
		once     = "Succeeded=True/RolledOut"
		never    = "Succeeded=False/NotYet: the rollout has not been complete yet"
		fine     = "Failing=False/NoFailure: nothing fails"
		moves    = "Stalled=False/NotStalled: nothing waits for a person, and no deadline has passed"
	)
	superseding := func(successor string) string { return "Stalled=False/Superseded: " + successor }
	cases := map[string]struct {
		reason string
		layers []played // newest first
		want   []string
	}{
		"the next one is stuck half way": {
			"thirteen objects are the newer one's, and only two are what this one rolled out",
			[]played{{of: of(), failures: waits}, {of: of(succeeded), superseded: 13}},
			[]string{
				"Ready=False/NotYet: " + phase, "Available=False/Unavailable: " + phase, "Progressing=True/RollingOut: " + phase, never, fine, moves,
				"Ready=True/Superseded: " + takes2, "Available=True/Superseded: 2 of 15 objects are as rolled out; 13 belong to argocd-2",
				"Progressing=False/Superseded: " + takes2, once, fine, superseding(takes2),
			},
		},
		"the next one has everything": {
			"nothing of this one is left that could be available",
			[]played{{of: of(), failures: waits}, {of: of(succeeded), superseded: 15}},
			[]string{
				"Ready=False/NotYet: " + phase, "Available=False/Unavailable: " + phase, "Progressing=True/RollingOut: " + phase, never, fine, moves,
				"Ready=True/Superseded: " + takes2, "Available=False/Superseded: 0 of 15 objects are as rolled out; 15 belong to argocd-2",
				"Progressing=False/Superseded: " + takes2, once, fine, superseding(takes2),
			},
		},
		"the next one has reached nothing": {
			"all is still this one's",
			[]played{{of: of(), pending: 15, failures: collision}, {of: of(succeeded)}},
			[]string{
				"Ready=False/NotYet: " + phase, "Available=False/Unavailable: " + phase, "Progressing=True/RollingOut: " + phase, never,
				"Failing=True/Collision: " + object, "Stalled=True/Collision: " + object,
				"Ready=True/Superseded: " + takes2, "Available=True/RolledOut: " + all,
				"Progressing=False/Superseded: " + takes2, once, fine, superseding(takes2),
			},
		},
		"superseded before it was complete": {
			"what it never reached it does not answer for",
			[]played{{of: of(), failures: waits}, {of: of(), superseded: 5, pending: 9}},
			[]string{
				"Ready=False/NotYet: " + phase, "Available=False/Unavailable: " + phase, "Progressing=True/RollingOut: " + phase, never, fine, moves,
				"Ready=True/Superseded: " + takes2, "Available=True/Superseded: 1 of 15 objects is as rolled out; 5 belong to argocd-2; 9 were not reached",
				"Progressing=False/Superseded: " + takes2, never, fine, superseding(takes2),
			},
		},
		"superseded, and what is left fails": {
			"somebody should look, and it is not what stalls",
			[]played{{of: of(), failures: waits}, {of: of(succeeded), superseded: 13, failures: rejected}},
			[]string{
				"Ready=False/NotYet: " + phase, "Available=False/Unavailable: " + phase, "Progressing=True/RollingOut: " + phase, never, fine, moves,
				"Ready=False/Unavailable: " + phase, "Available=False/Unavailable: " + phase,
				"Progressing=False/Superseded: " + takes2, once, "Failing=True/ApplyRejected: " + object, superseding(takes2),
			},
		},
		"the next one is prepared, and this one fails": {
			"a pause takes nothing back of what is wrong below it, and is not wrong itself",
			[]played{{of: of(paused), pending: 15}, {of: of(), pending: 9, failures: collision}},
			[]string{
				"Ready=True/Paused: " + isPaused, "Available=False/Paused: 0 of 15 objects are as rolled out; 15 were not reached",
				"Progressing=False/Paused: " + isPaused, never, fine, "Stalled=False/Paused: " + isPaused,
				"Ready=False/NotYet: " + phase, "Available=False/Unavailable: " + phase, "Progressing=True/RollingOut: " + phase, never,
				"Failing=True/Collision: " + object, "Stalled=True/Collision: " + object,
			},
		},
		"the next one is prepared, and this one is well": {
			"nobody else's pause makes it anything less",
			[]played{{of: of(paused), pending: 15}, {of: of(succeeded)}},
			[]string{
				"Ready=True/Paused: " + isPaused, "Available=False/Paused: 0 of 15 objects are as rolled out; 15 were not reached",
				"Progressing=False/Paused: " + isPaused, never, fine, "Stalled=False/Paused: " + isPaused,
				"Ready=True/RolledOut: " + all, "Available=True/RolledOut: " + all, "Progressing=False/RolledOut: the rollout is complete", once, fine, moves,
			},
		},
		"the next one was paused half way": {
			"the older one cannot get back what that has",
			[]played{{of: of(paused), pending: 2}, {of: of(), superseded: 13}},
			[]string{
				"Ready=True/Paused: " + isPaused, "Available=True/Paused: 13 of 15 objects are as rolled out; 2 were not reached",
				"Progressing=False/Paused: " + isPaused, never, fine, "Stalled=False/Paused: " + isPaused,
				"Ready=False/NotYet: 2 of 15 objects are as rolled out; 13 belong to argocd-2",
				"Available=True/Superseded: 2 of 15 objects are as rolled out; 13 belong to argocd-2",
				"Progressing=False/Superseded: 2 of 15 objects are as rolled out; 13 belong to argocd-2", never, fine, moves,
			},
		},
		"both are paused": {
			"what differs is told, and not mended",
			[]played{{of: of(paused), pending: 15}, {of: of(succeeded, paused), failures: differs}},
			[]string{
				"Ready=True/Paused: " + isPaused, "Available=False/Paused: 0 of 15 objects are as rolled out; 15 were not reached",
				"Progressing=False/Paused: " + isPaused, never, fine, "Stalled=False/Paused: " + isPaused,
				"Ready=True/Paused: " + isPaused, "Available=False/Unavailable: " + phase, "Progressing=False/Paused: " + isPaused, once, fine, "Stalled=False/Paused: " + isPaused,
			},
		},
		"three, of which the middle one has most": {
			"each names who has what it lacks",
			[]played{{of: of(), pending: 10, failures: collision}, {of: of(), superseded: 5, pending: 2}, {of: of(succeeded), superseded: 13}},
			[]string{
				"Ready=False/NotYet: " + phase, "Available=False/Unavailable: " + phase, "Progressing=True/RollingOut: " + phase, never,
				"Failing=True/Collision: " + object, "Stalled=True/Collision: " + object,
				"Ready=True/Superseded: " + takes3, "Available=True/Superseded: 8 of 15 objects are as rolled out; 5 belong to argocd-3; 2 were not reached",
				"Progressing=False/Superseded: " + takes3, never, fine, superseding(takes3),
				"Ready=True/Superseded: " + takes3, "Available=True/Superseded: 2 of 15 objects are as rolled out; 13 belong to argocd-3 and argocd-2",
				"Progressing=False/Superseded: " + takes3, once, fine, superseding(takes3),
			},
		},
		"three, of which the newest is prepared": {
			"the middle one progresses",
			[]played{{of: of(paused), pending: 15}, {of: of(), failures: waits}, {of: of(succeeded), superseded: 14}},
			[]string{
				"Ready=True/Paused: " + isPaused, "Available=False/Paused: 0 of 15 objects are as rolled out; 15 were not reached",
				"Progressing=False/Paused: " + isPaused, never, fine, "Stalled=False/Paused: " + isPaused,
				"Ready=False/NotYet: " + phase, "Available=False/Unavailable: " + phase, "Progressing=True/RollingOut: " + phase, never, fine, moves,
				"Ready=True/Superseded: " + takes2, "Available=True/Superseded: 1 of 15 objects is as rolled out; 14 belong to argocd-2",
				"Progressing=False/Superseded: " + takes2, once, fine, superseding(takes2),
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var revisions []*olmv1alpha1.ClusterExtensionRevision
			for i, layer := range tc.layers {
				revisions = append(revisions, numbered(int64(len(tc.layers)-i), layer.of...))
			}
			s := set(t, revisions...)
			for i, layer := range tc.layers {
				s.report.Layers[i] = layer.report(int64(len(tc.layers) - i))
			}
			var got []string
			for i := range s.revisions {
				got = append(got, sentences(status(&s.revisions[i], s.finding(i), noon))...)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestEveryConditionSaysSomething: every condition has a message, because users would have to look
// up a bare reason.
func TestEveryConditionSaysSomething(t *testing.T) {
	done := report(rollout.PhaseReport{Applied: 1, Available: 1}, true)
	for name, tc := range map[string]struct {
		revision *olmv1alpha1.ClusterExtensionRevision
		found    finding
	}{
		"rolled out": {revision(), finding{layer: done, newest: true}},
		"paused":     {revision(state(olmv1alpha1.LifecycleStatePaused)), finding{layer: done}},
		"superseded": {revision(), finding{layer: done, successor: "argocd-3"}},
		"archived":   {revision(state(olmv1alpha1.LifecycleStateArchived)), finding{}},
		"deleted":    {revision(deleted), finding{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range status(tc.revision, tc.found, noon).Conditions {
				if c.Message == "" {
					t.Errorf("%s=%s has the reason %s and no message", c.Type, c.Status, c.Reason)
				}
			}
		})
	}
}

func sentences(s olmv1alpha1.ClusterExtensionRevisionStatus) []string {
	var out []string
	for _, kind := range []string{
		olmv1alpha1.ConditionReady, olmv1alpha1.ConditionAvailable, olmv1alpha1.ConditionProgressing,
		olmv1alpha1.ConditionSucceeded, olmv1alpha1.ConditionFailing, olmv1alpha1.ConditionStalled,
	} {
		c := meta.FindStatusCondition(s.Conditions, kind)
		if c == nil {
			c = &metav1.Condition{Type: kind}
		}
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%s=%s/%s: %s", c.Type, c.Status, c.Reason, c.Message), ": "))
	}
	return out
}

// TestInstancesAskByCommand: the message has the whole command that allows the deletion of
// definitions with instances.
func TestInstancesAskByCommand(t *testing.T) {
	r := numbered(1, finalized)
	r.Annotations = map[string]string{olmv1alpha1.AllowCRDDeletionAnnotation: "before.example.com"}
	s := set(t, r)
	for _, name := range []string{"apps.argoproj.io", "projects.argoproj.io"} {
		id := manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: name}
		s.ledger.inventory.Entries[id] = rollout.Entry{Revision: 1}
		s.report.Leaving = append(s.report.Leaving, rollout.Failure{
			Ref: manifest.Ref{ID: id, Version: "v1"}, Reason: rollout.ReasonCRDInstances, NeedsPerson: true, Message: strings.Repeat("long ", 200),
		})
	}
	stalled := meta.FindStatusCondition(status(&s.revisions[0], s.finding(0), noon).Conditions, olmv1alpha1.ConditionStalled)
	want := "kubectl annotate --overwrite cer argocd-1 penstock.dev/allow-crd-deletion=before.example.com,apps.argoproj.io,projects.argoproj.io"
	if stalled.Status != metav1.ConditionTrue || !strings.HasSuffix(stalled.Message, want) || len(stalled.Message) > olmv1alpha1.MaxMessageLength {
		t.Errorf("it says %s", stalled.Message)
	}
}
