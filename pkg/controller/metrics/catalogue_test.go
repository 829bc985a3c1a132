package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	catalogue "github.com/penstock-project/penstock/pkg/metrics"
	"github.com/penstock-project/penstock/pkg/store/fsck"
)

// TestCatalogue: the registered metrics are exactly the metrics that the catalogue lists for the
// leader.
func TestCatalogue(t *testing.T) {
	f := start(t, revision("a", 1, is("Ready", "True", 0), has(failingPhase())))
	f.put(revision("a", 1, is("Ready", "False", 1), has(failingPhase())))
	f.PhaseBegan("one", "deploy")
	f.PhaseComplete("one", "deploy")
	f.Repaired(object("", "ConfigMap", "x"), "someone")
	f.Contested(object("", "ConfigMap", "x"))
	f.send(t)
	startPlans(t, f.registry, plan("a", hcov1alpha1.PhaseReviewRequired)).put(plan("a", hcov1alpha1.PhaseDrifted))
	extensions := startExtensions(t, f.registry)
	extensions.Resolved(time.Second, nil)
	extensions.Pulled(time.Second, nil)
	if err := AddTemplates(f.registry, func() Templates { return Templates{{"CatalogSource", "Resolved"}: 1} }); err != nil {
		t.Fatal(err)
	}
	if err := AddFleets(f.registry, func() []Fleet { return []Fleet{{"edge", map[string]int{"Pending": 1}, []string{"ApprovalRequired"}}} }); err != nil {
		t.Fatal(err)
	}
	if err := AddCharts(f.registry, func() []Charts { return []Charts{{"central", map[string]int{"Reconciling": 1}, 2}} }); err != nil {
		t.Fatal(err)
	}
	f.registry.MustRegister(&readiness{
		clock: clock.RealClock{}, asked: time.Now(), found: catalogue.Desc(catalogue.UpgradeFindings), counts: map[olmv1alpha1.UpgradeSeverity]int{olmv1alpha1.UpgradeLook: 1},
	})
	store, err := AddStore(f.registry)
	if err != nil {
		t.Fatal(err)
	}
	store.Collected(1, 2)
	store.Checked(fsck.Report{Extensions: []fsck.Extension{{Name: "a", Bytes: 1}}}, time.Now())
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, family := range families {
		var labels []string
		for _, l := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		got[family.GetName()] = fmt.Sprintf("%s %v %s", strings.ToLower(family.GetType().String()), sorted(labels), family.GetHelp())
	}
	want := map[string]string{}
	for _, m := range catalogue.Catalogue() {
		if m.EveryReplica {
			continue // package server/metrics registers it
		}
		if strings.HasPrefix(m.Name, "penstock_notifications_") || strings.HasPrefix(m.Name, "penstock_metric_check_") {
			continue // packages controller/notify and controller/metriccheck register it
		}
		want[m.Name] = fmt.Sprintf("%s %v %s", m.Type, sorted(m.Labels), m.Help)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func failingPhase() olmv1alpha1.PhaseStatus {
	return olmv1alpha1.PhaseStatus{Objects: 1, Applied: 1, Failing: failing("ProbeFailed")}
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
