package accepted

import (
	"bufio"
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// archive has versions of real operators, beside the repository: <operator>/<version>/objects.ndjson.
const archive = "../../../../shared/data/history.tar.xz"

// TestHistory counts which share of what upgrades of real operators change is known to be
// accepted, and says why the rest is not. Unpacking and reading them takes a minute.
func TestHistory(t *testing.T) {
	if os.Getenv("FULL") != "1" {
		t.Skip("FULL=1 counts")
	}
	if _, err := os.Stat(archive); err != nil {
		t.Skipf("the versions of real operators are not beside the repository: %v", err)
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xJf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Skipf("unpacking the versions of real operators: %v: %s", err, out)
	}
	all, known := 0, 0
	for _, operator := range entries(t, dir) {
		updates, sure, why := 0, 0, map[string]int{}
		var before map[manifest.ID]manifest.Object
		for _, version := range sorted(entries(t, filepath.Join(dir, operator))) {
			after := objectsOf(t, filepath.Join(dir, operator, version, "objects.ndjson"))
			for id, object := range after {
				old, both := before[id]
				if !both || old.Digest == object.Digest {
					continue
				}
				updates++
				reason := "version: is another one"
				if old.Version == object.Version {
					reason = Judge(object.Ref, old.JSON, object.JSON).Unknown
				}
				if reason == "" {
					sure++
				} else {
					path, _, _ := strings.Cut(reason, ": ")
					why[id.Kind+" "+path]++
				}
			}
			before = after
		}
		all, known = all+updates, known+sure
		t.Logf("%-32s %4d updates, %4d known (%d%%)", operator, updates, sure, 100*sure/max(updates, 1))
		for _, reason := range slices.SortedFunc(maps.Keys(why), func(a, b string) int { return why[b] - why[a] })[:min(4, len(why))] {
			t.Logf("    %4d %s", why[reason], reason)
		}
	}
	t.Logf("%d of %d updates are known to be accepted", known, all)
	if known == 0 {
		t.Error("nothing is known to be accepted")
	}
}

func entries(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range found {
		names = append(names, entry.Name())
	}
	return names
}

// sorted orders versions, 1.9.0 before 1.10.0.
func sorted(versions []string) []string {
	slices.SortFunc(versions, func(a, b string) int {
		order, err := version.MustParseGeneric(a).Compare(b)
		if err != nil {
			return strings.Compare(a, b)
		}
		return order
	})
	return versions
}

func objectsOf(t *testing.T, file string) map[manifest.ID]manifest.Object {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	digester := manifest.Digester{SecretKey: []byte("key of the test")}
	objects := map[manifest.ID]manifest.Object{}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		object, err := digester.FromJSON(lines.Bytes())
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		objects[object.ID] = object
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return objects
}
