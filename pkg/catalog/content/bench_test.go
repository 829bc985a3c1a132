package content

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// hub returns the packed catalog of OperatorHub. It skips the test if the file does not exist.
func hub(t testing.TB) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "shared", "data", "catalogs", "operatorhub.jsonl.zst"))
	if err != nil {
		t.Skip("the catalog is not at hand")
	}
	return content
}

func BenchmarkBuild(b *testing.B) {
	packed := hub(b)
	for b.Loop() {
		store, err := Open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		c, err := store.Ensure(b.Context(), one, func(ctx context.Context, found func(*fbc.Document) error) error {
			return fbc.Read(ctx, bytes.NewReader(packed), "operatorhub", fbc.DefaultLimits(), found)
		})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(c.plainSize)/1e6, "plain-MB")
		b.ReportMetric(float64(c.compressedSize)/1e6, "gzip-MB")
		b.ReportMetric(float64(c.rows)/1e3, "table-kB")
	}
}

func BenchmarkSelect(b *testing.B) {
	packed := hub(b)
	store, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	c, err := store.Ensure(b.Context(), one, func(ctx context.Context, found func(*fbc.Document) error) error {
		return fbc.Read(ctx, bytes.NewReader(packed), "operatorhub", fbc.DefaultLimits(), found)
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		found, err := c.Select("olm.channel", "argocd-operator", "")
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, found); err != nil || n == 0 {
			b.Fatal(n, err)
		}
	}
}
