package chartkind

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/chartkind/report"
)

// TestIsTold: while the cache is behind what was written last, the same is not written again, also
// when it has come as far as the write before; what somebody wrote later is looked at.
func TestIsTold(t *testing.T) {
	ready := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: report.Ready, Status: status, Reason: report.ReasonWorkloadsReady}}
	}
	s := &served{told: map[string]told{}}
	s.noteTold("house/hall", "7", ready(metav1.ConditionFalse))
	s.noteTold("house/hall", "9", ready(metav1.ConditionTrue))
	for name, one := range map[string]struct {
		key, cached string
		wanted      metav1.ConditionStatus
		want        bool
	}{
		"BehindBoth":    {"house/hall", "6", metav1.ConditionTrue, true},
		"BehindTheLast": {"house/hall", "7", metav1.ConditionTrue, true},
		"Other":         {"house/hall", "7", metav1.ConditionFalse, false},
		"Seen":          {"house/hall", "9", metav1.ConditionTrue, false},
		"WrittenLater":  {"house/hall", "10", metav1.ConditionTrue, false},
		"Unknown":       {"house/stairs", "6", metav1.ConditionTrue, false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			object.SetResourceVersion(one.cached)
			if got := s.isTold(one.key, object, ready(one.wanted)); got != one.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
