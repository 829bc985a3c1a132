package command

import (
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
)

// TestReadyOutcome: a verdict that this plugin does not know is no yes.
func TestReadyOutcome(t *testing.T) {
	acknowledged := []v1alpha1.UpgradeFinding{{Severity: v1alpha1.UpgradeLook, Acknowledged: &v1alpha1.UpgradeAcknowledgement{By: "alice"}}}
	look := []v1alpha1.UpgradeFinding{{Severity: v1alpha1.UpgradeLook}}
	for _, one := range []struct {
		verdict  v1alpha1.UpgradeVerdict
		findings []v1alpha1.UpgradeFinding
		strict   bool
		want     outcome.Code
	}{
		{v1alpha1.UpgradeNothingFound, nil, true, outcome.OK},
		{v1alpha1.UpgradeNothingFound, look, false, outcome.OK},
		{v1alpha1.UpgradeNothingFound, look, true, outcome.No},
		{v1alpha1.UpgradeNothingFound, acknowledged, true, outcome.OK},
		{v1alpha1.UpgradeNothingFound, append(acknowledged, look...), true, outcome.No},
		{v1alpha1.UpgradeBlocked, look, false, outcome.No},
		{v1alpha1.UpgradeUnknown, look, true, outcome.Unknown},
		{"Other", nil, false, outcome.Unknown},
	} {
		got := outcome.OK
		if err := readyOutcome(&v1alpha1.UpgradeReadiness{Verdict: one.verdict, Findings: one.findings}, one.strict); err != nil {
			got = outcome.Of(err)
		}
		if got != one.want {
			t.Errorf("%s, %d findings, strict %t: exit %d, want %d", one.verdict, len(one.findings), one.strict, got, one.want)
		}
	}
}
