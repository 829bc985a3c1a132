package screens

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
)

// TestRolloutClusters: each cluster of a rollout has its state and the user's possible actions.
func TestRolloutClusters(t *testing.T) {
	rollout := &v1alpha1.ClusterExtensionRollout{
		Spec: v1alpha1.ClusterExtensionRolloutSpec{Set: v1alpha1.RolloutSet{Name: "lamps"}, Clusters: []v1alpha1.RolloutTarget{
			{Name: "new", Wave: "one"}, {Name: "old", Wave: "one", Before: "sha256:a"}, {Name: "failed", Wave: "one", Before: "sha256:a"}, {Name: "done", Wave: "two"}, {Name: "skipped", Wave: "two"}, {Name: "same", Wave: "two", Before: "sha256:b", Present: true},
		}},
		Status: v1alpha1.ClusterExtensionRolloutStatus{Clusters: []v1alpha1.RolloutClusterStatus{
			{Name: "done", State: "Succeeded", Attempt: 1}, {Name: "failed", State: "Failed", Attempt: 2, Reason: "Deadline"}, {Name: "skipped", State: "Skipped", By: "bert"}, {Name: "same", State: "Present"},
		}},
	}
	want := []RolloutCluster{
		{Name: "new", Wave: "one", Signal: Stopped, State: "Pending", Skip: true},
		{Name: "old", Wave: "one", Signal: Stopped, State: "Pending", Extension: "lamps.old", Skip: true},
		{Name: "failed", Wave: "one", Signal: NeedsAttention, State: "Failed", Attempt: 2, Reason: "Deadline", Extension: "lamps.failed", Retry: true, Skip: true},
		{Name: "done", Wave: "two", Signal: Healthy, State: "Succeeded", Attempt: 1, Extension: "lamps.done"},
		{Name: "skipped", Wave: "two", Signal: Stopped, State: "Skipped", By: "bert"},
		{Name: "same", Wave: "two", Signal: Healthy, State: "Present", Extension: "lamps.same", Skip: true},
	}
	if diff := cmp.Diff(want, rolloutOf(rollout).Clusters); diff != "" {
		t.Error(diff)
	}
	rollout.Status.Ended = true
	for _, one := range rolloutOf(rollout).Clusters {
		if one.Retry || one.Skip {
			t.Errorf("cluster %s of a rollout that ended can be retried or skipped", one.Name)
		}
	}
}

// TestSetRow: the signal of a set follows from its conditions, as in every other answer.
func TestSetRow(t *testing.T) {
	isTrue := func(of string) func(*extensionset.Status) {
		return func(s *extensionset.Status) {
			for i := range s.Conditions {
				if s.Conditions[i].Type == of {
					s.Conditions[i].Status = metav1.ConditionTrue
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		reason string
		change func(*extensionset.Status)
		want   SetRow
	}{
		"nobody has looked at it":                                     {"", func(s *extensionset.Status) { s.Conditions = nil }, SetRow{Signal: InProgress, State: "Pending"}},
		"it waits for an approval, and says how by kubectl elsewhere": {string(fleet.ReviewRequired), isTrue("Stalled"), SetRow{Signal: Review, State: "ReviewRequired"}},
		"halted":      {string(fleet.PhaseHalted), isTrue("Stalled"), SetRow{Signal: NeedsAttention, State: "Halted", Message: "because"}},
		"in progress": {string(fleet.InProgress), isTrue("Progressing"), SetRow{Signal: InProgress, State: "InProgress", Message: "because"}},
		"completed":   {string(fleet.Completed), isTrue("Ready"), SetRow{Signal: Healthy, State: "Completed", Message: "because"}},
		"completed without a cluster that was skipped": {string(fleet.Completed), func(*extensionset.Status) {}, SetRow{Signal: Stopped, State: "Completed", Message: "because"}},
		"clusters cannot be served":                    {"ClustersExcepted", func(s *extensionset.Status) { s.Exceptions = []extensionset.Exception{{Cluster: "a"}} }, SetRow{Signal: NeedsAttention, State: "ClustersExcepted", Message: "because"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := &extensionset.Set{}
			for _, of := range []string{"Ready", "Progressing", "Stalled"} {
				set.Status.Conditions = append(set.Status.Conditions, condition(of, metav1.ConditionFalse, tc.reason))
			}
			tc.change(&set.Status)
			if diff := cmp.Diff(tc.want, setRow(set)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
