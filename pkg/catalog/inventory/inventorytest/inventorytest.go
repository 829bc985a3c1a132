// Package inventorytest creates catalogs for tests of inventory readers.
package inventorytest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/index"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
)

// Of returns a complete inventory with these catalogs.
func Of(catalogs ...inventory.Catalog) *inventory.Inventory {
	made := inventory.New(clock.RealClock{})
	for _, one := range catalogs {
		made.Put(one)
	}
	made.MarkComplete()
	return made
}

// FromText returns a catalog from JSON or YAML documents.
func FromText(t testing.TB, name, content string) inventory.Catalog {
	t.Helper()
	return indexed(t, name, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(content))), func(ctx context.Context, found func(*fbc.Document) error) error {
		return fbc.Read(ctx, strings.NewReader(content), name, fbc.DefaultLimits(), found)
	})
}

// FromFile returns a catalog from a file, which may be compressed. It skips the test if the file
// does not exist, because shared files are not available everywhere.
func FromFile(t testing.TB, name, file string) inventory.Catalog {
	t.Helper()
	if _, err := os.Stat(file); os.IsNotExist(err) {
		t.Skipf("no %s", file)
	}
	return indexed(t, name, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(file))), func(ctx context.Context, found func(*fbc.Document) error) error {
		content, err := os.Open(file)
		if err != nil {
			return err
		}
		defer content.Close()
		return fbc.Read(ctx, content, file, fbc.DefaultLimits(), found)
	})
}

// FromDirectory returns a catalog from a folder.
func FromDirectory(t testing.TB, name string, folder fs.FS) inventory.Catalog {
	t.Helper()
	return indexed(t, name, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(name))), func(ctx context.Context, found func(*fbc.Document) error) error {
		return fbc.ReadDirectory(ctx, folder, fbc.DefaultLimits(), found)
	})
}

func indexed(t testing.TB, name, digest string, documents fbc.Documents) inventory.Catalog {
	t.Helper()
	store, err := index.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	found, err := store.Update(t.Context(), name, digest, documents)
	if err != nil {
		t.Fatal(err)
	}
	return inventory.Catalog{Name: name, Index: found, Labels: map[string]string{"olm.operatorframework.io/metadata.name": name}}
}
