package chartkind

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/pkg/signer"
)

func installed(t *testing.T, change func(spec map[string]any)) *plane {
	p := newPlane(t)
	p.kind(change)
	p.lamp("hall", 1)
	p.stop = p.run()
	p.await("hall", "its revision is rolled out", says(report.Deployed, "Unknown", report.ReasonReconciling))
	p.deployment("hall", "True")
	p.roll("lamp-house-hall-1", olmv1alpha1.ConditionSucceeded, "RolledOut")
	p.settled("hall")
	return p
}

func (p *plane) settled(name string) *unstructured.Unstructured {
	p.Helper()
	return p.await(name, "it is installed", func(object *unstructured.Unstructured) bool {
		return says(report.Progressing, "False", report.ReasonReconcileSuccessful)(object) && says(report.Ready, "True", report.ReasonWorkloadsReady)(object) &&
			report.StatusOf(object).ObservedGeneration == object.GetGeneration()
	})
}

func TestInstall(t *testing.T) {
	p := installed(t, nil)
	status := report.StatusOf(p.settled("hall"))
	if status.ReconciledVersion != "1.2.3" || !says(report.Deployed, "True", report.ReasonInstallSuccessful)(p.settled("hall")) {
		t.Errorf("%+v", status)
	}
	for _, one := range status.Conditions {
		if one.Type == report.Deployed && one.Message != "Lamp hall burns." {
			t.Errorf("the chart words the message: %s", one.Message)
		}
	}
	if made, _, renders := p.counts(); made != 1 || renders != 1 || p.made[0] != "system:serviceaccount:lights:operator Active" {
		t.Errorf("%v, rendered %d times", p.made, renders)
	}
}

// TestFlapping: the loops do not wake each other. A flapping workload causes one status write for
// each change, and no pass, rendering or revision.
func TestFlapping(t *testing.T) {
	p := installed(t, nil)
	made, before, renders := p.counts()
	const rounds = 20
	for range rounds {
		p.deployment("hall", "False")
		p.roll("lamp-house-hall-1", olmv1alpha1.ConditionSucceeded, "RolledOut") // its condition Available has changed, too
		p.await("hall", "it is not ready", says(report.Ready, "False", report.ReasonWorkloadsNotReady))
		p.deployment("hall", "True")
		p.settled("hall")
	}
	nowMade, after, nowRenders := p.counts()
	if nowMade != made || nowRenders != renders || after[FieldManager] != before[FieldManager] {
		t.Errorf("flapping made %d revisions, %d renderings and %d writes of the loop of revisions", nowMade-made, nowRenders-renders, after[FieldManager]-before[FieldManager])
	}
	if writes := after[StatusManager] - before[StatusManager]; writes != 2*rounds {
		t.Errorf("%d changes took %d writes", 2*rounds, writes)
	}
}

// TestRestart: a new leader reads the present state, and writes no unchanged status, not even while
// the workloads are unknown.
func TestRestart(t *testing.T) {
	p := installed(t, nil)
	before := report.StatusOf(p.settled("hall"))
	made, writes, renders := p.counts()
	p.stop()
	p.run()
	p.deployment("hall", "False")
	found := p.await("hall", "its workload is looked at again", says(report.Ready, "False", report.ReasonWorkloadsNotReady))
	nowMade, after, nowRenders := p.counts()
	if nowMade != made || nowRenders != renders || after[FieldManager] != writes[FieldManager] || after[StatusManager] != writes[StatusManager]+1 {
		t.Errorf("%d revisions, %d renderings, writes before %v and now %v", nowMade-made, nowRenders-renders, writes, after)
	}
	for _, one := range report.StatusOf(found).Conditions {
		i := slices.IndexFunc(before.Conditions, func(other metav1.Condition) bool { return other.Type == one.Type })
		if one.Type != report.Ready && (i < 0 || !one.LastTransitionTime.Equal(&before.Conditions[i].LastTransitionTime)) {
			t.Errorf("%s has another time of transition: %+v", one.Type, one)
		}
	}
}

// TestAutoscaler: an autoscaler changes the number of replicas, and the workload's controller
// observes that a moment later. Status does not change.
func TestAutoscaler(t *testing.T) {
	p := installed(t, nil)
	p.stop()
	p.clock = clocktesting.NewFakeClock(time.Now()) // the moment does not end
	p.run()
	_, before, _ := p.counts()
	for i := range int64(10) {
		p.store(deployments, "Deployment", "hall", func(object *unstructured.Unstructured) {
			object.SetGeneration(2 + i)
			_ = unstructured.SetNestedField(object.Object, 2+i, "spec", "replicas")
		})
		p.store(deployments, "Deployment", "hall", func(object *unstructured.Unstructured) {
			_ = unstructured.SetNestedField(object.Object, 2+i, "status", "observedGeneration")
		})
	}
	p.lamp("other", 1) // its status is written after or during the other pass
	p.await("other", "it is looked at", says(report.Deployed, "Unknown", report.ReasonReconciling))
	found := p.settled("hall")
	_, after, _ := p.counts()
	for _, one := range report.StatusOf(found).Conditions {
		if one.Type == report.Ready && one.Status != metav1.ConditionTrue {
			t.Errorf("%+v", one)
		}
	}
	if writes := after[StatusManager] - before[StatusManager]; writes > 2 {
		t.Errorf("10 changes of replicas took %d writes; the other Lamp takes two at most", writes)
	}
}

// TestChange: a change of spec creates the next revision. An invalid spec is reported, and then
// corrected.
func TestChange(t *testing.T) {
	p := installed(t, nil)
	p.lamp("hall", 2)
	p.await("hall", "it is rolled out", says(report.Progressing, "True", report.ReasonReconciling))
	p.until("the next revision is made", func() bool { return len(p.made) == 2 }, func() any { return p.made })
	p.roll("lamp-house-hall-2", olmv1alpha1.ConditionStalled, "ProgressDeadlineExceeded")
	p.await("hall", "its rollout has failed", says(report.Progressing, "True", report.ReleaseFailed))
	p.lamp("hall", -1)
	found := p.await("hall", "it cannot be", says(report.Progressing, "True", report.Irreconcilable))
	if status := report.StatusOf(found); status.ObservedGeneration != found.GetGeneration() || status.ReconciledVersion != "1.2.3" {
		t.Errorf("a generation is observed at the end of a bad pass, too: %+v", status)
	}
	p.lamp("hall", 1)
	p.until("what was there is asked for again", func() bool { return len(p.made) == 3 }, func() any { return p.made })
	p.roll("lamp-house-hall-3", olmv1alpha1.ConditionSucceeded, "RolledOut")
	p.settled("hall")
	if !says(report.Irreconcilable, "False", report.ReasonNone)(p.settled("hall")) {
		t.Error("what was wrong is said still")
	}
}

// TestVerified: a revision records who signed its chart.
func TestVerified(t *testing.T) {
	p := newPlane(t)
	by := func(name string) *signer.Record { return &signer.Record{Rule: "default", Signers: []string{name}} }
	p.signed["r.example/lamp:1"], p.signed["r.example/lamp:2"] = by("key a"), by("key b")
	p.kind(nil)
	p.lamp("hall", 1)
	p.stop = p.run()
	recorded := func(revision string) string {
		p.mu.Lock()
		defer p.mu.Unlock()
		if one := p.revisions[revision]; one != nil {
			return one.Annotations[olmv1alpha1.VerifiedAnnotation]
		}
		return ""
	}
	want := func(name, reference string) string {
		return by(name).Of(reference + "@sha256:" + strings.Repeat("a", 64)).String()
	}
	p.until("the first chart is recorded", func() bool { return p.revisions["lamp-house-hall-1"] != nil }, func() any { return p.made })
	if found := recorded("lamp-house-hall-1"); found != want("key a", "r.example/lamp:1") {
		t.Errorf("the record is %s", found)
	}
	p.stop()
	if err := p.host.Tracker().Delete(chartkind.Resource, "", "lamp"); err != nil {
		t.Fatal(err)
	}
	p.kind(func(spec map[string]any) { spec["chart"] = map[string]any{"ref": "r.example/lamp:2"} })
	p.stop = p.run()
	p.lamp("hall", 2)
	p.until("the second chart is recorded", func() bool {
		one := p.revisions["lamp-house-hall-2"]
		return one != nil && one.Annotations[olmv1alpha1.VerifiedAnnotation] == want("key b", "r.example/lamp:2")
	}, func() any { return p.revisions["lamp-house-hall-2"] })
}

// TestChangeMeanwhile: a new generation arrives during the rollout of the previous generation. The
// end of that rollout does not make the new generation observed.
func TestChangeMeanwhile(t *testing.T) {
	p := newPlane(t)
	p.kind(nil)
	p.lamp("hall", 1)
	p.run()
	p.await("hall", "it is rolled out", says(report.Deployed, "Unknown", report.ReasonReconciling))
	p.deployment("hall", "True")
	p.lamp("hall", 2)
	p.until("the next revision is made", func() bool { return len(p.made) == 2 }, func() any { return p.made })
	p.roll("lamp-house-hall-1", olmv1alpha1.ConditionSucceeded, "RolledOut")
	p.roll("lamp-house-hall-2", olmv1alpha1.ConditionAvailable, "RolledOut")
	found := p.await("hall", "the second one is rolled out still", says(report.Progressing, "True", report.ReasonReconciling))
	if report.StatusOf(found).ObservedGeneration == found.GetGeneration() {
		t.Errorf("what is not rolled out is observed: %+v", report.StatusOf(found))
	}
	p.roll("lamp-house-hall-2", olmv1alpha1.ConditionSucceeded, "RolledOut")
	p.settled("hall")
}

func TestApproval(t *testing.T) {
	p := installed(t, func(spec map[string]any) { spec["upgradeApproval"] = chartkind.ApprovalManual })
	p.lamp("hall", 2)
	p.await("hall", "the second revision waits", says(report.Deployed, "True", report.ReasonReconciling))
	p.lamp("hall", 3)
	p.until("the third one is in its place", func() bool {
		return len(p.made) == 3 && p.revisions["lamp-house-hall-2"] == nil && p.revisions["lamp-house-hall-3"] != nil
	}, func() any { return p.made })
	if p.made[2] != "system:serviceaccount:lights:operator Paused" {
		t.Errorf("%v", p.made)
	}
	p.change("lamp-house-hall-3", func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Spec.LifecycleState, r.Generation = olmv1alpha1.LifecycleStateActive, 2
	})
	p.await("hall", "it goes on", says(report.Deployed, "Unknown", report.ReasonReconciling))
	p.roll("lamp-house-hall-3", olmv1alpha1.ConditionSucceeded, "RolledOut")
	p.settled("hall")
}

// TestDeclined: a proposal that a user archives is declined. It is neither rolled out nor proposed
// again until the request changes.
func TestDeclined(t *testing.T) {
	p := installed(t, func(spec map[string]any) { spec["upgradeApproval"] = chartkind.ApprovalManual })
	p.lamp("hall", 2)
	p.until("the second revision waits", func() bool { return len(p.made) == 2 }, func() any { return p.made })
	p.change("lamp-house-hall-2", func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Spec.LifecycleState, r.Generation = olmv1alpha1.LifecycleStateArchived, 2
	})
	found := p.await("hall", "it says so", func(object *unstructured.Unstructured) bool {
		return slices.ContainsFunc(report.StatusOf(object).Conditions, func(one metav1.Condition) bool {
			return strings.HasPrefix(one.Message, "lamp-house-hall-2 was declined")
		})
	})
	if made, _, _ := p.counts(); made != 2 {
		t.Errorf("%v: %v", p.made, report.StatusOf(found))
	}
	p.lamp("hall", 3)
	p.until("the third one waits", func() bool { return len(p.made) == 3 }, func() any { return p.made })
	if p.made[2] != "system:serviceaccount:lights:operator Paused" {
		t.Errorf("%v", p.made)
	}
	// Earlier installed content does not replace a proposal.
	p.change("lamp-house-hall-1", func(r *olmv1alpha1.ClusterExtensionRevision) { r.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
	p.lamp("hall", 4)
	p.until("the fourth one waits", func() bool { return len(p.made) == 4 }, func() any { return p.made })
	if p.made[3] != "system:serviceaccount:lights:operator Paused" {
		t.Errorf("%v", p.made)
	}
}

func TestDeletion(t *testing.T) {
	p := installed(t, nil)
	p.store(lamps, "Lamp", "hall", func(object *unstructured.Unstructured) {
		object.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
		object.SetGeneration(object.GetGeneration() + 1)
	})
	p.await("hall", "it is gone", func(object *unstructured.Unstructured) bool { return object == nil })
	if len(p.revisions) != 0 {
		t.Errorf("left: %v", p.revisions)
	}
}

// TestTaken: two custom resources whose extensions would have one name do not share it.
func TestTaken(t *testing.T) {
	p := installed(t, func(spec map[string]any) { spec["extension"] = "'lamp-house-hall'" })
	p.lamp("other", 1)
	found := p.await("other", "the name is taken", says(report.Progressing, "True", report.Irreconcilable))
	if made, _, _ := p.counts(); made != 1 {
		t.Errorf("%v: %+v", p.made, report.StatusOf(found))
	}
	for _, condition := range report.StatusOf(found).Conditions {
		if strings.Contains(condition.Message, "house/hall") {
			t.Errorf("whose the name is is said: %s", condition.Message)
		}
	}
}

// TestDenied: Penstock does not act as a ServiceAccount that the author cannot impersonate.
func TestDenied(t *testing.T) {
	for _, who := range []string{"alice", "system:serviceaccount:lights:operator"} {
		p := newPlane(t)
		p.lacks[who] = true
		p.kind(nil)
		p.lamp("hall", 1)
		p.run()
		p.until("it is told", func() bool {
			found, err := p.host.Tracker().Get(chartkind.Resource, "", "lamp")
			return err == nil && says(chartkind.ConditionAccepted, "False", string(reasonDenied))(found.(*unstructured.Unstructured))
		}, func() any { return "not" })
		if made, writes, _ := p.counts(); made != 0 || len(writes) != 0 {
			t.Errorf("%s: %s", who, fmt.Sprint(made, writes))
		}
	}
}

// TestIsTold: while the cache lacks the last write, the same status is not written again, even if
// the cache has the write before. Later writes of other users are handled.
func TestIsTold(t *testing.T) {
	ready := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: report.Ready, Status: status, Reason: report.ReasonWorkloadsReady}}
	}
	s := &served{told: map[string]told{}}
	s.recordWrite("house/hall", "7", ready(metav1.ConditionFalse))
	s.recordWrite("house/hall", "9", ready(metav1.ConditionTrue))
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
			if got := s.isWritten(one.key, object, ready(one.wanted)); got != one.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
