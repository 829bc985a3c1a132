package fbc

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// sharedData has real catalogs. It is not part of the repository.
const sharedData = "../../../../shared/data/catalogs"

// TestOperatorHub: a catalog as large as OperatorHub's can be read.
func TestOperatorHub(t *testing.T) {
	file, err := os.Open(filepath.Join(sharedData, "operatorhub.jsonl.zst"))
	if os.IsNotExist(err) {
		t.Skip("no shared data")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	counts, longest := map[string]int{}, 0
	if err := Read(t.Context(), file, "operatorhub", DefaultLimits(), func(d *Document) error {
		counts[d.Schema]++
		longest = max(longest, len(d.JSON))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(counts, longest), "map[olm.bundle:5593 olm.channel:527 olm.package:312] 485159"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestSmall reads a directory of YAML files, the form in which catalogs are written.
func TestSmall(t *testing.T) {
	if _, err := os.Stat(sharedData); os.IsNotExist(err) {
		t.Skip("no shared data")
	}
	config, err := LoadDirectory(t.Context(), os.DirFS(filepath.Join(sharedData, "small")), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(len(config.Packages), len(config.Channels), len(config.Bundles), len(config.Deprecations), len(config.Others))
	if want := "11 27 121 3 0"; got != want {
		t.Errorf("packages, channels, bundles, deprecations, others: %s, want %s", got, want)
	}
	for i := range config.Bundles {
		if _, err := config.Bundles[i].Version(); err != nil {
			t.Error(err)
		}
	}
}
