//go:build integration

package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	catalogue "github.com/penstock-project/penstock/pkg/metrics"
	"github.com/penstock-project/penstock/test/framework/promtool"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// emptyPanels are panels of the dashboard without data in this run: pulls of extensions, contests,
// computed plans, and checks that come later in a term. TestRules of package metrics compares their
// queries with the existing metrics.
var emptyPanels = []string{
	"Resolving and pulling, 95 %", "Contests, per hour", "Waiting for an approval", "Items by state", "Largest extensions", "Reviews of webhooks", "Records",
}

// extension creates an extension while another catalog cannot be read, so nothing is pulled.
func (m monitored) extension(images *registry.Registry) {
	m.t.Helper()
	folder := m.t.TempDir()
	write(m.t, filepath.Join(folder, "catalog.json"), []byte(lampCatalog))
	served(m.t, m.Cluster, images.Push(m.t, folder, "c/lamp"))
	wanted(m.t, m.Cluster, "lamp")
	m.sample(`penstock_catalog_packages{catalog="lamp"}`, "1")
	m.sample(`clusterextension_info{name="lamp",package="lamp",source="Catalog",version=""}`, "1")
	for _, name := range []string{catalogue.ExtensionCondition, catalogue.ExtensionResolves + "_bucket"} {
		eventually(m.t, name, func() error {
			if len(m.family(name)) == 0 {
				return fmt.Errorf("the metric is missing, and the extension has the conditions %s", m.Kubectl("get", "clusterextension", "lamp", "-o", "jsonpath={.status.conditions}"))
			}
			return nil
		})
	}
}

// dashboard: promtool evaluates every query of the dashboard on two scrapes of the program and of
// kube-apiserver. Each query returns data.
func (m monitored) dashboard(t *testing.T) {
	m.t = t
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	content, err := os.ReadFile("../../artifacts/monitoring/dashboard.json")
	if err == nil {
		err = json.Unmarshal(content, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	queries, series := map[string]bool{}, map[string]string{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			// $__rate_interval is a variable of Grafana.
			queries[strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")] = slices.Contains(emptyPanels, panel.Title)
		}
	}
	for _, before := range []string{"", "_ "} {
		found := m.scrape()
		for name, value := range samples(m.In(t).MustKubectl("get", "--raw", "/metrics")) {
			if strings.HasPrefix(name, "aggregator_") {
				found[name] = value
			}
		}
		for name, value := range found {
			if series[name] == "" {
				series[name] = before + value
			} else {
				series[name] += " " + value
			}
		}
	}
	promtool.Check(t, "../..", series, "1m", queries)
}
