package metrics

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	testclock "k8s.io/utils/clock/testing"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestReadiness: a scrape returns the last answer, and starts a new computation if that answer is
// old.
func TestReadiness(t *testing.T) {
	registry, clock := prometheus.NewRegistry(), testclock.NewFakePassiveClock(time.Unix(0, 0))
	answers := make(chan error)
	var collector *readiness
	err := AddReadiness(t.Context(), collecting{registry, &collector}, clock, func(context.Context) (*olmv1alpha1.UpgradeReadiness, error) {
		err := <-answers
		return &olmv1alpha1.UpgradeReadiness{Findings: []olmv1alpha1.UpgradeFinding{{Severity: olmv1alpha1.UpgradeBlocks}, {Severity: olmv1alpha1.UpgradeBlocks}, {Severity: olmv1alpha1.UpgradeLook}}}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	scrape := func(want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "penstock_upgrade_findings"); err != nil {
			t.Error(err)
		}
	}
	answer := func(err error) {
		answers <- err
		for asking := true; asking; {
			collector.mu.Lock()
			asking = collector.asking
			collector.mu.Unlock()
		}
	}
	const found = `# HELP penstock_upgrade_findings Unacknowledged findings of upgrade readiness for the next minor of Kubernetes, by severity: Blocks, BreaksRollback, ActBefore, Look. A scrape computes them again after 15 minutes.
# TYPE penstock_upgrade_findings gauge
penstock_upgrade_findings{severity="ActBefore"} 0
penstock_upgrade_findings{severity="Blocks"} 2
penstock_upgrade_findings{severity="BreaksRollback"} 0
penstock_upgrade_findings{severity="Look"} 1
`
	scrape("")
	answer(nil)
	scrape(found)
	clock.SetTime(clock.Now().Add(readinessFresh - 1))
	scrape(found)
	clock.SetTime(clock.Now().Add(1))
	scrape(found)
	answer(errors.New("no answer"))
	scrape("")
}

type collecting struct {
	*prometheus.Registry
	collector **readiness
}

func (c collecting) Register(one prometheus.Collector) error {
	*c.collector, _ = one.(*readiness)
	return c.Registry.Register(one)
}
