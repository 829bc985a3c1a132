package command

import (
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
)

// TestReadyOutcome: an unknown verdict does not count as ready.
func TestReadyOutcome(t *testing.T) {
	acknowledged := []v1alpha1.UpgradeFinding{{Severity: v1alpha1.UpgradeLook, Acknowledged: &v1alpha1.UpgradeAcknowledgement{By: "alice"}}}
	look := []v1alpha1.UpgradeFinding{{Severity: v1alpha1.UpgradeLook}}
	for _, one := range []struct {
		verdict  v1alpha1.UpgradeVerdict
		pending  int32
		findings []v1alpha1.UpgradeFinding
		strict   bool
		want     outcome.Code
	}{
		{v1alpha1.UpgradeNothingFound, 0, nil, true, outcome.OK},
		{v1alpha1.UpgradeNothingFound, 0, look, false, outcome.OK},
		{v1alpha1.UpgradeNothingFound, 0, look, true, outcome.No},
		{v1alpha1.UpgradeNothingFound, 0, acknowledged, true, outcome.OK},
		{v1alpha1.UpgradeNothingFound, 0, append(acknowledged, look...), true, outcome.No},
		{v1alpha1.UpgradeBlocked, 0, look, false, outcome.No},
		{v1alpha1.UpgradeUnknown, 0, look, true, outcome.Unknown},
		{v1alpha1.UpgradeNothingFound, 1, nil, false, outcome.Unknown},
		{"Other", 0, nil, false, outcome.Unknown},
	} {
		got := outcome.OK
		if err := readyOutcome(&v1alpha1.UpgradeReadiness{Verdict: one.verdict, Findings: one.findings, Pending: one.pending}, one.strict); err != nil {
			got = outcome.Of(err)
		}
		if got != one.want {
			t.Errorf("%s, %d pending, %d findings, strict %t: exit %d, want %d", one.verdict, one.pending, len(one.findings), one.strict, got, one.want)
		}
	}
}
