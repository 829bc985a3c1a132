package metrics

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	catalogue "github.com/penstock-project/penstock/pkg/metrics"
)

const installedExtension = `
metadata: {name: argocd}
spec: {source: {sourceType: Catalog, catalog: {packageName: argocd-operator}}}
status:
  install: {bundle: {name: argocd.v1.0.0, version: 1.0.0}}
  conditions:
  - {type: Ready, status: "False", reason: RollingOut}
  - {type: Installed, status: "True", reason: Succeeded}
`

func startExtensions(t *testing.T, registry prometheus.Registerer) *ExtensionMetrics {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(installedExtension), &object.Object); err != nil {
		t.Fatal(err)
	}
	young := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "young"}}}
	m, err := AddExtensions(registry, func() []*unstructured.Unstructured { return []*unstructured.Unstructured{object, young} })
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestExtensions: conditions are read at each scrape, also for an extension without conditions.
func TestExtensions(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := startExtensions(t, registry)
	m.Resolved(2*time.Millisecond, nil)
	m.Pulled(time.Second, errors.New("no route"))
	want := `
# HELP clusterextension_condition 1 for the present status and reason of a condition of a ClusterExtension.
# TYPE clusterextension_condition gauge
clusterextension_condition{condition="Installed",name="argocd",reason="Succeeded",status="True"} 1
clusterextension_condition{condition="Ready",name="argocd",reason="RollingOut",status="False"} 1
# HELP clusterextension_info 1 for each ClusterExtension. package is empty when the source is no catalog, version when nothing is installed.
# TYPE clusterextension_info gauge
clusterextension_info{name="argocd",package="argocd-operator",source="Catalog",version="1.0.0"} 1
clusterextension_info{name="young",package="",source="",version=""} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), catalogue.ExtensionInfo, catalogue.ExtensionCondition); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]int{catalogue.ExtensionResolves: 1, catalogue.ExtensionPulls: 1} {
		if got, err := testutil.GatherAndCount(registry, name); err != nil || got != want {
			t.Errorf("%s has %d series, want %d: %v", name, got, want, err)
		}
	}
}
