package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/metrics"
)

// TestFleetsOf: the states sum to all clusters, including clusters that have not begun. A reason of
// two waves counts once.
func TestFleetsOf(t *testing.T) {
	rollout := &olmv1alpha1.ClusterExtensionRollout{ObjectMeta: metav1.ObjectMeta{Name: "edge-2"}}
	rollout.Spec.Set.Name = "edge"
	rollout.Spec.Clusters = []olmv1alpha1.RolloutTarget{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	rollout.Status.Clusters = []olmv1alpha1.RolloutClusterStatus{{Name: "a", State: "Succeeded"}, {Name: "b", State: "Failed"}, {Name: "c", State: "Pending"}}
	rollout.Status.Waits = []olmv1alpha1.RolloutWait{{Reason: "TooManyFailures", Wave: "one"}, {Reason: "TooManyFailures", Wave: "two"}}
	want := []metrics.Fleet{{Set: "edge", States: map[string]int{"Succeeded": 1, "Failed": 1, "Pending": 2}, Waits: []string{"TooManyFailures"}}}
	if diff := cmp.Diff(want, fleetsOf([]*olmv1alpha1.ClusterExtensionRollout{rollout})); diff != "" {
		t.Error(diff)
	}
}
