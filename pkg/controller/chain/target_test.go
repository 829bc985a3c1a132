package chain

import (
	"errors"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/target"
)

type known map[string]any

func (k known) Use(_, secret string) (target.Cluster, error) {
	if err, ok := k[secret].(error); ok {
		return target.Cluster{}, err
	}
	id, _ := k[secret].(string)
	return target.Cluster{ID: id}, nil
}

func (known) Leave(string) {}

type blind struct{ rollout.Observer }

func (blind) Want(string, ...observe.Interest) {}
func (blind) Drop(string)                      {}

func on(secret string) func(*olmv1alpha1.ClusterExtensionRevision) {
	return func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Spec.TargetRef = &olmv1alpha1.TargetReference{Name: secret}
	}
}

func orphaned(r *olmv1alpha1.ClusterExtensionRevision) {
	finalized(r)
	r.Spec.TeardownPolicy = olmv1alpha1.TeardownPolicyOrphan
}

// TestTarget: the engine does nothing until it is certain that the inventory belongs to the cluster
// that the revisions name.
func TestTarget(t *testing.T) {
	missing := &target.UnavailableError{Secret: "penstock/hosted", NeedsPerson: true, Why: errors.New("there is no such Secret")}
	silent := &target.UnavailableError{Secret: "penstock/hosted", Why: errors.New("it does not answer")}
	unknown, no, yes := metav1.ConditionUnknown, metav1.ConditionFalse, metav1.ConditionTrue
	type revisions = []*olmv1alpha1.ClusterExtensionRevision
	cases := map[string]struct {
		reason    string
		revisions revisions
		targets   known
		// recorded is the cluster of the inventory. held is the number of objects of revision 1 in
		// the inventory.
		recorded string
		held     int
		// targetErr is true if an error is wanted. available and failing are the conditions of the
		// newest revision.
		targetErr          bool
		available, failing metav1.ConditionStatus
		// cluster and left are the cluster and the number of objects of the inventory in the end.
		cluster string
		left    int
	}{
		"host": {reason: "no target, as ever", revisions: revisions{numbered(1, succeeded, available)}, held: 1, left: 1},
		"first": {
			reason: "what is in no cluster may go into any", revisions: revisions{numbered(1, on("hosted"))},
			targets: known{"hosted": "c-1"}, cluster: "c-1",
		},
		"same": {
			reason: "what is there is kept", revisions: revisions{numbered(1, on("hosted"), succeeded, available)},
			targets: known{"hosted": "c-1"}, recorded: "c-1", held: 1, cluster: "c-1", left: 1,
		},
		"elsewhere": {
			reason: "everything would be taken for deleted", revisions: revisions{numbered(1, on("hosted"), succeeded, available)},
			targets: known{"hosted": "c-2"}, recorded: "c-1", held: 1,
			targetErr: true, available: unknown, failing: yes, cluster: "c-1", left: 1,
		},
		"back in the host": {
			reason: "what is elsewhere is not looked for here", revisions: revisions{numbered(1)}, recorded: "c-1", held: 1,
			targetErr: true, available: no, failing: yes, cluster: "c-1", left: 1,
		},
		"missing": {
			reason: "a person has to bring the Secret back", revisions: revisions{numbered(1, on("hosted"), succeeded, available)},
			targets: known{"hosted": missing}, recorded: "c-1", held: 1,
			targetErr: true, available: unknown, failing: yes, cluster: "c-1", left: 1,
		},
		"silent": {
			reason: "that heals by itself", revisions: revisions{numbered(1, on("hosted"), succeeded, available)},
			targets: known{"hosted": silent}, recorded: "c-1", held: 1,
			targetErr: true, available: unknown, failing: no, cluster: "c-1", left: 1,
		},
		"divided": {
			reason: "two were created at the same moment", revisions: revisions{numbered(2, on("other")), numbered(1, on("hosted"), available)},
			targets: known{"hosted": "c-1", "other": "c-2"}, recorded: "c-1", held: 1,
			targetErr: true, available: no, failing: yes, cluster: "c-1", left: 1,
		},
		"teardown": {
			reason: "it waits", revisions: revisions{numbered(1, on("hosted"), finalized)},
			targets: known{"hosted": missing}, recorded: "c-1", held: 1,
			targetErr: true, available: no, failing: yes, cluster: "c-1", left: 1,
		},
		"orphaned": {
			reason: "who leaves objects needs no cluster for it", revisions: revisions{numbered(1, on("hosted"), orphaned)},
			targets: known{"hosted": missing}, recorded: "c-1", held: 1,
			targetErr: true, cluster: "c-1", left: 0,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := set(t, tc.revisions...)
			s.Targets, s.Engine, s.layers = tc.targets, rollout.New(rollout.Options{Observer: blind{}}), nil
			s.ledger.cluster = tc.recorded
			for i := range tc.held {
				s.ledger.inventory.Entries[objectID(string(rune('a'+i)))] = rollout.Entry{Revision: 1}
			}
			before := maps.Clone(s.ledger.inventory.Entries)
			s.resolveTarget()
			s.checkTarget()
			if err := s.forgetOrphans(t.Context()); err != nil {
				t.Fatal(err)
			}
			if (s.targetErr != nil) != tc.targetErr {
				t.Fatalf("%s: targetErr: %v, want %t", tc.reason, s.targetErr, tc.targetErr)
			}
			if s.ledger.cluster != tc.cluster || len(s.ledger.inventory.Entries) != tc.left {
				t.Errorf("%s: the inventory is about %q, with %d of %d objects", tc.reason, s.ledger.cluster, len(s.ledger.inventory.Entries), len(before))
			}
			if !tc.targetErr {
				return
			}
			// The pass uses no engine: there is none.
			if err := s.rollOut(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.writeStatus(t.Context()); err != nil {
				t.Fatal(err)
			}
			if tc.left == 0 {
				// The revision is deleted, and records no event.
				if err := s.release(t.Context()); err != nil || s.stored(t, tc.revisions[0].Spec.Revision) != nil {
					t.Errorf("%s: it is still there: %v", tc.reason, err)
				}
				return
			}
			got := s.stored(t, tc.revisions[0].Spec.Revision).Status.Conditions
			for kind, want := range map[string]metav1.ConditionStatus{olmv1alpha1.ConditionAvailable: tc.available, olmv1alpha1.ConditionFailing: tc.failing} {
				if !meta.IsStatusConditionPresentAndEqual(got, kind, want) {
					t.Errorf("%s: %s is not %s: %+v", tc.reason, kind, want, got)
				}
			}
			if said := meta.FindStatusCondition(got, olmv1alpha1.ConditionProgressing).Reason; said != reasonTargetUnavailable {
				t.Errorf("%s: Progressing says %s", tc.reason, said)
			}
		})
	}
}

// TestTargetForgetsStages: a stage that was reached in one cluster does not count in another.
func TestTargetForgetsStages(t *testing.T) {
	s := set(t, numbered(1, on("hosted")))
	s.Targets, s.Engine = known{"hosted": "c-2"}, rollout.New(rollout.Options{Observer: blind{}})
	s.ledger = &ledger{inventories: s.inventories, chain: "argocd", cluster: "c-1", inventory: rollout.Inventory{
		Entries: map[manifest.ID]rollout.Entry{}, Reached: map[string]int{string(uidOf(1)): 2},
	}}
	s.resolveTarget()
	s.checkTarget()
	if s.targetErr != nil || len(s.ledger.inventory.Reached) != 0 {
		t.Errorf("%+v, targetErr: %v", s.ledger.inventory, s.targetErr)
	}
	if err := s.ledger.save(t.Context(), rollout.Inventory{Reached: map[string]int{string(uidOf(1)): 1}}); err != nil || s.inventories.inventory.Cluster != "c-2" {
		t.Errorf("stored is %+v, error %v", s.inventories.inventory, err)
	}
}
