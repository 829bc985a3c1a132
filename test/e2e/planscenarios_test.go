//go:build integration

package e2e_test

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// workedExample is the example of the design document, from the manifest to the completed plan. An
// upgrade and a rollback follow.
func workedExample(w sharedPlane) {
	name := strings.TrimSpace(w.MustKubectlInput(`
apiVersion: hco.kubevirt.io/v1alpha1
kind: ConfigurationPlan
metadata: {generateName: enable-psi-scheduling-}
spec: {profile: LoadAwareRebalancing, action: DryRun, failurePolicy: Abort, onConflict: Take}
`, "create", "-f", "-", "-o", "jsonpath={.metadata.name}"))
	w.says(name, "enable-psi-scheduling-")

	// The status lists the changes in their order. Nothing changes in the cluster.
	w.phase(name, "ReviewRequired")
	w.planSays(name, ".status.sourceSnapshotHash", "sha256:")
	w.planSays(name, `.status.conditions[?(@.type=="UpgradeAvailable")].status`, "False")
	w.planSays(name, `.status.items[*]['name','state']`, "enable-psi-metrics configure-descheduler Pending Pending")
	w.planSays(name, ".status.items[0]", `"kind":"MachineConfig","name":"99-worker-psi-karg"`, `"impactSeverity":"High"`, "+    machineconfiguration.openshift.io/role: worker")
	w.planSays(name, ".status.items[1]", `"kind":"KubeDescheduler","name":"cluster"`, `"impactSeverity":"Medium"`)
	w.planSays(name, ".status.diff", "+  - psi=1", `-  deschedulingIntervalSeconds: "***"`, "+  deschedulingIntervalSeconds: 60", "+  - KubeVirtRelieveAndMigrate",
		"+    devDeviationThresholds: AsymmetricLow", "+    devEnableSoftTainter: true")
	w.absent("machineconfig", "99-worker-psi-karg")

	// Story 1: the user approves the plan that they have inspected.
	w.refusesBlindApproval(name)
	w.approveAsSaid(name)
	w.sequential(name)
	w.planSays(name, `.status.items[*]['state','message']`, "Completed Completed", `MachineConfigPool "worker" is stable and ready (4 nodes)`)
	if times := strings.Fields(w.read(".status.items[*].lastTransitionTime", "configplan", name)); len(times) != 2 || times[0] > times[1] {
		w.t.Errorf("the items were completed at %v", times)
	}
	upgradedPlan(w, name)

	// Run 2 was the upgrade. The undo restores the state before run 1.
	w.says(w.types(0, `kubectl penstock plan undo rebalance --comment "back to before"`, "rebalance", name, "undo", "undo --run 1").Stderr, "✓ "+name+": Completed")
	w.says(w.types(0, `kubectl penstock plan history rebalance`, "rebalance", name).Stdout, "back to before")
	w.absent("machineconfig", "99-worker-psi-karg")
	if limits := w.read(".spec.evictionLimits", descheduler()...); limits != "" {
		w.t.Errorf("limits are left that were not there before: %s", limits)
	}
	w.MustKubectl("delete", "configplan", name)
	// The plan is deleted, and its history remains.
	w.says(w.MustKubectl("get", "--raw", "/apis/hco.kubevirt.io/v1alpha1/configurationplans/"+name+"/history"), `"run":1`, `"run":2`, `"run":3`, `"outcome":"Completed"`)
}

// sequential watches a plan until it is completed. Items run one at a time, and the plan waits for
// pools.
func (w sharedPlane) sequential(name string) {
	w.t.Helper()
	resource := schema.GroupVersionResource{Group: "hco.kubevirt.io", Version: "v1alpha1", Resource: "configurationplans"}
	waited := false
	err := w.watch(w.client.Resource(resource), fields.OneTermEqualSelector("metadata.name", name), func(plan *unstructured.Unstructured) bool {
		items, _, _ := unstructured.NestedSlice(plan.Object, "status", "items")
		before := "Completed"
		for _, one := range items {
			item := one.(map[string]any)
			if message, _ := item["message"].(string); strings.Contains(message, "Waiting for") {
				waited = true
			}
			if state := item["state"]; state != "Pending" && before != "Completed" {
				w.t.Errorf("item %s is %s, but the item before it is %s", item["name"], state, before)
			}
			before, _ = item["state"].(string)
		}
		phase, _, _ := unstructured.NestedString(plan.Object, "status", "phase")
		return phase == "Completed"
	})
	if err != nil || !waited {
		w.t.Fatalf("executing %s: %v, waited: %t\n%s", name, err, waited, w.Kubectl("get", "configplan", name, "-o", "yaml"))
	}
}

// upgradedPlan: a plan computed today would differ. The plan does not change until a user asks. The
// test changes facts of the cluster, which has the same effect as a new version of the program.
func upgradedPlan(w sharedPlane, name string) {
	w.MustKubectlInput(`
apiVersion: hco.kubevirt.io/v1
kind: HyperConverged
metadata: {name: kubevirt-hyperconverged, namespace: `+deschedulerNamespace+`}
spec: {virtualization: {liveMigrationConfig: {parallelMigrationsPerCluster: 20, parallelOutboundMigrationsPerNode: 4}}}
`, "create", "-f", "-")
	w.untilPlan(name, `.status.conditions[?(@.type=="UpgradeAvailable")].status`, "True")
	w.planSays(name, ".status.phase", "Completed")
	w.profile("Active", name+" (Completed)", "a plan computed today would be different")
	if total := w.read(".spec.evictionLimits.total", descheduler()...); total != "5" {
		w.t.Errorf("the plan was upgraded without a request: total %s", total)
	}
	w.action(name, "DryRun")
	w.phase(name, "ReviewRequired")
	w.planSays(name, ".status.diff", `-    total: "***"`, "+    total: 18", `-    node: "***"`, "+    node: 4")
	w.approveAsSaid(name)
	w.phase(name, "Completed")
	w.planSays(name, `.status.conditions[?(@.type=="UpgradeAvailable")].status`, "False")
	if total := w.read(".spec.evictionLimits.total", descheduler()...); total != "18" {
		w.t.Errorf("total is %s", total)
	}
}
