//go:build integration

package server_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	catalogue "github.com/penstock-project/penstock/pkg/metrics"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// emptyPanels of the dashboard are about what this run does not have: pulls of extensions,
// contests, plans that were computed, and what comes later in a term. TestRules of package metrics compares what
// they ask for with what there is.
func emptyPanels() string {
	return strings.Join([]string{
		"Resolving and pulling, 95 %", "Contests, per hour", "Waiting for an approval", "Items by state", "Largest extensions", "Reviews of webhooks", "Records",
	}, "|")
}

// extension asks for a package of a catalog while another one cannot be read, so that nothing
// is pulled.
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
				return fmt.Errorf("it is not exposed, and the extension is %s", m.Kubectl("get", "clusterextension", "lamp", "-o", "jsonpath={.status.conditions}"))
			}
			return nil
		})
	}
}

// dashboard: every query of the dashboard is evaluated by Prometheus' own engine, on two
// scrapes of the program and of kube-apiserver, and gives something.
func (m monitored) dashboard(t *testing.T) {
	m.t = t
	dir := t.TempDir()
	content, err := os.ReadFile("../../artifacts/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"run", ".", "dashboard", filepath.Join(dir, "dashboard.json"), emptyPanels()}
	write(t, args[3], content)
	for _, name := range []string{"first", "second"} {
		var out strings.Builder
		for series, value := range m.scrape() {
			out.WriteString(series + " " + value + "\n")
		}
		for series, value := range samples(m.In(t).MustKubectl("get", "--raw", "/metrics")) {
			if strings.HasPrefix(series, "aggregator_") {
				out.WriteString(series + " " + value + "\n")
			}
		}
		path := filepath.Join(dir, name)
		write(t, path, []byte(out.String()))
		args = append(args, path)
	}
	// A module of its own, and compiled already by hack/verify-rules.sh.
	command := exec.Command("go", args...)
	command.Dir = "../../hack/tools/rules"
	command.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off", "CGO_ENABLED=0")
	if found, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, found)
	}
}
