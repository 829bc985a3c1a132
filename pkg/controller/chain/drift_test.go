package chain

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// TestDriftReported: the status of a revision whose drift is only reported has the end time and the
// differences. Its other conditions do not change. The time ends by itself, and a time too far
// ahead is ignored.
func TestDriftReported(t *testing.T) {
	until := noon.Add(time.Hour).Format(time.RFC3339)
	s := set(t, numbered(1, succeeded, annotated(olmv1alpha1.ReportDriftUntilAnnotation, until)))
	s.began = noon
	said := func() *metav1.Condition {
		t.Helper()
		if err := s.writeStatus(t.Context()); err != nil {
			t.Fatal(err)
		}
		return meta.FindStatusCondition(s.stored(t, 1).Status.Conditions, olmv1alpha1.ConditionDriftReported)
	}
	if c := said(); c == nil || c.Reason != reasonNoDrift || !strings.Contains(c.Message, until) || !s.reportsDrift() {
		t.Errorf("without drift it is %+v", c)
	}
	phase := rollout.PhaseReport{Applied: 1, Available: 1}
	for _, name := range []string{"a", "b", "c", "d"} {
		phase.Drift = append(phase.Drift, rollout.Failure{Ref: manifest.Ref{ID: manifest.ID{Kind: "ConfigMap", Namespace: "argocd", Name: name}}, Message: "data.x was changed by kubectl"})
	}
	s.report.Layers[0] = *report(phase, true)
	c := said()
	if c == nil || c.Reason != reasonDriftFound || c.Message != "4 objects changed since the rollout; Penstock repairs that at "+until+
		": ConfigMap argocd/a: data.x was changed by kubectl; ConfigMap argocd/b: data.x was changed by kubectl; ConfigMap argocd/c: data.x was changed by kubectl; and 1 more" {
		t.Errorf("with drift it is %+v", c)
	}
	if conditions := s.stored(t, 1).Status.Conditions; !meta.IsStatusConditionTrue(conditions, olmv1alpha1.ConditionReady) || meta.IsStatusConditionTrue(conditions, olmv1alpha1.ConditionFailing) {
		t.Errorf("the revision is %+v", conditions)
	}
	s.Clock = clocktesting.NewFakePassiveClock(noon.Add(20 * time.Minute))
	if got := s.next(); got != 40*time.Minute {
		t.Errorf("looks again after %s, want 40m", got)
	}
	s.Clock, s.began = clocktesting.NewFakePassiveClock(noon.Add(time.Hour)), noon.Add(time.Hour)
	if c := said(); c != nil || s.reportsDrift() || s.next() != 0 {
		t.Errorf("at the end it is %+v, reports %t, next in %s", c, s.reportsDrift(), s.next())
	}
	s.began = noon.Add(-olmv1alpha1.MaxReportDrift)
	if s.reportsDrift() {
		t.Error("drift is reported for longer than seven days")
	}
}
