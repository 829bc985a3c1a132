package diff

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/note"
	"github.com/penstock-project/penstock/pkg/source/bundle"
)

// TestMeasured: docs/reference/notes.md has the number of upgrades of real operators that are held,
// by reason.
func TestMeasured(t *testing.T) {
	all := history(t)
	all["argocd-operator, as bundles"] = bundles(t)
	upgrades, held, by := 0, 0, map[string]int{}
	for _, operator := range slices.Sorted(maps.Keys(all)) {
		for i := 1; i < len(all[operator]); i++ {
			reasons := holding(t, all[operator][i-1].objects, all[operator][i].objects)
			for _, reason := range reasons {
				by[reason]++
			}
			upgrades++
			if len(reasons) > 0 {
				held++
			}
		}
	}
	var why []string
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		why = append(why, fmt.Sprintf("%s %d", reason, by[reason]))
	}
	want := fmt.Sprintf("%d of %d upgrades: %s.", held, upgrades, strings.Join(why, ", "))
	content, err := os.ReadFile("../../docs/reference/notes.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), "\n"+want+"\n") {
		t.Errorf("docs/reference/notes.md needs this line:\n%s", want)
	}
}

// holding returns the reasons of the notes that hold an upgrade by the default list, without
// duplicates.
func holding(t *testing.T, old, new []manifest.Object) []string {
	t.Helper()
	report, on := Revisions(t.Context(), old, new, Options{Schema: difftest.Builtin(t)}), note.DefaultHoldOn()
	var reasons []string
	for _, one := range report.Notes {
		if on.Holds(one.Reason, one.Severity) && !slices.Contains(reasons, one.Reason) {
			reasons = append(reasons, one.Reason)
		}
	}
	if report.Truncated.Objects+report.Truncated.Notes > 0 {
		reasons = append(reasons, note.Incomplete)
	}
	return reasons
}

// bundles returns the bundles of an operator, as Penstock renders them.
func bundles(t *testing.T) []release {
	t.Helper()
	folder := sharedData + "/bundles/argocd-operator"
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Skipf("no bundles beside the repository: %v", err)
	}
	var releases []release
	for _, entry := range entries {
		renderer := bundle.Renderer{Options: bundle.Options{InstallNamespace: "argocd", Certificates: bundle.CertManager}}
		rendered, err := renderer.Render(t.Context(), os.DirFS(folder+"/"+entry.Name()))
		if err != nil {
			t.Fatalf("%s: %v", entry.Name(), err)
		}
		one := release{version: entry.Name()}
		for _, phase := range rendered.Phases {
			for _, object := range phase.Objects {
				sealed, err := difftest.Digester().FromJSON(object.JSON)
				if err != nil {
					t.Fatal(err)
				}
				one.objects = append(one.objects, sealed)
			}
		}
		releases = append(releases, one)
	}
	slices.SortFunc(releases, func(a, b release) int { return compareVersions(a.version, b.version) })
	return releases
}
