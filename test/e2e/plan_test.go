//go:build integration

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/plugin"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/pools"
)

const crdsDir = "../../../shared/data/crds"

const deschedulerNamespace = "openshift-kube-descheduler-operator"

// planFile returns the manifest of a plan as a user writes it.
func planFile(name string, spec ...string) string {
	return fmt.Sprintf("apiVersion: hco.kubevirt.io/v1alpha1\nkind: ConfigurationPlan\nmetadata: {name: %s}\nspec:\n  profile: LoadAwareRebalancing\n%s",
		name, "  "+strings.Join(append(spec, ""), "\n  "))
}

// phase waits until a plan is in a phase.
func (w sharedPlane) phase(name, want string) {
	w.t.Helper()
	out := w.Kubectl("wait", poll.TimeoutFlag, "--for=jsonpath={.status.phase}="+want, "configplan/"+name)
	if out.ExitCode != 0 {
		w.t.Fatalf("%s\n%s\n%s", out, w.Kubectl("get", "configplan", name, "-o", "yaml"), w.Kubectl("get", "mcp,mc", "-o", "yaml"))
	}
}

// planSays fails unless a field of a plan contains all texts.
func (w sharedPlane) planSays(name, path string, texts ...string) {
	w.t.Helper()
	w.says(w.read(path, "configplan", name), texts...)
}

// post sends a request to a subresource of a plan.
func (w sharedPlane) post(name, subresource, kind, spec string) (stdout string, err error) {
	w.t.Helper()
	body := fmt.Sprintf(`{"apiVersion":"hco.kubevirt.io/v1alpha1","kind":%q,"spec":%s}`, kind, spec)
	out := w.KubectlInput(body, "create", "--raw", "/apis/hco.kubevirt.io/v1alpha1/configurationplans/"+name+"/"+subresource, "-f", "-")
	if out.ExitCode != 0 {
		return "", fmt.Errorf("%s", out.Stderr)
	}
	return out.Stdout, nil
}

func (w sharedPlane) mustPost(name, subresource, kind, spec string) string {
	w.t.Helper()
	out, err := w.post(name, subresource, kind, spec)
	if err != nil {
		w.t.Fatalf("posting to %s of %s: %v", subresource, name, err)
	}
	return out
}

func (w sharedPlane) action(name, action string) {
	w.t.Helper()
	w.MustKubectl("patch", "configplan", name, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"action":%q}}`, action))
}

// approveAsSaid approves the waiting plan with the command in its message.
func (w sharedPlane) approveAsSaid(name string) {
	w.t.Helper()
	message := w.read(".status.message", "configplan", name)
	_, command, found := strings.Cut(message, "kubectl patch configplan "+name+" --type=merge -p '")
	patch, _, closed := strings.Cut(command, "'")
	if !found || !closed {
		w.t.Fatalf("the message has no command: %s", message)
	}
	w.MustKubectl("patch", "configplan", name, "--type=merge", "-p", patch)
}

// approveAsRead approves the plan in its current state only, by its resourceVersion.
func (w sharedPlane) approveAsRead(name string) {
	w.t.Helper()
	version := w.read(".metadata.resourceVersion", "configplan", name)
	w.MustKubectl("patch", "configplan", name, "--type=merge", "-p", fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"action":"Apply"}}`, version))
}

// refusesBlindApproval checks that Penstock refuses action Apply without the hash of the reviewed
// plan. The error contains the right command.
func (w sharedPlane) refusesBlindApproval(name string) {
	w.t.Helper()
	out := w.Kubectl("patch", "configplan", name, "--type=merge", "-p", `{"spec":{"action":"Apply"}}`)
	if out.ExitCode == 0 || !strings.Contains(out.Stderr, "spec.approvedPlanHash: Required value") || !strings.Contains(out.Stderr, "kubectl patch configplan "+name) {
		w.t.Errorf("Apply without the plan that was reviewed: %s", out)
	}
}

// descheduler returns kubectl arguments for the cluster's KubeDescheduler.
func descheduler() []string {
	return []string{"kubedescheduler", "cluster", "--namespace=" + deschedulerNamespace}
}

// plans does an administrator's tasks with ConfigurationPlans, on the real definitions. A profile
// has one plan at a time, so the scenarios run in sequence.
func plans(w sharedPlane) {
	if _, err := os.Stat(crdsDir); err != nil {
		w.t.Skipf("%s is missing: the definitions of other projects are stored outside the repository", crdsDir)
	}
	run := func(name string, do scenario) {
		w.t.Run(name, func(t *testing.T) { do(w.in(t)) })
		if w.t.Failed() {
			w.t.FailNow() // later scenarios build on this one
		}
	}
	run("Prerequisites", prerequisites)
	operator := &pools.Operator{Client: w.client, Step: 200 * time.Millisecond, RenderDelay: time.Second}
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	go operator.Run(ctx)
	run("Review", reviewPlan)
	run("Lock", lockedProfile)
	run("Execute", func(w sharedPlane) { executePlan(w, operator) })
	run("Drift", planDrift)
	run("Stale", stalePlan)
	run("Rollback", rollbackPlan)
	run("Roles", planRoles)
	run("WorkedExample", workedExample)
	run("Window", windowedPlan)
	run("Apply", standingApproval)
}

// prerequisites: the definitions are installed after the plan is created. The plan continues
// without a restart.
func prerequisites(w sharedPlane) {
	w.MustKubectlInput(planFile("rebalance"), "create", "-f", "-")
	w.phase("rebalance", "PrerequisiteFailed")
	w.planSays("rebalance", ".status.message", "KubeDescheduler", "install the Kube Descheduler Operator")
	w.planSays("rebalance", `.status.conditions[?(@.type=="PrerequisitesMet")].reason`, "MissingDependency")
	w.says(w.documented("Of plans", "MissingDependency", "rebalance"), "install the Kube Descheduler Operator")
	w.profile("Inactive", "<none>", "Unknown", "Missing: install the Kube Descheduler Operator")
	for _, file := range []string{
		"operator.openshift.io_kubedeschedulers.yaml", "machineconfiguration.openshift.io_machineconfigs.yaml",
		"machineconfiguration.openshift.io_machineconfigpools.yaml", "hco.kubevirt.io_hyperconvergeds.yaml",
	} {
		w.MustKubectl("create", "-f", filepath.Join(crdsDir, file))
	}
	for _, crd := range []string{"kubedeschedulers.operator.openshift.io", "machineconfigpools.machineconfiguration.openshift.io"} {
		w.MustKubectl("wait", "--for=condition=Established", "crd/"+crd, poll.TimeoutFlag)
	}
	// The namespace belongs to the operator. Without it kube-apiserver refuses the plan's write,
	// and the plan fails.
	w.phase("rebalance", "Failed")
	w.planSays("rebalance", ".status.message", "the cluster refuses the plan", deschedulerNamespace)
	w.namespace(deschedulerNamespace)
	w.MustKubectlInput(`
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker, annotations: {test.penstock.dev/nodes: "4"}}
spec:
  machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: worker}}
  nodeSelector: {matchLabels: {node-role.kubernetes.io/worker: ""}}
  maxUnavailable: 2
---
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 00-worker, labels: {machineconfiguration.openshift.io/role: worker}}
spec: {kernelArguments: [quiet]}
---
apiVersion: operator.openshift.io/v1
kind: KubeDescheduler
metadata: {name: cluster, namespace: openshift-kube-descheduler-operator}
spec: {managementState: Managed, deschedulingIntervalSeconds: 3600, profiles: [AffinityAndTaints, LongLifecycle]}
`, "apply", "-f", "-")
}

// ofTargets selects the plan controller's requests for targets, without watches.
func ofTargets(r plane.Request) bool {
	return strings.HasPrefix(r.UserAgent, "penstock/") && strings.HasSuffix(r.UserAgent, " plans") && r.Verb != "watch" &&
		(r.Resource == "kubedeschedulers" || r.Resource == "machineconfigs")
}

// reviewPlan: the plan shows its changes and the fields that it takes over. It changes nothing.
func reviewPlan(w sharedPlane) {
	w.value("4", ".status.updatedMachineCount", "mcp/worker")
	mark := w.Audit().Mark()
	w.mustPost("rebalance", "retry", "PlanRetryRequest", "{}")
	// kubectl applied the descheduler and owns its fields. The plan can be read, but not approved.
	w.untilPlan("rebalance", `.status.conditions[?(@.type=="Ready")].reason`, "FieldConflict")
	w.phase("rebalance", "ReviewRequired")
	w.planSays("rebalance", ".status.message", "kubectl-client-side-apply", ".spec.deschedulingIntervalSeconds", "onConflict")
	w.says(w.documented("Of plans", "FieldConflict", "rebalance"), "kubectl-client-side-apply")
	hash := w.read(".status.planHash", "configplan", "rebalance")
	if _, err := w.post("rebalance", "approve", "PlanApprovalRequest", fmt.Sprintf(`{"planHash":%q}`, hash)); err == nil || !strings.Contains(err.Error(), "kubectl-client-side-apply") {
		w.t.Errorf("approving a plan that may not change its target: %v", err)
	}
	// Penstock sends one dry-run per target. Computing the same plan again sends no request.
	if requests := w.Audit().Since(mark, ofTargets); len(requests) > 2 {
		w.t.Errorf("%d requests for a plan of two targets:\n%s", len(requests), requests)
	}
	mark = w.Audit().Mark()
	w.MustKubectl("patch", "configplan", "rebalance", "--type=merge", "-p", `{"spec":{"onConflict":"Take"}}`)
	w.untilPlan("rebalance", ".status.message", "approve hash sha256:")
	if requests := w.Audit().Since(mark, ofTargets); len(requests) > 0 {
		w.t.Errorf("%d requests to compute the same plan again:\n%s", len(requests), requests)
	}
	w.phase("rebalance", "ReviewRequired")
	w.planSays("rebalance", ".status.items[*].name", "enable-psi-metrics configure-descheduler")
	w.planSays("rebalance", ".status.items[0]", `"impactSeverity":"High"`, `"nodes":4`, `"waves":2`, `"reboot":true`, `"pools":["worker"]`, `"state":"Pending"`, "+  - psi=1")
	w.planSays("rebalance", ".status.items[1].diff", `-  deschedulingIntervalSeconds: "***"`, "+  deschedulingIntervalSeconds: 60", "+    total: 5", "+  - KubeVirtRelieveAndMigrate")
	w.planSays("rebalance", ".status.items[1]", "real evictions", "removes 1 of the profiles in spec.profiles", `"manager":"kubectl-client-side-apply"`)
	w.planSays("rebalance", ".status.message", "approve hash sha256:")
	w.says(w.MustKubectl("get", "configplan"), "PROFILE", "LoadAwareRebalancing", "DryRun", "ReviewRequired", "High", "0/2")
	w.says(w.MustKubectl("explain", "configplan.spec.profile"), `"LoadAwareRebalancing"`)
	w.profile("Inactive", "rebalance (ReviewRequired)", "High", "Met", "4 nodes of worker reboot, in 2 waves")
	w.profileAPI()
	w.says(w.MustKubectl("get", "--raw", "/apis/hco.kubevirt.io/v1alpha1/configurationplans/rebalance/manifests"), `"kind":"MachineConfig"`, `"psi=1"`, `"kind":"KubeDescheduler"`)
	shown := w.MustKubectl("get", "--raw", "/apis/hco.kubevirt.io/v1alpha1/configurationplans/rebalance/diff")
	w.says(shown, "enable-psi-metrics", "psi=1", "-  deschedulingIntervalSeconds: 3600", "-  - LongLifecycle")
	// Values of the target are shown only to users who can read the target. kubectl's last-applied
	// annotation is not shown as a change.
	for _, text := range []string{"3600", "LongLifecycle", "AffinityAndTaints"} {
		if status := w.read(".status", "configplan", "rebalance"); strings.Contains(status, text) {
			w.t.Errorf("status shows %s, which is the target's: %s", text, status)
		}
	}
	if strings.Contains(shown+w.read(".status.diff", "configplan", "rebalance"), "last-applied-configuration") {
		w.t.Errorf("kubectl's annotation is shown as a change: %s", shown)
	}
	w.absent("machineconfig", "99-worker-psi-karg")
	if got := w.read(".spec.deschedulingIntervalSeconds", descheduler()...); got != "3600" {
		w.t.Errorf("a plan under review changed the descheduler: interval %s", got)
	}
	if _, err := w.post("rebalance", "approve", "PlanApprovalRequest", `{"planHash":"sha256:`+strings.Repeat("0", 64)+`"}`); err == nil || !strings.Contains(err.Error(), "review it again") {
		w.t.Errorf("approving another hash: %v", err)
	}
	reviewByPlugin(w)
}

// profile checks that the row of the profile contains all texts. It waits while the dry-runs exceed
// the time of a read and the row says Unknown.
func (w sharedPlane) profile(texts ...string) {
	w.t.Helper()
	read := func() (string, string) { return w.MustKubectl("get", "configurationprofiles", "-o", "wide"), "" }
	row, _ := w.eventually(read, func(row string) bool {
		return !strings.Contains(row, context.DeadlineExceeded.Error()) && !strings.Contains(row, "did not answer in time")
	})
	w.says(row, append([]string{"LoadAwareRebalancing", "live-migrates virtual machines"}, texts...)...)
}

// profileAPI reads profiles with other kubectl commands than a list.
func (w sharedPlane) profileAPI() {
	w.says(w.MustKubectl("get", "configprofile", "LoadAwareRebalancing", "-o", "yaml"), "kind: ConfigurationProfile\n", "state: Inactive", "plan: rebalance",
		"definition: kubedeschedulers.operator.openshift.io", "name: enable-psi-metrics", "action: Create", "reboot: true", "mode Automatic starts real evictions")
	w.says(w.MustKubectl("get", "configurationprofiles", "-o", "json"), `"kind": "List"`, `"impactSeverity": "High"`)
	w.says(w.MustKubectl("explain", "configurationprofile.status.state"), "Active", "Inactive", "Drifted", "Unknown")
	w.says(w.MustKubectl("api-resources", "--api-group=hco.kubevirt.io", "-o", "wide"), "configprofile,cfgprofile", "get,list ")
	out := w.Kubectl("get", "configurationprofile", "nothing")
	w.says(out.Stderr, "NotFound", "there are ", "LoadAwareRebalancing")
}

// lockedProfile: a profile is held by one plan at a time.
func lockedProfile(w sharedPlane) {
	out := w.KubectlInput(planFile("second"), "create", "-f", "-")
	if out.ExitCode == 0 || !strings.Contains(out.Stderr, `plan "rebalance" holds profile LoadAwareRebalancing`) {
		w.t.Errorf("a second plan: %s", out)
	}
	w.MustKubectlInput(planFile("second", "action: Ignore"), "create", "-f", "-")
	w.phase("second", "Ignored")
	w.MustKubectl("delete", "configplan", "second")
}

// executePlan: the plan runs its items in sequence, and waits for the real state of the pool.
func executePlan(w sharedPlane, operator *pools.Operator) {
	operator.Held.Store(true)
	approveByPlugin(w)
	w.phase("rebalance", "InProgress")
	w.untilPlan("rebalance", ".status.items[0].state", "InProgress")
	w.MustKubectl("wait", poll.TimeoutFlag, "--for=create", "machineconfig/99-worker-psi-karg")
	w.untilPlan("rebalance", ".status.items[0].message", `Waiting for MachineConfigPool "worker" to stabilize (updated 0/4`)
	if got := w.read(".status.items[1].state", "configplan", "rebalance"); got != "Pending" {
		w.t.Errorf("the second item is %s while the first item is not healthy", got)
	}
	if got := w.read(".spec.deschedulingIntervalSeconds", descheduler()...); got != "3600" {
		w.t.Errorf("the second item was applied before the first item was healthy")
	}
	operator.Held.Store(false)
	w.phase("rebalance", "Completed")
	w.planSays("rebalance", ".status.items[0].message", `"worker" is stable and ready (4 nodes)`)
	w.planSays("rebalance", `.status.conditions[?(@.type=="ProfileActive")].status`, "True")
	w.profile("Active", "rebalance (Completed)", "None", "Met")
	live := w.MustKubectl(append([]string{"get", "-o", "yaml", "--show-managed-fields"}, descheduler()...)...)
	w.says(live, "deschedulingIntervalSeconds: 60", "mode: Automatic", "KubeVirtRelieveAndMigrate", "AffinityAndTaints", "hco.kubevirt.io/governed-by: rebalance",
		"hco.kubevirt.io/applied-profile-hash: sha256:", "manager: hco-governance/LoadAwareRebalancing")
	w.says(w.MustKubectl("get", "configplan", "rebalance", "--subresource=history"), "RUN", "OUTCOME", "Completed", "2/2", "CHG-1")
	w.says(w.MustKubectl("get", "configplan", "rebalance", "--subresource=diff"), "configure-descheduler", "it is as it should be; the diff shows what the run changed")
	w.says(w.MustKubectl("get", "configplan", "rebalance", "--subresource=diff", "-o", "yaml"), "-  deschedulingIntervalSeconds: 3600", "+  deschedulingIntervalSeconds: 60")
	var history struct {
		Runs []struct {
			Outcome  string
			Approval struct{ Username, Comment, Mode string }
			Items    []struct{ Name, State string }
		}
	}
	raw := w.MustKubectl("get", "--raw", "/apis/hco.kubevirt.io/v1alpha1/configurationplans/rebalance/history")
	if err := json.Unmarshal([]byte(raw), &history); err != nil {
		w.t.Fatal(err)
	}
	if len(history.Runs) != 1 || history.Runs[0].Outcome != "Completed" || history.Runs[0].Approval.Comment != "CHG-1" || history.Runs[0].Approval.Username == "" || len(history.Runs[0].Items) != 2 {
		w.t.Errorf("the history is %s", raw)
	}
}

// untilPlan waits until a field of a plan contains a text.
func (w sharedPlane) untilPlan(name, path, text string) {
	w.t.Helper()
	w.eventually(func() (string, string) {
		return w.read(path, "configplan", name), w.Kubectl("get", "configplan", name, "-o", "yaml").Stdout
	}, func(got string) bool { return strings.Contains(got, text) })
}

// planDrift: a plan reports drift and does not undo it. Enforcing the plan needs another approval.
func planDrift(w sharedPlane) {
	w.MustKubectl("patch", "kubedescheduler", "cluster", "--namespace="+deschedulerNamespace, "--field-manager=mallory", "--type=merge", "-p", `{"spec":{"mode":"Predictive"}}`)
	w.phase("rebalance", "Drifted")
	w.planSays("rebalance", ".status.message", ".spec.mode was changed by mallory", "set spec.action to DryRun, then review and approve")
	w.event("rebalance", "Drifted", ".spec.mode was changed by mallory")
	w.profile("Drifted", "rebalance (Drifted)", "Medium", "not as plan rebalance says: KubeDescheduler.operator.openshift.io "+deschedulerNamespace+"/cluster")
	w.planSays("rebalance", `.status.conditions[?(@.type=="ProfileActive")].status`, "False")
	w.MustKubectl("patch", "kubedescheduler", "cluster", "--namespace="+deschedulerNamespace, "--field-manager=mallory", "--type=merge", "-p", `{"spec":{"mode":"Automatic"}}`)
	w.phase("rebalance", "Completed")
	// A field that the plan does not set is no drift.
	w.MustKubectl("patch", "kubedescheduler", "cluster", "--namespace="+deschedulerNamespace, "--type=merge", "-p", `{"spec":{"logLevel":"Debug"}}`)
	w.MustKubectl("patch", "kubedescheduler", "cluster", "--namespace="+deschedulerNamespace, "--field-manager=mallory", "--type=merge", "-p", `{"spec":{"mode":"Predictive"}}`)
	w.phase("rebalance", "Drifted")
	w.types(0, `kubectl penstock plan stop rebalance`)
	w.phase("rebalance", "ReviewRequired")
	w.planSays("rebalance", ".status.items[1].diff", `-  mode: "***"`, "+  mode: Automatic")
	w.refusesBlindApproval("rebalance")
	w.approveAsRead("rebalance")
	w.phase("rebalance", "Completed")
	if got := w.read(".spec.mode", descheduler()...); got != "Automatic" {
		w.t.Errorf("mode is %s", got)
	}
}

// stalePlan: a plan does not run if its target has changed since the review.
func stalePlan(w sharedPlane) {
	w.MustKubectl("patch", "configplan", "rebalance", "--type=merge", "-p",
		`{"spec":{"action":"DryRun","options":{"loadAwareRebalancing":{"deschedulingIntervalSeconds":600}}}}`)
	w.phase("rebalance", "ReviewRequired")
	w.MustKubectl("patch", "kubedescheduler", "cluster", "--namespace="+deschedulerNamespace, "--field-manager=mallory", "--type=merge", "-p", `{"spec":{"deschedulingIntervalSeconds":900}}`)
	w.untilPlan("rebalance", ".status.message", "is stale: changed since it was reviewed; last written by mallory")
	out := w.typesAs(plugin.User{}, 1, `kubectl penstock plan approve rebalance --hash sha256:e430599c… --comment CHG-4711 --wait`,
		"sha256:e430599c…", w.read(".status.planHash", "configplan", "rebalance"))
	w.says(out.Stdout+out.Stderr, "✗ configure-descheduler: the target has changed since the plan was computed", "plan rebalance is not in effect: Failed:")
	w.phase("rebalance", "Failed")
	w.planSays("rebalance", `.status.conditions[?(@.type=="Ready")].reason`, "PlanStale")
	if got := w.read(".spec.deschedulingIntervalSeconds", descheduler()...); got != "900" {
		w.t.Errorf("a stale plan was applied: interval %s", got)
	}
	w.types(0, `kubectl penstock plan run rebalance --comment CHG-4711`)
	if got := w.read(".spec.deschedulingIntervalSeconds", descheduler()...); got != "600" {
		w.t.Errorf("interval %s", got)
	}
}

// rollbackPlan: an undo is another plan, and needs a review.
func rollbackPlan(w sharedPlane) {
	w.typesAs(plugin.User{}, 0, `kubectl penstock plan undo rebalance --run 1 --timeout 5m`)
	w.planSays("rebalance", ".status.phase", "ReviewRequired")
	w.planSays("rebalance", ".status.items[*].name", "restore-configure-descheduler restore-enable-psi-metrics")
	w.planSays("rebalance", ".status.items[*].action", "Update Delete")
	w.typesAs(plugin.User{}, 0, `kubectl penstock plan run rebalance --hash sha256:e430599c… --timeout 2h`, "sha256:e430599c…", w.read(".status.planHash", "configplan", "rebalance"))
	w.planSays("rebalance", `.status.conditions[?(@.type=="ProfileActive")].reason`, "Restored")
	w.profile("Inactive", "rebalance (Completed)", "High")
	w.absent("machineconfig", "99-worker-psi-karg")
	live := w.MustKubectl(append([]string{"get", "-o", "yaml"}, descheduler()...)...)
	w.says(live, "deschedulingIntervalSeconds: 3600", "- LongLifecycle", "logLevel: Debug")
	if strings.Contains(live, "evictionLimits") || strings.Contains(live, "KubeVirtRelieveAndMigrate") {
		w.t.Errorf("a rolled-back target still has changes:\n%s", live)
	}
	w.MustKubectl("delete", "configplan", "rebalance")
}

// standingApproval: action Apply runs the first computed plan, and no later plan.
func standingApproval(w sharedPlane) {
	w.MustKubectlInput(planFile("gitops", "action: Apply", "onConflict: Take", "waitTimeout: 5m"), "apply", "--server-side", "-f", "-")
	w.phase("gitops", "Completed")
	w.planSays("gitops", ".status.approval", `"mode":"Standing"`, `"run":1`)
	w.MustKubectlInput(planFile("gitops", "action: Apply", "onConflict: Take", "waitTimeout: 5m", "options: {loadAwareRebalancing: {mode: Predictive}}"), "apply", "--server-side", "-f", "-")
	w.phase("gitops", "ReviewRequired")
	if got := w.read(".spec.mode", descheduler()...); got != "Automatic" {
		w.t.Errorf("a plan was executed without an approval: mode %s", got)
	}
	hash := w.read(".status.planHash", "configplan", "gitops")
	w.MustKubectlInput(planFile("gitops", "action: Apply", "onConflict: Take", "waitTimeout: 5m", "options: {loadAwareRebalancing: {mode: Predictive}}", "approvedPlanHash: "+hash), "apply", "--server-side", "-f", "-")
	w.phase("gitops", "Completed")
	// The user accepts the drift. The change stays.
	w.MustKubectl("patch", "kubedescheduler", "cluster", "--namespace="+deschedulerNamespace, "--field-manager=mallory", "--type=merge", "-p", `{"spec":{"deschedulingIntervalSeconds":777}}`)
	w.phase("gitops", "Drifted")
	w.action("gitops", "Ignore")
	w.phase("gitops", "Ignored")
	if got := w.read(".spec.deschedulingIntervalSeconds", descheduler()...); got != "777" {
		w.t.Errorf("accepted drift was undone: interval %s", got)
	}
	w.profile("Inactive", "<none>")
	// The target matches the plan again. The plan is in effect, and stays so for the scenario Idle.
	w.MustKubectl("patch", "kubedescheduler", "cluster", "--namespace="+deschedulerNamespace, "--field-manager=mallory", "--type=merge", "-p", `{"spec":{"deschedulingIntervalSeconds":60}}`)
	w.action("gitops", "DryRun")
	w.phase("gitops", "Completed")
	if annotation := w.read(`.metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration`, descheduler()...); annotation == "" {
		w.t.Error("the descheduler has lost kubectl's annotation: the test sees nothing")
	}
	w.planSays("gitops", ".status.items[*].action", "None None")
}
