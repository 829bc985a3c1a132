package extensionrollout

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/fleet"
)

func spec() *v1alpha1.ClusterExtensionRolloutSpec {
	return &v1alpha1.ClusterExtensionRolloutSpec{
		DeadlineSeconds: 60, Waves: []v1alpha1.RolloutWave{{Name: "canary", MaxUnavailable: 1}, {Name: "rest", MaxUnavailable: 1, ApprovalRequired: true}},
		Clusters: []v1alpha1.RolloutTarget{{Name: "a", UID: "1", Wave: "canary", After: "new"}, {Name: "b", UID: "2", Wave: "rest", After: "new"}},
	}
}

// TestRecord: a progress stays the same after Record and Progress.
func TestRecord(t *testing.T) {
	now := time.Date(2026, 11, 28, 8, 0, 0, 1000, time.UTC)
	status := &v1alpha1.ClusterExtensionRolloutStatus{
		Approvals: []v1alpha1.RolloutApproval{{Digest: "d", User: "bob"}, {Wave: "rest", Digest: "e", User: "bob"}}, HaltedBy: "carol",
	}
	want := fleet.Progress{
		Approved: "d", ApprovedWaves: map[string]string{"rest": "e"}, Halted: true, Completed: true,
		Clusters: map[string]fleet.At{"a": {State: fleet.Soaking, Attempt: 2, Since: now, Healthy: now, Seen: now.Add(time.Second)}, "b": {State: fleet.Failed, Since: now, Reason: fleet.ReasonFailed}},
	}
	Record(status, want, "bob")
	if diff := cmp.Diff(want, Progress(status)); diff != "" {
		t.Error(diff)
	}
	if status.Clusters[1].By != "bob" {
		t.Errorf("%+v", status.Clusters[1])
	}
}

// TestSay: the status has the digest that an approval takes now, and a text for each reason to
// wait.
func TestSay(t *testing.T) {
	plan := Plan(spec())
	if err := plan.Validate(); err != nil {
		t.Fatal(err)
	}
	status := &v1alpha1.ClusterExtensionRolloutStatus{}
	situation := Situation(spec(), status, time.Now())
	progress, report := plan.Step(Progress(status), situation)
	Say("argocd-1", plan, status, progress, report, situation)
	if status.Phase != string(fleet.ReviewRequired) || status.Digest != plan.Digest() || !strings.Contains(status.Message, "fleet approve argocd-1") {
		t.Errorf("%+v", status)
	}
	for _, reason := range []fleet.WaitReason{
		fleet.WaitHalted, fleet.WaitFrozen, fleet.WaitFailures, fleet.WaitUnreachable, fleet.WaitLeaving, fleet.WaitNoSuccess, fleet.WaitUnhealthy, fleet.WaitEarlier, fleet.WaitApproval,
		fleet.WaitWaveApproval, fleet.WaitWindow, fleet.WaitWaveWindow, fleet.WaitUnobserved, fleet.WaitUnavailable, fleet.WaitRoom, fleet.WaitWave, fleet.WaitSoak,
	} {
		if words()[reason] == "" {
			t.Errorf("no words for %s", reason)
		}
	}

	night := spec()
	night.Waves[0].Window = &v1alpha1.RolloutWindow{Schedule: "0 22 * * *", TimeZone: "Europe/Berlin", Duration: metav1.Duration{Duration: time.Hour}}
	plan = Plan(night)
	status.Approvals = []v1alpha1.RolloutApproval{{Digest: plan.Digest()}}
	situation.Now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	progress, report = plan.Step(Progress(status), situation)
	Say("argocd-1", plan, status, progress, report, situation)
	if status.Phase != string(fleet.Scheduled) || status.Message != "wave canary: its window is closed, and opens at 2026-11-29T21:00:00Z" || len(status.Waits) != 1 || status.Waits[0].OpensAt == nil {
		t.Errorf("%s: %s: %+v", status.Phase, status.Message, status.Waits)
	}
}
