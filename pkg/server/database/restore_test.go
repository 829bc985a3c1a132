package database

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// TestQuotaFor: a store that had a larger quota, or is full, can be restored and repaired. Both
// write to it.
func TestQuotaFor(t *testing.T) {
	usual := resource.MustParse(DefaultQuota)
	for name, tc := range map[string]struct{ size, want int64 }{
		"small": {size: 1 << 20, want: usual.Value()},
		"full":  {size: usual.Value(), want: 2 * usual.Value()},
		"large": {size: 6 << 30, want: 12 << 30},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "db")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(file, tc.size); err != nil { // a sparse file takes no room
				t.Fatal(err)
			}
			if got := quotaFor(file); got != tc.want {
				t.Errorf("got %d bytes for a database of %d, want %d", got, tc.size, tc.want)
			}
		})
	}
	if got := quotaFor(filepath.Join(t.TempDir(), "none")); got != usual.Value() {
		t.Errorf("got %d bytes for no database, want %d", got, usual.Value())
	}
}
