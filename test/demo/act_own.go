package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/test/framework/pools"
)

const (
	// ownName is the name of the example profile and of its plan. ownTarget is the object that it
	// creates, with ownPolicy.
	ownName   = "numa"
	ownTarget = "penstock-numa"
	ownPolicy = "single-numa-node"
)

// ownProfile shows a profile from its definition to the undo of its plan.
func ownProfile(ctx context.Context, d *demo) {
	d.plan = ownName
	defer func() { d.plan = planName }()
	d.define(ctx)
	before := d.rendered(ctx)
	d.waitForWindow(ctx)
	d.openWindow(ctx)
	after := d.rendered(ctx)
	d.claim(after != before, "all 4 nodes have another configuration", "another one than "+before, after)
	d.takeBack(ctx, before)
}

// define creates the profile, and waits until it has its declared rights.
func (d *demo) define(ctx context.Context) {
	folder := filepath.Join(filepath.Dir(d.Plans), "profiles")
	file := filepath.Join(folder, ownName+".yaml")
	raw, err := os.ReadFile(file)
	if err != nil {
		panic(stop{fmt.Errorf("reading the profile: %w", err)})
	}
	d.note("KubeletConfig is reduced as well, and the nodes that do not exist are faster from here on")
	d.rollPools(ctx, poolStep/4, poolDelay/8)
	reduced := filepath.Join(folder, "kubeletconfigs.yaml")
	d.show(ctx, fmt.Sprintf("kubectl apply -f %s &&\nkubectl wait --for=condition=Established -f %s --timeout=180s >/dev/null", quoted(reduced), quoted(reduced)))
	d.show(ctx, fmt.Sprintf("kubectl apply -f %s &&\nkubectl wait --for=condition=AccessGranted configprofiledef/%s --timeout=180s", quoted(file), ownName))
	d.show(ctx, "kubectl get clusterrole penstock-profile-"+ownName+` -o jsonpath='{range .rules[*]}{.resources[0]}{" "}{.resourceNames}{" "}{.verbs}{"\n"}{end}'`)
	lines := bytes.Count(raw, []byte("\n"))
	d.claim(lines <= 40, fmt.Sprintf("%d lines of YAML are a profile, which can do only what they declare", lines), "40 lines at most", fmt.Sprint(lines))
}

// waitForWindow creates a plan with a closed window, and approves it.
func (d *demo) waitForWindow(ctx context.Context) {
	d.show(ctx, fmt.Sprintf("kubectl apply -f - <<'EOF'\napiVersion: hco.kubevirt.io/v1alpha1\nkind: ConfigurationPlan\nmetadata: {name: %s}\nspec: {profile: %s, window: {schedule: %q, duration: 1h}}\nEOF",
		ownName, ownName, daily(time.Now().Add(2*time.Hour))))
	plan := d.reached(ctx, v1alpha1.PhaseReviewRequired)
	out := d.show(ctx, "kubectl get configplan "+ownName+" -o custom-columns=IMPACT:.status.impactSeverity,WHY:.status.items[0].impactReason")
	missing := append(missingFrom(out, "High", "4 nodes reboot in 2 waves"), missingFrom(plan.Status.Items[0].Diff, "topologyManagerPolicy: "+ownPolicy)...)
	d.claim(len(missing) == 0, "an expression of the profile tells reviewers how many nodes reboot", "impact, reason and diff", "without "+strings.Join(missing, ", "))
	d.approve(ctx, "tonight")
	plan = d.reached(ctx, v1alpha1.PhaseScheduled)
	d.output(plan.Status.Message)
	policy := d.policy(ctx)
	d.claim(policy == "" && strings.Contains(plan.Status.Message, "it begins when its window opens"), "approved, and nothing is written before the window opens", "no KubeletConfig", "one with policy "+policy)
}

// openWindow moves the window to now, so that the plan is executed.
func (d *demo) openWindow(ctx context.Context) {
	tonight := d.reached(ctx, v1alpha1.PhaseScheduled)
	d.show(ctx, fmt.Sprintf(`kubectl patch configplan %s --type=merge -p '{"spec":{"window":{"schedule":%q}}}'`, ownName, daily(time.Now().Add(-5*time.Minute))))
	now := d.reached(ctx, v1alpha1.PhaseReviewRequired)
	d.claim(now.Status.PlanHash != tonight.Status.PlanHash, "another window is another plan: nobody has approved it", "another hash", now.Status.PlanHash)
	d.approve(ctx, "now")
	d.execution(ctx, func(*v1alpha1.ConfigurationPlan) {})
	d.hasPolicy(ctx, ownPolicy, "executed inside the window")
}

// takeBack changes a value that the plan set, and undoes the plan.
func (d *demo) takeBack(ctx context.Context, before string) {
	d.show(ctx, fmt.Sprintf(`kubectl patch kubeletconfig %s --field-manager=%s --type=merge -p '{"spec":{"kubeletConfig":{"topologyManagerPolicy":"none"}}}'`, ownTarget, stranger))
	plan := d.reached(ctx, v1alpha1.PhaseDrifted)
	d.output(plan.Status.Message)
	if missing := missingFrom(plan.Status.Message, "topologyManagerPolicy", stranger); len(missing) > 0 {
		panic(stop{&failure{claim: "the drift is reported", want: "the field and its writer", got: plan.Status.Message}})
	}
	d.show(ctx, fmt.Sprintf("kubectl penstock plan undo %s >/dev/null", ownName))
	plan = d.reached(ctx, v1alpha1.PhaseReviewRequired)
	if way := plan.Status.Items[0]; way.ImpactSeverity != v1alpha1.ImpactHigh || !strings.Contains(way.ImpactReason, "4 nodes reboot") {
		panic(stop{&failure{claim: "the undo plan states that nodes reboot", want: "High, 4 nodes", got: string(way.ImpactSeverity) + ", " + way.ImpactReason}})
	}
	d.approve(ctx, "no NUMA after all")
	d.execution(ctx, func(*v1alpha1.ConfigurationPlan) {})
	d.hasPolicy(ctx, "", "the KubeletConfig is gone")
	now := d.rendered(ctx)
	d.claim(now == before, "all nodes have their earlier configuration", before, now)
}

// daily returns the schedule of a window that opens daily at a time, in UTC.
func daily(at time.Time) string {
	at = at.UTC()
	return fmt.Sprintf("%d %d * * *", at.Minute(), at.Hour())
}

// policy returns the policy of the KubeletConfig; empty if it does not exist.
func (d *demo) policy(ctx context.Context) string {
	resource := schema.GroupVersionResource{Group: "machineconfiguration.openshift.io", Version: "v1", Resource: "kubeletconfigs"}
	found, err := d.cluster.dynamic.Resource(resource).Get(ctx, ownTarget, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		panic(stop{fmt.Errorf("reading the KubeletConfig: %w", err)})
	}
	policy, _, _ := unstructured.NestedString(found.Object, "spec", "kubeletConfig", "topologyManagerPolicy")
	return policy
}

func (d *demo) hasPolicy(ctx context.Context, want, claim string) {
	policy := d.policy(ctx)
	d.claim(policy == want, claim, fmt.Sprintf("policy %q", want), fmt.Sprintf("policy %q", policy))
}

// rendered returns the configuration that all nodes of the pool have.
func (d *demo) rendered(ctx context.Context) string {
	pool, err := d.cluster.dynamic.Resource(pools.Resource()).Get(ctx, "worker", metav1.GetOptions{})
	if err != nil {
		panic(stop{fmt.Errorf("reading the pool: %w", err)})
	}
	name, _, _ := unstructured.NestedString(pool.Object, "status", "configuration", "name")
	return name
}
