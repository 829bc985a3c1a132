package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	catalogue "github.com/penstock-project/penstock/pkg/metrics"
)

func TestProcess(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	leading := true
	if err := registry.Register(process(func() bool { return leading })); err != nil {
		t.Fatal(err)
	}
	others := []string{"penstock_store_full{} 0", "penstock_store_unreadable_records{kind=head} 2", "penstock_store_share_refusals_total{of=user} 5", "penstock_store_volume_free_bytes{} 3", "penstock_store_volume_reserve_bytes{} 4", `penstock_certificate_expiration_timestamp_seconds{certificate=serving} 1.7e+09`, "penstock_host_clock_skew_seconds{} -2.5"}
	for _, want := range [][]string{{"penstock_leader{} 1", "penstock_store_degraded{} 0"}, {"penstock_leader{} 0", "penstock_store_degraded{} 1"}} {
		if diff := cmp.Diff(slices.Sorted(slices.Values(append(want, others...))), series(t, registry)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		leading = false
	}
}

// process has a value for each metric.
func process(leading func() bool) Process {
	return Process{
		Leading: leading, Degraded: func() bool { return !leading() }, Full: func() bool { return false },
		Expiries: func() map[string]time.Time {
			return map[string]time.Time{"serving": time.Unix(1.7e9, 0), "authority": {}}
		},
		Skew:       func() float64 { return -2.5 },
		Unreadable: func() map[string]int { return map[string]int{"head": 2} },
		Refusals:   func() map[string]int { return map[string]int{"user": 5} },
		Volume:     func() (uint64, uint64, bool) { return 3, 4, true },
	}
}

// TestCatalogue: the registered metrics are exactly the metrics that the catalogue lists for every
// replica.
func TestCatalogue(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(process(func() bool { return true })); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, family := range families {
		var labels []string
		for _, l := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		got[family.GetName()] = fmt.Sprintf("%s %v %s", strings.ToLower(family.GetType().String()), labels, family.GetHelp())
	}
	for _, m := range catalogue.Catalogue() {
		if m.EveryReplica && !strings.HasPrefix(m.Name, "penstock_catalog_") { // package controller/catalog registers these
			want[m.Name] = fmt.Sprintf("%s %v %s", m.Type, m.Labels, m.Help)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// series returns the samples of a registry as text.
func series(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%s", l.GetName(), l.GetValue()))
			}
			out = append(out, fmt.Sprintf("%s{%s} %v", family.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue()))
		}
	}
	slices.Sort(out)
	return out
}
