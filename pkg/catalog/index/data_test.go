package index

import (
	"context"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
	"github.com/penstock-project/penstock/pkg/resolve"
)

// TestSameAnswers: resolution and the upgrade graph are the same from an index as from the catalog.
func TestSameAnswers(t *testing.T) {
	const small = "../../../../shared/data/catalogs/small"
	if _, err := os.Stat(small); os.IsNotExist(err) {
		t.Skip("no shared data")
	}
	whole, err := fbc.LoadDirectory(t.Context(), os.DirFS(small), fbc.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	i := updated(t, opened(t, t.TempDir()), "small", 1, func(ctx context.Context, found func(*fbc.Document) error) error {
		return fbc.ReadDirectory(ctx, os.DirFS(small), fbc.DefaultLimits(), found)
	})
	byPackage := whole.ByPackage()
	if len(byPackage) != len(i.Packages()) {
		t.Errorf("the index has %d packages, the catalog %d", len(i.Packages()), len(byPackage))
	}
	for name, config := range byPackage {
		kept, err := i.Package(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(graph.New(config, nil).Draw(), graph.New(kept, nil).Draw()); diff != "" {
			t.Errorf("%s: (-catalog +index)\n%s", name, diff)
		}
		if before, after := answer(name, config), answer(name, kept); before != after {
			t.Errorf("%s: the catalog answers %s, the index %s", name, before, after)
		}
	}
}

func answer(name string, config *fbc.Config) string {
	resolution, err := resolve.Resolve(resolve.Request{Package: name}, []resolve.Catalog{{Name: "c", Config: config}})
	if err != nil {
		return err.Error()
	}
	return resolution.Bundle.Name + ": " + resolution.Reason
}
