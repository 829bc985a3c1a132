package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/loadawarerebalancing"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestLeaderChangeInARun: a new leader continues a run where it was.
func TestLeaderChangeInARun(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseInProgress)
	before := l.plan("a").Status.Items[0]
	l.cluster.spent()
	l.restart()
	after := l.is("a", v1alpha1.PhaseInProgress).Status.Items[0]
	if !after.StartedAt.Equal(before.StartedAt) {
		t.Errorf("the item started at %s, and at %s", before.StartedAt, after.StartedAt)
	}
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseCompleted)
	if applied := count(l.cluster.spent(), "apply "); applied != 1 {
		t.Errorf("applied %d times after the change; the first item was applied before", applied)
	}
	if rows := l.history("a"); len(rows) != 1 || rows[0].Outcome != v1alpha1.PhaseCompleted {
		t.Errorf("history: %+v", rows)
	}
}

func count(requests []string, prefix string) int {
	n := 0
	for _, request := range requests {
		if strings.HasPrefix(request, prefix) {
			n++
		}
	}
	return n
}

// TestEtcdOutageInARun: nothing is applied during an outage of etcd, because no write may happen
// without a record.
func TestEtcdOutageInARun(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseInProgress)
	l.cluster.spent()
	l.outage = errors.New("etcd is away")
	l.cluster.roll("worker", 4)
	for range 5 {
		if l.pass("a") == nil {
			t.Error("a pass without etcd found nothing wrong")
		}
	}
	if spent := l.cluster.spent(); len(spent) > 0 {
		t.Errorf("requests while nothing could be written down: %v", spent)
	}
	l.outage = nil
	l.is("a", v1alpha1.PhaseCompleted)
}

// TestDefinitionGoesInARun: the deletion of a definition ends the run, and releases the profile.
// When the definition returns, the plan is computed again and waits for approval.
func TestDefinitionGoesInARun(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseInProgress)
	l.cluster.missing[descheduler().GroupKind()] = true
	plan := l.is("a", v1alpha1.PhasePrerequisiteFailed, "MissingDependency", "install the Kube Descheduler Operator", "interrupted")
	if l.claimed() != "" || states(plan) != "Failed Pending" {
		t.Errorf("%q has the profile, items %s", l.claimed(), states(plan))
	}
	if row := l.history("a")[0]; row.Outcome != v1alpha1.PhasePrerequisiteFailed {
		t.Errorf("the run ended as %q", row.Outcome)
	}
	clear(l.cluster.missing)
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.lookAt(nil, "the approval was for another run")
}

// TestDeletedInARun: a plan that is deleted during a run leaves the end of the run in the history.
func TestDeletedInARun(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseInProgress)
	l.must(l.remove("a"))
	l.must(l.pass("a"))
	rows := l.history("a")
	if len(rows) != 1 || rows[0].EndedAt == nil || rows[0].Outcome != v1alpha1.PhaseIgnored || rows[0].Items[0].State != v1alpha1.ItemFailed {
		t.Errorf("history: %+v", rows)
	}
	if l.claimed() != "" || len(l.cluster.watched) > 0 {
		t.Errorf("%q has the profile, watched: %v", l.claimed(), l.cluster.watched)
	}
}

// TestCreatesAtOnce: one of several concurrent plans gets the profile, and the other plans report
// the holder.
func TestCreatesAtOnce(t *testing.T) {
	l := newStore(t).newLab(t).usual()
	const n = 8
	results := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { results[i] = l.create(fmt.Sprintf("plan-%d", i), take) })
	}
	all.Wait()
	won := 0
	for _, err := range results {
		switch {
		case err == nil:
			won++
		case !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "holds profile LoadAwareRebalancing"):
			t.Errorf("refused with: %v", err)
		}
	}
	if won != 1 || len(l.plans()) != 1 {
		t.Errorf("%d creates succeeded, and there are plans %v", won, l.plans())
	}
}

// TestOverride: a profile is taken over by name. The plan that held it stops, and names the new
// holder. It continues when the profile is free again.
func TestOverride(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseInProgress)
	l.must(l.create("b", take, override("a")))
	l.poked = false
	l.must(l.pass("b"))
	if !l.poked {
		t.Error("nobody tells the plan that had the profile")
	}
	l.is("a", v1alpha1.PhaseFailed, "ProfileLocked", `held by plan "b"`, "interrupted")
	l.is("b", v1alpha1.PhaseReviewRequired)
	l.must(l.edit("b", action(hco.ActionIgnore)))
	l.poked = false
	l.must(l.pass("b"))
	if !l.poked {
		t.Error("nobody tells the plan that waits for the profile")
	}
	l.is("b", v1alpha1.PhaseIgnored)
	l.is("a", v1alpha1.PhaseReviewRequired)
	if l.claimed() != "a" {
		t.Errorf("%q has the profile", l.claimed())
	}
	// The deletion of a plan also releases the profile.
	l.must(l.create("c", take, override("a")))
	l.is("a", v1alpha1.PhaseFailed, `held by plan "c"`)
	l.must(l.remove("c"))
	l.must(l.pass("c"))
	l.is("a", v1alpha1.PhaseReviewRequired)
}

// TestContinue: with Continue every item has its turn, and the plan still reports the errors.
func TestContinue(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired, carryOn)
	l.refusing(psi())
	l.approved()
	plan := l.is("a", v1alpha1.PhaseCompletedWithErrors, "items failed: enable-psi-metrics", "kubectl penstock plan run a (or a POST to the subresource retry) plans the rest")
	if states(plan) != "Failed Completed" {
		t.Errorf("items: %s", states(plan))
	}
	l.lookAt(int64(60), "the second item has its turn")
}

// TestStale: a changed target is reported in review, and stops a plan before its first write. If no
// pass has seen the change, the write itself fails.
func TestStale(t *testing.T) {
	store := newStore(t)
	changed := func(l *lab) { l.cluster.set(descheduler(), "mallory", "Debug", "spec", "logLevel") }
	const says = "changed since it was reviewed; last written by mallory"
	t.Run("at review", func(t *testing.T) {
		l := store.newLab(t)
		l.reach(v1alpha1.PhaseReviewRequired)
		changed(l)
		l.is("a", v1alpha1.PhaseReviewRequired, "PlanStale", says, "retry")
		l.restart()
		l.cluster.blind = true // the report stays
		l.is("a", v1alpha1.PhaseReviewRequired, "PlanStale", says)
		l.cluster.blind = false
		l.must(l.retry("a"))
		plan := l.is("a", v1alpha1.PhaseReviewRequired)
		if plan.Status.Items[1].Message != "" {
			t.Errorf("refreshed, and the item says %q", plan.Status.Items[1].Message)
		}
	})
	t.Run("before execution", func(t *testing.T) {
		l := store.newLab(t)
		l.reach(v1alpha1.PhaseReviewRequired)
		changed(l)
		l.approved()
		plan := l.is("a", v1alpha1.PhaseFailed, "PlanStale", says, "nothing was applied")
		if states(plan) != "Pending Failed" || l.cluster.value(psi(), "spec") != nil {
			t.Errorf("items %s: the first one must not reboot nodes for a plan that ends at the second", states(plan))
		}
	})
	t.Run("in the write", func(t *testing.T) {
		l := store.newLab(t)
		l.reach(v1alpha1.PhaseInProgress)
		l.cluster.frozen = map[manifest.ID]*unstructured.Unstructured{descheduler(): l.cluster.objects[descheduler()]}
		changed(l)
		l.cluster.roll("worker", 4)
		l.is("a", v1alpha1.PhaseFailed, "PlanStale", says)
		l.lookAt(nil, "the watch was late, and the write was not")
	})
	for name, another := range map[string]bool{"deleted while it is waited for": false, "deleted before another leader came": true} {
		t.Run(name, func(t *testing.T) {
			l := store.newLab(t)
			l.reach(v1alpha1.PhaseInProgress)
			l.cluster.erase(psi())
			if another {
				l.restart()
			}
			plan := l.is("a", v1alpha1.PhaseFailed, "enable-psi-metrics Failed: was deleted")
			if states(plan) != "Failed Pending" || l.cluster.objects[psi()] != nil {
				t.Errorf("items %s; the target is there: %t", states(plan), l.cluster.objects[psi()] != nil)
			}
		})
	}
}

// TestFactsChangeInReview: facts may change during the review. Status reports that, and the plan
// stays as reviewed.
func TestFactsChangeInReview(t *testing.T) {
	l := newStore(t).newLab(t)
	l.hyperConverged(6)
	l.reach(v1alpha1.PhaseReviewRequired)
	reviewed := l.plan("a").Status.PlanHash
	l.hyperConverged(8)
	if plan := l.is("a", v1alpha1.PhaseReviewRequired, "LogicChanged"); plan.Status.PlanHash != reviewed {
		t.Error("the plan has changed under its reader")
	}
	l.must(l.retry("a"))
	if plan := l.is("a", v1alpha1.PhaseReviewRequired, "UpToDate"); plan.Status.PlanHash == reviewed {
		t.Error("the plan is still the old one")
	}
}

type variant struct {
	loadawarerebalancing.Profile
	interval any
}

func (v variant) Items(facts profile.Facts, options *v1alpha1.PlanOptions) ([]profile.Item, error) {
	items, err := v.Profile.Items(facts, options)
	if err == nil && v.interval != nil {
		items[1].Object["spec"].(map[string]any)["deschedulingIntervalSeconds"] = v.interval
	}
	return items, err
}

// TestStickyUpgrade: a new version of the program does not change a plan. Status reports if the new
// version would compute another plan.
func TestStickyUpgrade(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseCompleted)
	l.cluster.spent()
	l.version, l.profiles = "v2", []profile.Profile{variant{}}
	l.restart()
	plan := l.is("a", v1alpha1.PhaseCompleted, "UpToDate")
	if plan.Status.OperatorVersion != "v2" {
		t.Errorf("the same plan is one of %s", plan.Status.OperatorVersion)
	}
	l.version, l.profiles = "v3", []profile.Profile{variant{interval: int64(90)}}
	l.restart()
	plan = l.is("a", v1alpha1.PhaseCompleted, "LogicChanged")
	l.lookAt(int64(60), "nobody asked for the new logic")
	if plan.Status.OperatorVersion != "v2" || count(l.cluster.spent(), "apply ") > 0 {
		t.Errorf("the plan is one of %s", plan.Status.OperatorVersion)
	}
	l.must(l.edit("a", action(hco.ActionDryRun)))
	plan = l.is("a", v1alpha1.PhaseReviewRequired, "UpToDate")
	if diff := plan.Status.Items[1].Diff; !strings.Contains(diff, "+  deschedulingIntervalSeconds: 90") {
		t.Errorf("diff:\n%s", diff)
	}
	l.must(l.enforce("a"))
	l.is("a", v1alpha1.PhaseCompleted)
	l.lookAt(int64(90), "it was reviewed and approved")
}

// workloads is a profile with a workload and a later item.
type workloads struct{ kind string }

func (workloads) Name() v1alpha1.ProfileName      { return v1alpha1.ProfileLoadAwareRebalancing }
func (workloads) Description() string             { return "a workload" }
func (workloads) Requires() []profile.Requirement { return nil }

func (w workloads) Items(profile.Facts, *v1alpha1.PlanOptions) ([]profile.Item, error) {
	labels := map[string]any{"app": "x"}
	workload := map[string]any{
		"apiVersion": "apps/v1", "kind": w.kind, "metadata": map[string]any{"name": "x", "namespace": "n"},
		"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": map[string]any{"metadata": map[string]any{"labels": labels}}},
	}
	behind := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x", "namespace": "n"}}
	return []profile.Item{{Name: "workload", Object: workload}, {Name: "behind", Object: behind}}, nil
}

// TestWaitsForWorkloads: a workload must be available before the turn of the next item.
func TestWaitsForWorkloads(t *testing.T) {
	store := newStore(t)
	for kind, ready := range map[string]map[string]any{
		"Deployment": {"observedGeneration": int64(1), "replicas": int64(1), "updatedReplicas": int64(1), "readyReplicas": int64(1), "availableReplicas": int64(1),
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}}},
		"DaemonSet": {"observedGeneration": int64(1), "desiredNumberScheduled": int64(2), "currentNumberScheduled": int64(2),
			"updatedNumberScheduled": int64(2), "numberReady": int64(2), "numberAvailable": int64(2)},
	} {
		t.Run(kind, func(t *testing.T) {
			l := store.newLab(t, workloads{kind})
			l.must(l.create("a", action(hco.ActionApply)))
			plan := l.is("a", v1alpha1.PhaseInProgress)
			if states(plan) != "InProgress Pending" || plan.Status.Items[0].Message == "" {
				t.Errorf("items: %s, %q", states(plan), plan.Status.Items[0].Message)
			}
			id := manifest.ID{Group: "apps", Kind: kind, Namespace: "n", Name: "x"}
			l.cluster.set(id, "kube-controller-manager", ready, "status")
			l.is("a", v1alpha1.PhaseCompleted)
		})
	}
}

// TestWaitsInCEL: a CEL wait of a profile delays the next item, and status reports it.
func TestWaitsInCEL(t *testing.T) {
	store := newStore(t)
	l := store.newLab(t, knobs{n: 2, waits: []profile.Wait{{Expression: "self.status.turned == true", Message: "waiting for the knob to be turned"}}})
	l.must(l.create("a", action(hco.ActionApply)))
	if plan := l.is("a", v1alpha1.PhaseInProgress, "waiting for the knob to be turned"); states(plan) != "InProgress Pending" {
		t.Errorf("items: %s", states(plan))
	}
	l.cluster.set(knob(0), "operator", true, "status", "turned")
	if plan := l.is("a", v1alpha1.PhaseInProgress); states(plan) != "Completed InProgress" {
		t.Errorf("items: %s", states(plan))
	}
	l.cluster.set(knob(1), "operator", true, "status", "turned")
	l.is("a", v1alpha1.PhaseCompleted)
	// A state from before the write does not count.
	l.must(l.edit("a", interval(70), action(hco.ActionDryRun)))
	l.approved()
	l.cluster.frozen = map[manifest.ID]*unstructured.Unstructured{knob(0): l.cluster.objects[knob(0)]}
	l.is("a", v1alpha1.PhaseInProgress, "waiting to see its state")
	l.cluster.frozen = nil
	l.is("a", v1alpha1.PhaseCompleted)
	wrong := store.newLab(t, knobs{n: 1, waits: []profile.Wait{{Expression: "self.status.turned +"}}})
	wrong.must(wrong.create("a", action(hco.ActionApply)))
	wrong.is("a", v1alpha1.PhaseFailed, "PlanRefused", "item knob-00")
}

// TestRollback: a rollback is another plan of the same object, with its own review. It deletes the
// objects of the run, restores former values, and keeps values of other writers.
func TestRollback(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseCompleted)
	l.cluster.set(descheduler(), "mallory", "Debug", "spec", "logLevel")
	l.must(l.rollback("a", 1))
	plan := l.is("a", v1alpha1.PhaseReviewRequired)
	if plan.Spec.Action != v1alpha1.ActionDryRun || plan.Status.Approval != nil {
		t.Errorf("action %s, approval %v: asking for a rollback approves nothing", plan.Spec.Action, plan.Status.Approval)
	}
	if actions := fmt.Sprint(plan.Status.Items[0].Action, " ", plan.Status.Items[1].Action); actions != "Update Delete" {
		t.Errorf("actions: %s", actions)
	}
	l.must(l.approve("a", plan.Status.PlanHash))
	l.settle()
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseCompleted, "Restored")
	l.lookAt(nil, "the run had set it")
	if l.cluster.value(psi(), "spec") != nil || l.cluster.value(descheduler(), "spec", "logLevel") != "Debug" ||
		fmt.Sprint(l.cluster.value(descheduler(), "spec", "profiles")) != "[AffinityAndTaints]" {
		t.Errorf("not as it was: %v", l.cluster.objects[descheduler()].Object["spec"])
	}
	// The way back to the profile is another plan, too.
	l.must(l.edit("a", func(p *hco.ConfigurationPlan) { p.Spec.RestoreRun = 0 }, action(hco.ActionDryRun)))
	l.complete()
	l.lookAt(int64(60), "it was approved")
}

// TestApproverLacksRights: nothing is written if an approver lacks the rights to it.
func TestApproverLacksRights(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired)
	l.lacks = []string{"create machineconfigs.machineconfiguration.openshift.io 99-worker-psi-karg"}
	l.approved()
	plan := l.is("a", v1alpha1.PhaseFailed, "ApproverLacksRights", "alice approved the plan and cannot create machineconfigs")
	if states(plan) != "Pending Pending" || l.cluster.value(psi(), "spec") != nil {
		t.Errorf("items %s", states(plan))
	}
}

// TestExpiry: a plan that is not approved in time requests the pass that ends it.
func TestExpiry(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired)
	l.clock.SetTime(l.clock.Now().Add(23 * time.Hour))
	l.must(l.pass("a"))
	if l.again != time.Hour {
		t.Errorf("the next pass is in %s", l.again)
	}
	l.clock.SetTime(l.clock.Now().Add(time.Hour))
	l.is("a", v1alpha1.PhaseExpired, "nobody approved it within 24h0m0s", "retry")
	if l.claimed() != "" {
		t.Errorf("%q has the profile", l.claimed())
	}
	if err := l.approve("a", l.plan("a").Status.PlanHash); !apierrors.IsConflict(err) {
		t.Errorf("approving an expired plan: %v", err)
	}
}

// TestConflict: a plan that would take fields from other managers names them and waits. It cannot
// be approved in any way until spec allows the conflict.
func TestConflict(t *testing.T) {
	store := newStore(t)
	block := func(p *hco.ConfigurationPlan) { p.Spec.OnConflict = hco.OnConflictBlock }
	conflicting := func(t *testing.T, changes ...spec) *lab {
		l := store.newLab(t).usual()
		l.cluster.erase(descheduler())
		l.cluster.set(descheduler(), "argocd", int64(3600), "spec", "deschedulingIntervalSeconds")
		l.must(l.create("a", append([]spec{block}, changes...)...))
		return l
	}
	t.Run("waits", func(t *testing.T) {
		l := conflicting(t)
		plan := l.is("a", v1alpha1.PhaseReviewRequired, "FieldConflict", ".spec.deschedulingIntervalSeconds of KubeDescheduler cluster belong to argocd", "spec.onConflict to Take")
		if diff := plan.Status.Items[1].Diff; !strings.Contains(diff, "-  deschedulingIntervalSeconds: \"***\"\n+  deschedulingIntervalSeconds: 60") || plan.Status.PlanHash == "" {
			t.Error("there is nothing to review")
		}
		if err := l.approve("a", plan.Status.PlanHash); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "argocd") {
			t.Errorf("approving it: %v", err)
		}
		l.must(l.enforce("a"))
		l.is("a", v1alpha1.PhaseReviewRequired, "FieldConflict")
		l.must(l.edit("a", take))
		plan = l.is("a", v1alpha1.PhaseReviewRequired, "ReviewRequired")
		l.must(l.approve("a", plan.Status.PlanHash))
		l.settle()
		l.cluster.roll("worker", 4)
		l.is("a", v1alpha1.PhaseCompleted)
		l.lookAt(int64(60), "taking was allowed")
	})
	t.Run("standing approval", func(t *testing.T) {
		l := conflicting(t, action(hco.ActionApply))
		l.is("a", v1alpha1.PhaseReviewRequired, "FieldConflict", "argocd")
		l.lookAt(int64(3600), "nothing was taken")
	})
	t.Run("given up", func(t *testing.T) {
		l := conflicting(t)
		l.is("a", v1alpha1.PhaseReviewRequired, "FieldConflict")
		l.cluster.alter(descheduler(), "argocd", func(o map[string]any) { delete(o["spec"].(map[string]any), "deschedulingIntervalSeconds") })
		l.is("a", v1alpha1.PhaseReviewRequired, "PlanStale")
		l.must(l.retry("a"))
		l.is("a", v1alpha1.PhaseReviewRequired, "approve hash")
	})
	t.Run("nobody's", func(t *testing.T) {
		l := store.newLab(t).usual()
		l.cluster.set(descheduler(), "argocd", int64(3600), "spec", "deschedulingIntervalSeconds")
		l.cluster.objects[descheduler()].SetManagedFields(nil)
		l.must(l.create("a", block))
		plan := l.is("a", v1alpha1.PhaseReviewRequired, "FieldConflict", "belong to before-first-apply")
		if takes := plan.Status.Items[1].Takes; len(takes) != 1 || !slices.Equal(takes[0].Fields, []string{".spec.deschedulingIntervalSeconds", ".spec.profiles"}) {
			t.Errorf("takes %+v", takes)
		}
	})
	t.Run("our own", func(t *testing.T) {
		l := store.newLab(t).usual()
		l.cluster.erase(descheduler())
		l.must(l.create("a", block))
		l.complete()
		l.cluster.set(descheduler(), "mallory", int64(900), "spec", "deschedulingIntervalSeconds")
		l.is("a", v1alpha1.PhaseDrifted)
		l.must(l.edit("a", action(hco.ActionDryRun)))
		plan := l.is("a", v1alpha1.PhaseReviewRequired, "approve hash")
		if takes := plan.Status.Items[1].Takes; len(takes) != 1 || !takes[0].Reclaimed || !slices.Equal(takes[0].Fields, []string{".spec.deschedulingIntervalSeconds"}) {
			t.Errorf("takes %+v", takes)
		}
		l.must(l.enforce("a"))
		l.is("a", v1alpha1.PhaseCompleted)
		l.lookAt(int64(60), "enforcing a plan is what DryRun and Apply are for")
	})
}
