package resolve

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
)

// TestOperatorHub: in a catalog of OperatorHub's size, every package resolves. The resolver takes
// every step of an upgrade path to the newest version if that step's version is requested. It needs
// FULL=1.
func TestOperatorHub(t *testing.T) {
	if os.Getenv("FULL") != "1" {
		t.Skip("set FULL=1: half a minute")
	}
	file, err := os.Open(filepath.Join(sharedData, "operatorhub.jsonl.zst"))
	if os.IsNotExist(err) {
		t.Skip("no shared data")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	catalog, err := fbc.Load(t.Context(), file, "operatorhub", fbc.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	packages, steps := 0, 0
	for name, config := range catalog.ByPackage() {
		catalogs := []Catalog{{Name: "operatorhub", Config: config}}
		newest, err := Resolve(Request{Package: name}, catalogs)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		packages++
		g := graph.New(config, nil)
		for _, node := range g.Nodes() {
			at := &Installed{Name: node.Bundle.Name, Version: node.Version.String()}
			path := g.Path(graph.Installed{Name: at.Name, Version: node.Version}, newest.Bundle.Name)
			if len(path) == 0 {
				continue
			}
			// The rest of the path equals the path of the version after the first step.
			next := g.Node(path[0].Bundle)
			got, err := Resolve(Request{Package: name, Version: "=" + next.Version.Version.String(), Installed: at}, catalogs)
			if err != nil || got.Version.Version.Compare(next.Version.Version) != 0 {
				t.Errorf("%s: from %s to %s: %v, %v", name, at.Version, next.Bundle.Name, got, err)
			}
			steps++
		}
	}
	t.Logf("%d packages, %d steps", packages, steps)
}
