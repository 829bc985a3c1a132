package validation_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/validation"
)

// plan returns a valid plan after change.
func plan(change func(*hco.ConfigurationPlan)) *hco.ConfigurationPlan {
	p := &hco.ConfigurationPlan{
		ObjectMeta: metav1.ObjectMeta{Name: "rebalance", ResourceVersion: "1"},
		Spec: hco.ConfigurationPlanSpec{
			Profile: hco.ProfileLoadAwareRebalancing, Action: hco.ActionDryRun, FailurePolicy: hco.FailurePolicyAbort,
			OnConflict: hco.OnConflictBlock, ExpiresAfter: &metav1.Duration{Duration: 24 * time.Hour},
		},
	}
	if change != nil {
		change(p)
	}
	return p
}

func options(change func(*hco.LoadAwareRebalancingOptions)) func(*hco.ConfigurationPlan) {
	return func(p *hco.ConfigurationPlan) {
		p.Spec.Options = &hco.PlanOptions{LoadAwareRebalancing: &hco.LoadAwareRebalancingOptions{}}
		change(p.Spec.Options.LoadAwareRebalancing)
	}
}

func recurs(schedule, zone string, lasts time.Duration) func(*hco.ConfigurationPlan) {
	return func(p *hco.ConfigurationPlan) {
		p.Spec.Window = &hco.PlanWindow{Schedule: schedule, TimeZone: zone, Duration: metav1.Duration{Duration: lasts}}
	}
}

func TestValidatePlan(t *testing.T) {
	hash := "sha256:" + strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		reason string
		change func(*hco.ConfigurationPlan)
		want   []string
	}{
		"valid":           {"the smallest plan", nil, nil},
		"unknown profile": {"people see what there is", func(p *hco.ConfigurationPlan) { p.Spec.Profile = "Fast" }, []string{"spec.profile"}},
		"no profile":      {"there is no default", func(p *hco.ConfigurationPlan) { p.Spec.Profile = "" }, []string{"spec.profile"}},
		"unknown action":  {"", func(p *hco.ConfigurationPlan) { p.Spec.Action = "Go" }, []string{"spec.action"}},
		"unknown policy":  {"", func(p *hco.ConfigurationPlan) { p.Spec.FailurePolicy = "Retry" }, []string{"spec.failurePolicy"}},
		"unknown conflict": {"", func(p *hco.ConfigurationPlan) { p.Spec.OnConflict = "Fight" },
			[]string{"spec.onConflict"}},
		"hash":       {"as status spells it", func(p *hco.ConfigurationPlan) { p.Spec.ApprovedPlanHash = hash }, nil},
		"other hash": {"a typo would wait for ever", func(p *hco.ConfigurationPlan) { p.Spec.ApprovedPlanHash = "abc" }, []string{"spec.approvedPlanHash"}},
		"keyed hash": {"plans have no keyed hashes", func(p *hco.ConfigurationPlan) { p.Spec.ApprovedPlanHash = "hmac-" + hash }, []string{"spec.approvedPlanHash"}},
		"no time to wait": {"zero is not \"no limit\"", func(p *hco.ConfigurationPlan) { p.Spec.WaitTimeout = &metav1.Duration{} },
			[]string{"spec.waitTimeout"}},
		"expires at once": {"nobody could approve it", func(p *hco.ConfigurationPlan) { p.Spec.ExpiresAfter = &metav1.Duration{Duration: time.Second} },
			[]string{"spec.expiresAfter"}},
		"window":       {"", recurs("0 22 * * Sat", "Europe/Berlin", 6*time.Hour), nil},
		"by name":      {"", recurs("@weekly", "UTC", time.Hour), nil},
		"longer":       {"longer than the time to the next one", recurs("@hourly", "UTC", 2*time.Hour), nil},
		"no schedule":  {"", recurs("", "UTC", time.Hour), []string{"spec.window.schedule"}},
		"no cron":      {"", recurs("at night", "UTC", time.Hour), []string{"spec.window.schedule"}},
		"how often":    {"it would depend on who counts", recurs("@every 1h", "UTC", time.Hour), []string{"spec.window.schedule"}},
		"zone in it":   {"there is a field for it", recurs("TZ=UTC 0 22 * * *", "UTC", time.Hour), []string{"spec.window.schedule"}},
		"long":         {"", recurs(strings.Repeat("0,", 200)+"0 * * * *", "UTC", time.Hour), []string{"spec.window.schedule"}},
		"never":        {"there is no such day", recurs("0 0 31 6 *", "UTC", time.Hour), []string{"spec.window.schedule"}},
		"no zone":      {"after defaults there is one", recurs("@daily", "", time.Hour), []string{"spec.window.timeZone"}},
		"local":        {"whose?", recurs("@daily", "Local", time.Hour), []string{"spec.window.timeZone"}},
		"unknown zone": {"", recurs("@daily", "Europe/Atlantis", time.Hour), []string{"spec.window.timeZone"}},
		"no duration":  {"", recurs("@daily", "UTC", 0), []string{"spec.window.duration"}},
		"two months":   {"", recurs("@daily", "UTC", 60*24*time.Hour), []string{"spec.window.duration"}},
		"parts":        {"times of the API are whole seconds", recurs("@daily", "UTC", time.Hour+time.Millisecond), []string{"spec.window.duration"}},
		"expires":      {"whether it is over is no question of spelling", func(p *hco.ConfigurationPlan) { p.Spec.Expires = &metav1.Time{Time: time.Unix(1, 0)} }, nil},
		"two people":   {"", func(p *hco.ConfigurationPlan) { p.Spec.Approvals = 2 }, nil},
		"six people":   {"", func(p *hco.ConfigurationPlan) { p.Spec.Approvals = 6 }, []string{"spec.approvals"}},
		"after itself": {"it would wait for ever", func(p *hco.ConfigurationPlan) { p.Spec.Requires = []hco.ProfileName{p.Spec.Profile} }, []string{"spec.requires[0]"}},
		"after a typo": {"it would wait for ever", func(p *hco.ConfigurationPlan) { p.Spec.Requires = []hco.ProfileName{"Fast", ""} },
			[]string{"spec.requires[0]", "spec.requires[1]"}},
		"after too many": {"", func(p *hco.ConfigurationPlan) { p.Spec.Requires = make([]hco.ProfileName, 9) }, []string{"spec.requires"}},
		"minus one":      {"", func(p *hco.ConfigurationPlan) { p.Spec.Approvals = -1 }, []string{"spec.approvals"}},
		"all options": {"", options(func(o *hco.LoadAwareRebalancingOptions) {
			*o = hco.LoadAwareRebalancingOptions{EnablePSIMetrics: ptr.To(false), DeschedulingIntervalSeconds: ptr.To[int32](60), Mode: hco.DeschedulerPredictive,
				DeviationThresholds: hco.DeviationHigh, EvictionLimitTotal: ptr.To[int32](10), EvictionLimitNode: ptr.To[int32](10)}
		}), nil},
		"short interval": {"", options(func(o *hco.LoadAwareRebalancingOptions) { o.DeschedulingIntervalSeconds = ptr.To[int32](59) }),
			[]string{"spec.options.loadAwareRebalancing.deschedulingIntervalSeconds"}},
		"negative interval": {"", options(func(o *hco.LoadAwareRebalancingOptions) { o.DeschedulingIntervalSeconds = ptr.To[int32](-1) }),
			[]string{"spec.options.loadAwareRebalancing.deschedulingIntervalSeconds"}},
		"unknown mode": {"", options(func(o *hco.LoadAwareRebalancingOptions) { o.Mode = "Manual" }),
			[]string{"spec.options.loadAwareRebalancing.mode"}},
		"unknown thresholds": {"", options(func(o *hco.LoadAwareRebalancingOptions) { o.DeviationThresholds = "Tiny" }),
			[]string{"spec.options.loadAwareRebalancing.deviationThresholds"}},
		"no evictions": {"", options(func(o *hco.LoadAwareRebalancingOptions) {
			o.EvictionLimitTotal, o.EvictionLimitNode = ptr.To[int32](0), ptr.To[int32](101)
		}),
			[]string{"spec.options.loadAwareRebalancing.evictionLimitTotal", "spec.options.loadAwareRebalancing.evictionLimitNode",
				"spec.options.loadAwareRebalancing.evictionLimitNode"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range validation.ValidatePlan(plan(c.change)) {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: fields with errors (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestValidatePlanUpdate(t *testing.T) {
	changed := plan(func(p *hco.ConfigurationPlan) { p.Spec.Action = hco.ActionApply })
	if errs := validation.ValidatePlanUpdate(changed, plan(nil)); len(errs) > 0 {
		t.Errorf("changing the action: %v", errs)
	}
	other := plan(func(p *hco.ConfigurationPlan) { p.Spec.Profile = "Another" })
	errs := validation.ValidatePlanUpdate(plan(nil), other)
	if len(errs) != 1 || errs[0].Field != "spec.profile" {
		t.Errorf("changing the profile: %v, want one error of spec.profile", errs)
	}
	for _, c := range []struct {
		from, to int32
		refused  bool
	}{{0, 1, false}, {1, 0, false}, {0, 2, false}, {2, 3, false}, {2, 2, false}, {2, 1, true}, {2, 0, true}, {3, 2, true}} {
		people := func(n int32) *hco.ConfigurationPlan {
			return plan(func(p *hco.ConfigurationPlan) { p.Spec.Approvals = n })
		}
		errs := validation.ValidatePlanUpdate(people(c.to), people(c.from))
		if refused := len(errs) == 1 && errs[0].Field == "spec.approvals"; refused != c.refused || !refused && len(errs) > 0 {
			t.Errorf("approvals from %d to %d: %v", c.from, c.to, errs)
		}
	}
}

func TestValidateApprovalRequest(t *testing.T) {
	for name, c := range map[string]struct {
		spec hco.PlanApprovalRequestSpec
		want []string
	}{
		"no hash":      {hco.PlanApprovalRequestSpec{Comment: "looks good"}, []string{"spec.planHash"}},
		"bad hash":     {hco.PlanApprovalRequestSpec{PlanHash: "latest"}, []string{"spec.planHash"}},
		"long comment": {hco.PlanApprovalRequestSpec{PlanHash: "sha256:" + strings.Repeat("a", 64), Comment: strings.Repeat("x", 1025)}, []string{"spec.comment"}},
		"not UTF-8":    {hco.PlanApprovalRequestSpec{PlanHash: "sha256:" + strings.Repeat("a", 64), Comment: "\xff"}, []string{"spec.comment"}},
		"good":         {hco.PlanApprovalRequestSpec{PlanHash: "sha256:" + strings.Repeat("a", 64), Comment: "CHG-1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range validation.ValidateApprovalRequest(&hco.PlanApprovalRequest{Spec: c.spec}) {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("fields with errors (-want +got):\n%s", diff)
			}
		})
	}
}

func swap(change func(*hco.HighDensitySwapOptions)) func(*hco.ConfigurationPlan) {
	return func(p *hco.ConfigurationPlan) {
		p.Spec.Profile, p.Spec.Options = hco.ProfileHighDensitySwap, &hco.PlanOptions{HighDensitySwap: &hco.HighDensitySwapOptions{}}
		change(p.Spec.Options.HighDensitySwap)
	}
}

func nodeHealth(change func(*hco.NodeHealthRemediationOptions)) func(*hco.ConfigurationPlan) {
	return func(p *hco.ConfigurationPlan) {
		p.Spec.Profile, p.Spec.Options = hco.ProfileNodeHealthRemediation, &hco.PlanOptions{NodeHealthRemediation: &hco.NodeHealthRemediationOptions{}}
		change(p.Spec.Options.NodeHealthRemediation)
	}
}

// TestValidateOptions: options are checked against each other, and an error names the field.
func TestValidateOptions(t *testing.T) {
	const inSwap, inHealth = "spec.options.highDensitySwap.", "spec.options.nodeHealthRemediation."
	minutes := metav1.Duration{Duration: 5 * time.Minute}
	for name, c := range map[string]struct {
		change func(*hco.ConfigurationPlan)
		want   []string
	}{
		"swap": {swap(func(*hco.HighDensitySwapOptions) {}), nil},
		"swap, all of it": {swap(func(o *hco.HighDensitySwapOptions) {
			*o = hco.HighDensitySwapOptions{EnableSwap: ptr.To(true), SwapSource: hco.SwapSourceFile, FileSizeMiB: ptr.To[int32](16384), MemoryToRequestRatio: ptr.To[int32](200), EnableKSM: ptr.To(false)}
		}), nil},
		"ratio without swap": {swap(func(o *hco.HighDensitySwapOptions) {
			o.EnableSwap, o.MemoryToRequestRatio = ptr.To(false), ptr.To[int32](121)
		}), []string{inSwap + "memoryToRequestRatio"}},
		"small ratio without swap": {swap(func(o *hco.HighDensitySwapOptions) {
			o.EnableSwap, o.MemoryToRequestRatio = ptr.To(false), ptr.To[int32](120)
		}), nil},
		"no swap, where": {swap(func(o *hco.HighDensitySwapOptions) {
			o.EnableSwap, o.SwapSource, o.PartitionLabel, o.FileSizeMiB = ptr.To(false), hco.SwapSourcePartition, "SWAP", ptr.To[int32](2048)
		}), []string{inSwap + "fileSizeMiB", inSwap + "partitionLabel", inSwap + "swapSource"}},
		"file of no size":   {swap(func(o *hco.HighDensitySwapOptions) { o.SwapSource = hco.SwapSourceFile }), []string{inSwap + "fileSizeMiB"}},
		"size of partition": {swap(func(o *hco.HighDensitySwapOptions) { o.FileSizeMiB = ptr.To[int32](2048) }), []string{inSwap + "fileSizeMiB"}},
		"label of file": {swap(func(o *hco.HighDensitySwapOptions) {
			o.SwapSource, o.FileSizeMiB, o.PartitionLabel = hco.SwapSourceFile, ptr.To[int32](2048), "SWAP"
		}), []string{inSwap + "partitionLabel"}},
		"label that is a path":   {swap(func(o *hco.HighDensitySwapOptions) { o.PartitionLabel = "../../sda1" }), []string{inSwap + "partitionLabel"}},
		"label with a specifier": {swap(func(o *hco.HighDensitySwapOptions) { o.PartitionLabel = "a%H" }), []string{inSwap + "partitionLabel"}},
		"out of range":           {swap(func(o *hco.HighDensitySwapOptions) { o.MemoryToRequestRatio, o.SwapSource = ptr.To[int32](99), "Tape" }), []string{inSwap + "memoryToRequestRatio", inSwap + "swapSource"}},
		"health": {nodeHealth(func(o *hco.NodeHealthRemediationOptions) {
			*o = hco.NodeHealthRemediationOptions{Remediator: hco.RemediatorSelfNode, Template: &hco.TemplateReference{Namespace: "a", Name: "b"}, NodeSelector: map[string]string{"rack": "a"},
				MinHealthy: ptr.To(intstr.FromString("51%")), UnhealthyConditions: []hco.UnhealthyCondition{{Type: "Ready", Status: "False", Duration: minutes}}, IncludeControlPlane: ptr.To(true)}
		}), nil},
		"health, nothing of it": {nodeHealth(func(o *hco.NodeHealthRemediationOptions) {
			*o = hco.NodeHealthRemediationOptions{Remediator: "Hammer", Template: &hco.TemplateReference{}, NodeSelector: map[string]string{"node-role.kubernetes.io/master": "", "b c": ""},
				MinHealthy: ptr.To(intstr.FromString("0%")), UnhealthyConditions: []hco.UnhealthyCondition{{}}}
		}), []string{inHealth + "minHealthy", inHealth + "nodeSelector", inHealth + "nodeSelector[node-role.kubernetes.io/master]", inHealth + "remediator", inHealth + "template.name", inHealth + "template.namespace",
			inHealth + "unhealthyConditions[0].duration", inHealth + "unhealthyConditions[0].status", inHealth + "unhealthyConditions[0].type"}},
		"every healthy node": {nodeHealth(func(o *hco.NodeHealthRemediationOptions) {
			o.UnhealthyConditions = []hco.UnhealthyCondition{{Type: "Ready", Status: "True", Duration: minutes}, {Type: "Ready", Status: "True", Duration: minutes}}
		}), []string{inHealth + "unhealthyConditions[0].status", inHealth + "unhealthyConditions[1]", inHealth + "unhealthyConditions[1].status"}},
		"all at once": {nodeHealth(func(o *hco.NodeHealthRemediationOptions) { o.MinHealthy = ptr.To(intstr.FromInt32(0)) }), []string{inHealth + "minHealthy"}},
		"none, ever":  {nodeHealth(func(o *hco.NodeHealthRemediationOptions) { o.MinHealthy = ptr.To(intstr.FromString("100%")) }), []string{inHealth + "minHealthy"}},
		"other profile": {func(p *hco.ConfigurationPlan) {
			swap(func(*hco.HighDensitySwapOptions) {})(p)
			p.Spec.Profile = hco.ProfileNodeHealthRemediation
		}, []string{"spec.options.highDensitySwap"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range validation.ValidatePlan(plan(c.change)) {
				got = append(got, err.Field)
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
