package plan

import (
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
)

func ofNUMA(p *hco.ConfigurationPlan) { p.Spec.Profile = "numa" }

// TestOwnProfileInItsWindow: the shipped profile for NUMA reads only the facts that it declares.
// The plan is approved by day and executed at night, node by node. Drift is reported. The rollback
// reboots the same number of nodes, also in a window.
func TestOwnProfileInItsWindow(t *testing.T) {
	l := newStore(t).newLab(t)
	l.defineAs("numa", nil)
	numa, err := cel.New("numa", &l.definitions["numa"].Spec)
	l.must(err)
	l.cluster.profiles = []profile.Profile{numa}
	o := newOperator(l, false, map[string]int{"worker": 3})
	kubelets, made := kubeletConfigID("penstock-numa"), configID("99-worker-generated-kubelet")
	before := o.wants("worker")
	written := func() bool { return l.cluster.value(kubelets, "spec") != nil }

	l.must(l.create("a", ofNUMA, nightly))
	plan := l.is("a", v1alpha1.PhaseReviewRequired)
	if item := plan.Status.Items[0]; item.ImpactSeverity != v1alpha1.ImpactHigh || item.ImpactReason != "the kubelet starts with another CPU manager: 3 nodes reboot in 3 waves" {
		t.Errorf("reviewers are told %s: %s", item.ImpactSeverity, item.ImpactReason)
	}
	l.approved()
	l.is("a", v1alpha1.PhaseScheduled, "it begins when its window opens at 2026-07-01T22:00:00Z")
	if written() {
		t.Fatal("the window is closed, and the KubeletConfig is there")
	}

	l.clock.SetTime(l.tonight())
	l.is("a", v1alpha1.PhaseInProgress, "waiting for the Machine Config Operator to look at the KubeletConfig")
	if !written() {
		t.Fatal("the window is open, and there is no KubeletConfig")
	}
	o.take()
	l.is("a", v1alpha1.PhaseInProgress, `Waiting for KubeletConfig penstock-numa to be rendered into MachineConfigPool "worker"`)
	o.render("worker")
	o.advance("worker")
	o.report("worker")
	l.clock.SetTime(l.tonight().Add(3 * time.Hour)) // the window closes: nodes continue
	l.is("a", v1alpha1.PhaseInProgress, "updated 0/3 nodes")
	l.restart()
	o.through()
	l.is("a", v1alpha1.PhaseCompleted, `MachineConfigPool "worker" is stable and ready (3 nodes)`)
	if lacks := o.lacks(profile.NodeConfigOf(l.cluster.objects[made])); lacks != "" {
		t.Errorf("the plan is completed, and %s lacks it", lacks)
	}

	l.cluster.set(kubelets, "mallory", "none", "spec", "kubeletConfig", "topologyManagerPolicy")
	l.is("a", v1alpha1.PhaseDrifted, "topologyManagerPolicy", "mallory")
	o.take()
	o.render("worker")
	o.advance("worker") // nodes are changing to mallory's value
	l.must(l.rollback("a", 1))
	plan = l.is("a", v1alpha1.PhaseReviewRequired)
	if item := plan.Status.Items[0]; item.ImpactSeverity != v1alpha1.ImpactHigh || item.ImpactReason != "the configuration of kubelets changes: 3 nodes reboot, pool by pool, in 3 waves; what there was before is restored" ||
		item.BlastRadius == nil || item.BlastRadius.Nodes != 3 {
		t.Errorf("reviewers of the way back are told %s: %s, %+v", item.ImpactSeverity, item.ImpactReason, item.BlastRadius)
	}
	l.approved()
	l.is("a", v1alpha1.PhaseScheduled, "it begins when its window opens at 2026-07-02T22:00:00Z")
	l.clock.SetTime(l.tonight().Add(24 * time.Hour))
	l.is("a", v1alpha1.PhaseInProgress, "99-worker-generated-kubelet, which was made from it, to be deleted")
	o.through()
	l.is("a", v1alpha1.PhaseCompleted)
	if written() || l.cluster.value(made, "spec") != nil || o.wants("worker") != before {
		t.Errorf("after the way back the KubeletConfig is there: %t; the pool goes for %s, and went for %s", written(), o.wants("worker"), before)
	}
}
