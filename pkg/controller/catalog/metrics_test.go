package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock-project/penstock/pkg/catalog/content"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/index"
	"github.com/penstock-project/penstock/pkg/metrics"
)

// TestCatalogue: the exposed metrics are exactly the listed metrics of catalogs.
func TestCatalogue(t *testing.T) {
	contents, err := content.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	indexes, err := index.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("1", 64)
	documents := func(ctx context.Context, found func(*fbc.Document) error) error {
		return fbc.Read(ctx, strings.NewReader(`{"schema":"olm.package","name":"a"}`), "x", fbc.DefaultLimits(), found)
	}
	k := &known{ref: "r/a@" + digest, unpacked: time.Unix(5, 0), succeeded: 1}
	if k.content, err = contents.Ensure(t.Context(), digest, documents); err != nil {
		t.Fatal(err)
	}
	if k.index, err = indexes.Update(t.Context(), "a", digest, documents); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(&Controller{known: map[string]*known{"a": k}}); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, family := range families {
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		got[family.GetName()] = fmt.Sprint(strings.ToLower(family.GetType().String()), labels, family.GetHelp())
	}
	for _, one := range metrics.Catalogue() {
		if strings.HasPrefix(one.Name, "penstock_catalog_") {
			labels := slices.Clone(one.Labels)
			slices.Sort(labels)
			want[one.Name] = fmt.Sprint(one.Type, labels, one.Help)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
