package store

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// archivePath is the archive of real versions, outside of the repository:
// <operator>/<version>/objects.ndjson.
const archivePath = "../../../../shared/data/history.tar.xz"

type release struct {
	operator, version string
	// number is the revision number, starting at 1.
	number  int
	objects []manifest.Object
}

func (r release) lines() []byte {
	var out bytes.Buffer
	for _, object := range r.objects {
		out.Write(object.JSON)
		out.WriteByte('\n')
	}
	return out.Bytes()
}

// histories returns the versions of each operator, oldest first.
func histories(t *testing.T, digester manifest.Digester) [][]release {
	t.Helper()
	if _, err := os.Stat(archivePath); err != nil {
		t.Skipf("the versions of real operators are not beside the repository: %v", err)
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-xJf", archivePath, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("unpacking %s: %v: %s", archivePath, err, out)
	}
	var all [][]release
	for _, operator := range names(t, dir) {
		versions := names(t, filepath.Join(dir, operator))
		slices.SortFunc(versions, func(a, b string) int {
			order, err := version.MustParseGeneric(a).Compare(b)
			if err != nil {
				t.Fatal(err)
			}
			return order
		})
		var history []release
		for i, v := range versions {
			one := release{operator: operator, version: v, number: i + 1}
			raw, err := os.ReadFile(filepath.Join(dir, operator, v, "objects.ndjson"))
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.Lines(raw) {
				object, err := digester.FromJSON(bytes.TrimSpace(line))
				if err != nil {
					t.Fatal(fmt.Errorf("%s %s: %w", operator, v, err))
				}
				one.objects = append(one.objects, object)
			}
			history = append(history, one)
		}
		all = append(all, history)
	}
	return all
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}
