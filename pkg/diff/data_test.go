package diff

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// sharedData is the folder of real bundles and manifests, outside the repository.
const sharedData = "../../../shared/data"

type release struct {
	operator, version string
	objects           []manifest.Object
}

// history returns the real releases in the archive, by operator, in order.
func history(t testing.TB) map[string][]release {
	t.Helper()
	archive := filepath.Join(sharedData, "history.tar.xz")
	if _, err := os.Stat(archive); err != nil {
		t.Skipf("no history of real operators: %v", err)
	}
	for _, program := range []string{"tar", "xz"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("unpacking the history of real operators: %v", err)
		}
	}
	folder := t.TempDir()
	if output, err := exec.Command("tar", "-xJf", archive, "-C", folder).CombinedOutput(); err != nil {
		t.Fatalf("unpacking %s: %v\n%s", archive, err, output)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "*", "objects.ndjson"))
	if err != nil || len(files) == 0 {
		t.Fatalf("nothing in %s: %v", archive, err)
	}
	releases := make(map[string][]release)
	for _, file := range files {
		version := filepath.Base(filepath.Dir(file))
		operator := filepath.Base(filepath.Dir(filepath.Dir(file)))
		releases[operator] = append(releases[operator], release{operator, version, readLines(t, file)})
	}
	for _, list := range releases {
		slices.SortFunc(list, func(a, b release) int { return compareVersions(a.version, b.version) })
	}
	return releases
}

func readLines(t testing.TB, file string) []manifest.Object {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []manifest.Object
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		o, err := difftest.Digester().FromJSON(lines.Bytes())
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, o)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return objects
}

// compareVersions orders 1.9.0 before 1.10.0.
func compareVersions(a, b string) int {
	return slices.Compare(versionParts(a), versionParts(b))
}

func versionParts(version string) []int {
	var parts []int
	for _, part := range strings.FieldsFunc(version, func(r rune) bool { return r == '.' || r == '-' }) {
		number := 0
		for _, c := range strings.TrimLeft(part, "rc") {
			number = 10*number + int(c-'0')
		}
		parts = append(parts, number)
	}
	return parts
}

// folders returns the releases that are folders of YAML, in order.
func folders(t testing.TB, kind string) map[string][]release {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(sharedData, kind, "*", "*"))
	if err != nil || len(found) == 0 {
		t.Skipf("no %s beside the repository (%v)", kind, err)
	}
	releases := make(map[string][]release)
	for _, folder := range found {
		r := release{operator: filepath.Base(filepath.Dir(folder)), version: filepath.Base(folder)}
		err := filepath.WalkDir(folder, func(file string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(file) != ".yaml" || strings.Contains(file, "/metadata/") {
				return err
			}
			r.objects = append(r.objects, readYAML(t, file)...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		releases[r.operator] = append(releases[r.operator], r)
	}
	return releases
}

func readYAML(t testing.TB, file string) []manifest.Object {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var objects []manifest.Object
	for _, document := range strings.Split("\n"+string(content), "\n---") {
		data, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if string(data) == "null" {
			continue
		}
		o, err := difftest.Digester().FromJSON(data)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects = append(objects, o)
	}
	return objects
}

// TestRealVersions compares each real version with the previous one, and checks that the
// differences are complete and without noise. Applied to the old object, they give the new one;
// each difference that can be applied alone changes it. By default only every third version is
// compared; FULL=1 compares all.
func TestRealVersions(t *testing.T) {
	sources := map[string]func(testing.TB) map[string][]release{
		"history":   history,
		"bundles":   func(t testing.TB) map[string][]release { return folders(t, "bundles") },
		"manifests": func(t testing.TB) map[string][]release { return folders(t, "manifests") },
	}
	for name, source := range sources {
		t.Run(name, func(t *testing.T) {
			for operator, releases := range source(t) {
				if name == "history" && os.Getenv("FULL") != "1" {
					releases = everyThird(releases)
				}
				for i := 1; i < len(releases); i++ {
					old, new := releases[i-1], releases[i]
					t.Run(operator+"/"+old.version+".."+new.version, func(t *testing.T) { checkUpgrade(t, old.objects, new.objects) })
				}
			}
		})
	}
}

// everyThird returns every third release, including the first and the last.
func everyThird(releases []release) []release {
	var some []release
	for i, r := range releases {
		if i%3 == 0 || i == len(releases)-1 {
			some = append(some, r)
		}
	}
	return some
}

func checkUpgrade(t *testing.T, old, new []manifest.Object) {
	report := Revisions(t.Context(), old, new, Options{Schema: difftest.Builtin(t), Limits: unlimited()})
	back := Revisions(t.Context(), new, old, Options{Schema: difftest.Builtin(t), Limits: unlimited()})
	if report.Summary.Added != back.Summary.Removed || report.Summary.Changed != back.Summary.Changed || report.Summary.Unchanged != back.Summary.Unchanged {
		t.Errorf("there %+v, back %+v", report.Summary, back.Summary)
	}
	if !report.Truncated.IsZero() {
		t.Errorf("left out without limits: %s", report.Truncated)
	}
	types := schema.Layers(schema.NewDefinitions(new), schema.NewDefinitions(old), difftest.Builtin(t))
	before, after := byID(old), byID(new)
	fields, alone := 0, 0
	for _, change := range report.Changes {
		decoded := Compare(t.Context(), respelled(before[change.ID]), respelled(after[change.ID]), Options{Schema: types, Limits: unlimited()})
		folded := change.OnlyLabels
		change.Notes, decoded.Notes = nil, nil // notes on rights depend on the other objects
		change.OnlyLabels = ""                 // it depends on the selectors of other objects
		if diff := cmp.Diff(decoded, change); diff != "" {
			t.Errorf("%s: -of manifests in another spelling, +of canonical ones: %s", change.ID, diff)
		}
		if change.Kind != Changed {
			continue
		}
		checkChange(t, types, before[change.ID], after[change.ID], change)
		if folded != "" {
			checkFolded(t, change)
		}
		fields += len(change.Fields)
		if !change.IsSecret() {
			alone += checkNoise(t, types, before[change.ID], change)
		}
	}
	t.Logf("%s: %d fields change, %d were made alone", report.Summary, fields, alone)
}

func checkChange(t difftest.TB, types schema.Schema, old, new *manifest.Object, change Change) {
	t.Helper()
	if len(change.Fields) == 0 || change.Unified == "" || change.AddedLines+change.RemovedLines == 0 {
		t.Errorf("%s: %d fields, +%d/-%d lines; a change has some of both", change.ID, len(change.Fields), change.AddedLines, change.RemovedLines)
	}
	if old.IsSecret() {
		return
	}
	made := apply(t, old, change.Fields)
	made.Version = new.Version
	pair := nodes(t, types, made, new)
	if !tree.Equal(pair[0], pair[1]) {
		t.Errorf("%s: what the changes make of the old object is not the new one\n%s\n%s", change.ID, cmp.Diff(string(new.JSON), string(made.JSON)), change.Unified)
	}
	checkPatch(t, old, new, types, change)
	for _, field := range change.Fields {
		if field.Op == Replace && bytes.Equal(field.Old, field.New) {
			t.Errorf("%s: %s is noise: %s on both sides", change.ID, field.Path, field.Old)
		}
	}
}

// checkFolded checks that the one-line form of an object hides no change of another field.
func checkFolded(t difftest.TB, change Change) {
	t.Helper()
	for _, field := range change.Fields {
		if !strings.HasSuffix(field.Path, `.metadata.labels["app.kubernetes.io/version"]`) && !strings.HasSuffix(field.Path, `.metadata.labels["helm.sh/chart"]`) {
			t.Errorf("%s: is folded, and changes %s", change.ID, field.Path)
		}
	}
}

// TestFoldedVersions: in a real upgrade most objects are one line.
func TestFoldedVersions(t *testing.T) {
	releases := history(t)["cert-manager"]
	i := slices.IndexFunc(releases, func(r release) bool { return r.version == "1.20.3" })
	j := slices.IndexFunc(releases, func(r release) bool { return r.version == "1.18.4" })
	if i < 0 || j < 0 {
		t.Skip("no cert-manager 1.18.4 and 1.20.3 in the history")
	}
	report := Revisions(t.Context(), releases[j].objects, releases[i].objects, Options{Schema: difftest.Builtin(t)})
	folded := map[string]int{}
	for _, change := range report.Changes {
		folded[change.OnlyLabels]++
	}
	if n := folded["app.kubernetes.io/version v1.18.4 → v1.20.3"]; n < report.Summary.Changed/2 || len(folded) != 2 {
		t.Errorf("of %s objects: %v", report.Summary, folded)
	}
}
