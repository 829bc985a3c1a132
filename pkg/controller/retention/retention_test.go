package retention

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func revisions(state olmv1alpha1.LifecycleState, numbers ...int64) []olmv1alpha1.ClusterExtensionRevision {
	var out []olmv1alpha1.ClusterExtensionRevision
	for _, n := range numbers {
		r := olmv1alpha1.ClusterExtensionRevision{}
		r.Spec.Revision, r.Spec.LifecycleState = n, state
		out = append(out, r)
	}
	return out
}

func TestSurplus(t *testing.T) {
	leaving := revisions(olmv1alpha1.LifecycleStateArchived, 1)
	leaving[0].DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	archived, active := olmv1alpha1.LifecycleStateArchived, olmv1alpha1.LifecycleStateActive
	cases := map[string]struct {
		reason    string
		revisions []olmv1alpha1.ClusterExtensionRevision
		want      []int64
	}{
		"none":           {reason: "nothing to delete"},
		"as many":        {"five are kept", revisions(archived, 1, 2, 3, 4, 5), nil},
		"more":           {"the lowest numbers go, whatever the order of the list", revisions(archived, 7, 1, 2, 3, 6, 4, 5), []int64{2, 1}},
		"by number":      {"10 is newer than 9", revisions(archived, 10, 9, 8, 7, 6, 11), []int64{6}},
		"active":         {"active and paused revisions never go", append(revisions(active, 1, 2, 3, 4, 5, 6), revisions(olmv1alpha1.LifecycleStatePaused, 7)...), nil},
		"being deleted":  {"what is going already does not count", append(leaving, revisions(archived, 2, 3, 4, 5, 6)...), nil},
		"active between": {"an active revision does not count", append(revisions(active, 3), revisions(archived, 1, 2, 4, 5, 6, 7)...), []int64{1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []int64
			for _, r := range surplus(tc.revisions) {
				got = append(got, r.Spec.Revision)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}
