//go:build integration

package e2e_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/penstock-project/penstock/test/framework/cluster"
)

// windowedPlan: the plan runs when it has two approvals and its window is open. Its undo needs both
// too.
func windowedPlan(w sharedPlane) {
	const name, leapDay = "night", `window: {schedule: "0 0 29 2 *", timeZone: Europe/Berlin, duration: 1h}`
	options := "options: {loadAwareRebalancing: {enablePSIMetrics: false, deschedulingIntervalSeconds: 600}}"
	before := w.read(".spec.deschedulingIntervalSeconds", descheduler()...)
	first, second := w.User("first-approver", "system:masters"), w.User("second-approver", "system:masters")
	approve := func(who *cluster.Access) (stderr string) {
		request := fmt.Sprintf(`{"apiVersion":"hco.kubevirt.io/v1alpha1","kind":"PlanApprovalRequest","spec":{"planHash":%q}}`, w.read(".status.planHash", "configplan", name))
		return who.KubectlInput(request, "create", "--raw", "/apis/hco.kubevirt.io/v1alpha1/configurationplans/"+name+"/approve", "-f", "-").Stderr
	}
	both := func() {
		w.t.Helper()
		for _, who := range []*cluster.Access{first, second} {
			if stderr := approve(who); stderr != "" {
				w.t.Fatalf("approving %s: %s", name, stderr)
			}
		}
	}

	w.says(w.MustKubectl("explain", "configplan.spec.window"), "schedule", "timeZone", "duration")
	for wrong, says := range map[string]string{
		`window: {schedule: "@every 1h", duration: 1h}`:                         "spec.window.schedule: Invalid value",
		`window: {schedule: "@daily", timeZone: Europe/Atlantis, duration: 1h}`: "spec.window.timeZone: Invalid value",
		`window: {schedule: "@daily"}`:                                          "spec.window.duration",
		"approvals: 9":                                                          "spec.approvals: Invalid value: 9: must be between 1 and 5",
	} {
		if out := w.KubectlInput(planFile(name, wrong), "create", "-f", "-"); out.ExitCode == 0 || !strings.Contains(out.Stderr, says) {
			w.t.Errorf("%s is not refused with %q: %s", wrong, says, out)
		}
	}
	w.says(w.KubectlInput(planFile(name, "onConflict: Take", options, "approvals: 2", leapDay, fmt.Sprintf("expires: %q", time.Now().UTC().Add(time.Hour).Format(time.RFC3339))), "create", "-f", "-").Stderr, "spec.expires comes before the window")
	w.phase(name, "ReviewRequired")
	w.MustKubectl("patch", "configplan", name, "--type=merge", "-p", `{"spec":{"expires":null}}`)
	w.untilPlan(name, ".status.observedGeneration", "2")

	// 1. Two approvals, by users who did not create the plan.
	w.says(w.KubectlInput(fmt.Sprintf(`{"apiVersion":"hco.kubevirt.io/v1alpha1","kind":"PlanApprovalRequest","spec":{"planHash":%q}}`, w.read(".status.planHash", "configplan", name)),
		"create", "--raw", "/apis/hco.kubevirt.io/v1alpha1/configurationplans/"+name+"/approve", "-f", "-").Stderr, "created the plan or changed its spec")
	if stderr := approve(first); stderr != "" {
		w.t.Fatal(stderr)
	}
	w.untilPlan(name, ".status.message", "1 of 2 approvals: approved by first-approver")
	w.says(approve(first), "(1 of 2 approvals): another person must approve it")
	if stderr := approve(second); stderr != "" {
		w.t.Fatal(stderr)
	}

	// 2. The window.
	w.phase(name, "Scheduled")
	w.planSays(name, ".status.message", "it begins when its window opens at 20", "-02-28T23:00:00Z (", "-02-29 00:00 CET, Europe/Berlin)")
	w.says(w.MustKubectl("get", "configplan", name, "-o", "wide"), "BEGINS", "APPROVALS", "Scheduled", "-02-28T23:00Z", "2/2")
	w.MustKubectl("patch", "configplan", name, "--type=merge", "-p", `{"spec":{"window":{"schedule":"* * * * *"}}}`)
	w.phase(name, "ReviewRequired") // a changed window changes the plan's hash
	both()
	w.phase(name, "Completed")
	if interval := w.read(".spec.deschedulingIntervalSeconds", descheduler()...); interval != "600" {
		w.t.Errorf("interval %s", interval)
	}
	w.says(w.MustKubectl("get", "--raw", "/apis/hco.kubevirt.io/v1alpha1/configurationplans/"+name+"/history"), `"username":"first-approver"`, `"username":"second-approver"`)

	// The approved plan can be exported to a Git repository, for a tool that uses server-side
	// apply.
	exported := w.types(0, `kubectl penstock plan export rebalance`, "rebalance", name).Stdout
	w.says(exported, "kind: KubeDescheduler", "deschedulingIntervalSeconds: 600", "hco.kubevirt.io/exported-from: "+name+"/"+w.read(".status.planHash", "configplan", name))
	w.says(w.MustKubectlInput(exported, "apply", "--server-side", "--dry-run=server", "--field-manager=argocd", "-f", "-"), "serverside-applied")
	w.says(w.MustKubectl("get", "configplan", name, "--subresource=export", "-o", "yaml"), "kind: List", "kind: KubeDescheduler")

	// 3. The undo needs the approvals and the window too.
	w.mustPost(name, "rollback", "PlanRollbackRequest", "{}")
	w.phase(name, "ReviewRequired")
	both()
	w.phase(name, "Completed")
	if interval := w.read(".spec.deschedulingIntervalSeconds", descheduler()...); interval != before {
		w.t.Errorf("interval %s, before %s", interval, before)
	}

	// 4. The expiry.
	w.MustKubectl("patch", "configplan", name, "--type=merge", "-p", `{"spec":{"restoreRun":0,"action":"DryRun","expires":"2026-01-01T00:00:00Z"}}`)
	w.phase(name, "Expired")
	w.planSays(name, ".status.message", "not executed before spec.expires, 2026-01-01T00:00:00Z")
	w.MustKubectl("delete", "configplan", name)
}
