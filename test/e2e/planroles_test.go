//go:build integration

package e2e_test

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/test/framework/cluster"
)

// planRoles tests the rights to plans of the roles in artifacts/deploy.
func planRoles(w sharedPlane) {
	w.MustKubectl("apply", "--server-side", "--force-conflicts", "-f", "../../artifacts/deploy/base/rbac-users.yaml")
	as := func(user string, roles ...string) *cluster.Access {
		for _, role := range roles {
			w.MustKubectl("create", "clusterrolebinding", user+"-"+role, "--clusterrole="+role, "--user="+user)
		}
		return w.User(user)
	}
	may := func(user *cluster.Access, verb, resource, subresource string) {
		w.t.Helper()
		w.eventually(func() (string, string) {
			out := user.Kubectl("auth", "can-i", verb, resource+".hco.kubevirt.io", "--subresource="+subresource)
			return out.Stdout, out.Stderr
		}, func(stdout string) bool { return strings.HasPrefix(stdout, "yes") })
	}
	forbidden := func(user *cluster.Access, text, input string, args ...string) {
		w.t.Helper()
		out := user.KubectlInput(input, args...)
		if out.ExitCode == 0 || !strings.Contains(out.Stderr, "Forbidden") || !strings.Contains(out.Stderr, text) {
			w.t.Errorf("want Forbidden because of %q: %s", text, out)
		}
	}
	// The first two users have Kubernetes' own roles, which aggregate ours.
	viewer, planner := as("plan-viewer", "view"), as("plan-planner", "edit")
	approver, breaker := as("plan-approver", "penstock-plan-approver"), as("plan-breaker", "penstock-plan-planner", "penstock-plan-override")
	may(viewer, "list", "configurationprofiles", "")
	may(planner, "create", "configurationplans", "retry")
	may(approver, "approve", "configurationplans", "")
	may(breaker, "override", "configurationplans", "")

	w.says(viewer.MustKubectl("get", "configurationprofiles"), "LoadAwareRebalancing")
	forbidden(viewer, "cannot create", planFile("roles"), "create", "-f", "-")
	forbidden(planner, "needs the verb approve", planFile("roles", "action: Apply"), "create", "-f", "-")
	planner.MustKubectlInput(planFile("roles", "onConflict: Take"), "create", "-f", "-")
	w.phase("roles", "ReviewRequired")
	w.says(viewer.MustKubectl("get", "configplan", "roles", "-o", "yaml"), "+  - psi=1")
	// These users cannot read the targets. Neither computed nor stored answers show them content of
	// the targets.
	kept := planner.Kubectl("get", "--raw", "/apis/hco.kubevirt.io/v1alpha1/configurationplans/roles/manifests")
	if kept.ExitCode != 0 || strings.Contains(kept.Stdout, "psi=1") || !strings.Contains(kept.Stderr, "you cannot get machineconfigs") {
		w.t.Errorf("a user reads manifests of targets without the right: %s", kept)
	}
	if seen := viewer.MustKubectl("get", "configplan", "roles", "-o", "yaml"); strings.Contains(seen, "3600") || strings.Contains(seen, "LongLifecycle") {
		w.t.Errorf("a user who cannot read the descheduler sees its fields:\n%s", seen)
	}
	shown := viewer.MustKubectl("get", "--raw", "/apis/hco.kubevirt.io/v1alpha1/configurationplans/roles/diff")
	w.says(shown, "you cannot get machineconfigs.machineconfiguration.openshift.io 99-worker-psi-karg")
	if strings.Contains(shown, "psi=1") {
		w.t.Errorf("a user who cannot read MachineConfigs sees one: %s", shown)
	}
	forbidden(planner, "needs the verb approve", "", "patch", "configplan", "roles", "--type=merge", "-p", `{"spec":{"action":"Apply"}}`)
	forbidden(planner, "configurationplans/status", "", "patch", "configplan", "roles", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Completed"}}`)
	hash := w.read(".status.planHash", "configplan", "roles")
	approval := fmt.Sprintf(`{"apiVersion":"hco.kubevirt.io/v1alpha1","kind":"PlanApprovalRequest","spec":{"planHash":%q,"comment":"by mistake"}}`, hash)
	at := "/apis/hco.kubevirt.io/v1alpha1/configurationplans/roles/approve"
	forbidden(planner, "cannot create", approval, "create", "--raw", at, "-f", "-")

	// An approver needs the rights to all changes of the plan, also for a dry-run.
	lacks := "you cannot create machineconfigs.machineconfiguration.openshift.io 99-worker-psi-karg"
	forbidden(approver, lacks, approval, "create", "--raw", at+"?dryRun=All", "-f", "-")
	forbidden(approver, lacks, approval, "create", "--raw", at, "-f", "-")

	// A plan that was approved through its spec does not run either if the approver lacks these
	// rights.
	both := as("plan-both", "penstock-plan-planner", "penstock-plan-approver")
	may(both, "approve", "configurationplans", "")
	may(both, "patch", "configurationplans", "")
	both.MustKubectl("patch", "configplan", "roles", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"action":"Apply","approvedPlanHash":%q}}`, hash))
	w.phase("roles", "Failed")
	w.planSays("roles", ".status.message", "plan-both", "create machineconfigs.machineconfiguration.openshift.io 99-worker-psi-karg")
	w.planSays("roles", `.status.conditions[?(@.type=="Ready")].reason`, "ApproverLacksRights")
	w.absent("machineconfig", "99-worker-psi-karg")

	w.mustPost("roles", "retry", "PlanRetryRequest", "{}")
	w.phase("roles", "ReviewRequired")
	takes := strings.Replace(planFile("emergency", "onConflict: Take"), "{name: emergency}", "{name: emergency, annotations: {hco.kubevirt.io/override: roles}}", 1)
	forbidden(planner, "needs the verb override", takes, "create", "-f", "-")
	breaker.MustKubectlInput(takes, "create", "-f", "-")
	w.phase("emergency", "ReviewRequired")
	w.phase("roles", "Failed")
	w.planSays("roles", ".status.message", "emergency")
	planner.MustKubectl("delete", "configplan", "roles", "emergency")
}
