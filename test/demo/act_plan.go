package main

import (
	"context"
	"fmt"
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
	// planName is the plan of the example; the other constants name its targets.
	planName          = "rebalance"
	machineConfigName = "99-worker-psi-karg"
	deschedulerName   = "cluster"
	deschedulerSpace  = "openshift-kube-descheduler-operator"
)

// The simulated pools take this long for a step, and before the first step.
const (
	poolStep  = 400 * time.Millisecond
	poolDelay = 2 * time.Second
)

// draftPlan creates a plan and reads it. Nothing is executed.
func draftPlan(ctx context.Context, d *demo) {
	d.show(ctx, "kubectl get configurationprofiles")
	d.standIn(ctx)
	d.show(ctx, "kubectl get configurationprofiles")
	d.show(ctx, "kubectl apply -f "+quoted(filepath.Join(d.Plans, "plan.yaml")))
	d.reached(ctx, v1alpha1.PhaseReviewRequired)
	d.show(ctx, "kubectl get configplan "+planName)
	d.review(ctx)
	d.untouched(ctx, "nothing of it is in the cluster")
}

// standIn installs the kinds that the plan needs, and simulates the rollout of pools.
func (d *demo) standIn(ctx context.Context) {
	d.note("this cluster has none of these operators: reduced definitions and simulated pools of nodes replace them")
	definitions, objects := filepath.Join(d.Plans, "definitions.yaml"), filepath.Join(d.Plans, "cluster.yaml")
	d.show(ctx, fmt.Sprintf("kubectl apply -f %s >/dev/null &&\nkubectl wait --for=condition=Established -f %s --timeout=180s >/dev/null &&\nkubectl apply -f %s",
		quoted(definitions), quoted(definitions), quoted(objects)))
	d.rollPools(ctx, poolStep, poolDelay)
	out, err := d.shell.run(ctx, "kubectl wait mcp/worker --for=jsonpath='{.status.updatedMachineCount}'=4 --timeout=180s")
	if err == nil && out.ExitCode != 0 {
		err = &failure{claim: "the pool has its nodes", want: "4 of them", got: out.Stderr}
	}
	must(err)
}

// rollPools simulates pools that roll out with this speed from now on.
func (d *demo) rollPools(ctx context.Context, step, delay time.Duration) {
	if d.stopPools != nil {
		d.stopPools()
	}
	running, stop := context.WithCancel(ctx)
	d.stopPools = stop
	operator := &pools.Operator{Client: d.cluster.dynamic, Step: step, RenderDelay: delay}
	go operator.Run(running)
}

// review shows the information for a reviewer.
func (d *demo) review(ctx context.Context) {
	out := d.show(ctx, "kubectl penstock plan show "+planName)
	missing := missingFrom(out, "impact High", "4 nodes reboot", "takes .spec.deschedulingIntervalSeconds", "hash sha256:")
	d.claim(len(missing) == 0, "one screen shows the impact, the owners of the taken fields, the lines and the hash", "all of them", "without "+strings.Join(missing, ", "))
}

// descheduler returns the present KubeDescheduler.
func (d *demo) descheduler(ctx context.Context) (*unstructured.Unstructured, error) {
	resource := schema.GroupVersionResource{Group: "operator.openshift.io", Version: "v1", Resource: "kubedeschedulers"}
	found, err := d.cluster.dynamic.Resource(resource).Namespace(deschedulerSpace).Get(ctx, deschedulerName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the KubeDescheduler: %w", err)
	}
	return found, nil
}

func (d *demo) hasMachineConfig(ctx context.Context) bool {
	resource := schema.GroupVersionResource{Group: "machineconfiguration.openshift.io", Version: "v1", Resource: "machineconfigs"}
	_, err := d.cluster.dynamic.Resource(resource).Get(ctx, machineConfigName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false
	}
	if err != nil {
		panic(stop{fmt.Errorf("reading the MachineConfig: %w", err)})
	}
	return true
}

// untouched checks that both targets are as in the example.
func (d *demo) untouched(ctx context.Context, claim string) {
	there := d.hasMachineConfig(ctx)
	descheduler := get(d.descheduler(ctx))
	interval, _, _ := unstructured.NestedInt64(descheduler.Object, "spec", "deschedulingIntervalSeconds")
	profiles, _, _ := unstructured.NestedStringSlice(descheduler.Object, "spec", "profiles")
	limits, limited, _ := unstructured.NestedMap(descheduler.Object, "spec", "evictionLimits")
	d.claim(!there && interval == 3600 && !limited && strings.Join(profiles, " ") == "AffinityAndTaints LongLifecycle", claim,
		"no MachineConfig, and the KubeDescheduler of the example", fmt.Sprintf("MachineConfig %t, interval %d, profiles %s, limits %v", there, interval, profiles, limits))
}

// reached follows the plan until it has reached a phase.
func (d *demo) reached(ctx context.Context, phase v1alpha1.Phase) *v1alpha1.ConfigurationPlan {
	return d.followPlan(ctx, fmt.Sprintf("plan %s is %s", d.plan, phase), func(plan *v1alpha1.ConfigurationPlan) bool {
		d.pass("%s: %s", plan.Status.Phase, plan.Status.Message)
		return plan.Status.Phase == phase
	})
}

// followPlan follows the plan until done returns true, or reports how far it got.
func (d *demo) followPlan(ctx context.Context, claim string, done func(*v1alpha1.ConfigurationPlan) bool) *v1alpha1.ConfigurationPlan {
	last := &v1alpha1.ConfigurationPlan{}
	err := d.cluster.followPlan(ctx, d.plan, func(plan *v1alpha1.ConfigurationPlan) bool {
		last = plan
		return done(plan)
	})
	d.clear()
	if err != nil {
		panic(stop{&failure{claim: claim, want: "that within " + patience.String(), got: fmt.Sprintf("%v; it is %s: %s", err, last.Status.Phase, last.Status.Message)}})
	}
	return last
}
