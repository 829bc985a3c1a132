package diff

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/manifest"
)

var update = flag.Bool("update", false, "write golden files")

// TestGolden shows the output for a few real upgrades.
func TestGolden(t *testing.T) {
	upgrades := map[string]struct{ operator, from, to string }{
		"cert-manager": {"cert-manager", "1.18.4", "1.19.5"},
		"strimzi":      {"archive-strimzi-kafka-operator", "0.22.1", "0.23.0"},
		"argocd":       {"argocd-operator", "0.15.0", "0.16.0"},
	}
	releases := history(t)
	for name, upgrade := range upgrades {
		t.Run(name, func(t *testing.T) {
			objects := func(version string) []manifest.Object {
				for _, r := range releases[upgrade.operator] {
					if r.version == version {
						return r.objects
					}
				}
				t.Skipf("no %s %s in the history", upgrade.operator, version)
				return nil
			}
			report := Revisions(t.Context(), objects(upgrade.from), objects(upgrade.to), Options{
				Schema: difftest.Builtin(t),
				Limits: Limits{UnifiedBytes: 1200, TotalUnifiedBytes: 8000, TotalNotes: 40},
			})
			var got bytes.Buffer
			if err := report.Print(&got); err != nil {
				t.Fatal(err)
			}
			golden(t, name+".txt", got.Bytes())
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run the test with -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: -want, +got:\n%s", file, diff)
	}
}

// BenchmarkRevisions: a diff between adjacent releases of a real operator, a diff of 46 objects
// (the median number) that all changed, and a diff of 1,000 objects of which one in ten changed.
func BenchmarkRevisions(b *testing.B) {
	types := difftest.Builtin(b)
	releases := history(b)
	run := func(name string, old, new []manifest.Object) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				report := Revisions(b.Context(), old, new, Options{Schema: types})
				if report.Summary.Changed == 0 {
					b.Fatal("nothing changed")
				}
			}
		})
	}
	certManager := releases["cert-manager"]
	i := slices.IndexFunc(certManager, func(r release) bool { return r.version == "1.19.5" })
	run("46 objects with 6 large definitions", certManager[i-1].objects[:46], certManager[i].objects[:46])
	run("46 small objects", crowd(b, 46, "v1"), crowd(b, 46, "v2"))
	old, new := crowd(b, 1000, "v1"), crowd(b, 1000, "v2")
	run("1000 small objects", old, new)
	mostly := slices.Clone(old)
	for i := 0; i < len(mostly); i += 10 {
		mostly[i] = new[i]
	}
	run("1000 small objects, 100 changed", old, mostly)
}
