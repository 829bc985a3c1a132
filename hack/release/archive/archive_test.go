package archive_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/hack/release/archive"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := archive.Folder(dir, "inner")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, archive.File{Name: "program", Path: filepath.Join(dir, "b"), Program: true})
	var sums []string
	for _, target := range []string{filepath.Join(t.TempDir(), "x.tar.gz"), filepath.Join(t.TempDir(), "x.tar.gz")} {
		if err := archive.Write(target, files, time.Unix(1_700_000_000, 0)); err != nil {
			t.Fatal(err)
		}
		sum, err := archive.Sum(target)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum)
		found, err := archive.List(target)
		want := map[string]fs.FileMode{"inner/a": 0o644, "inner/b": 0o644, "program": 0o755}
		if diff := cmp.Diff(want, found); err != nil || diff != "" {
			t.Errorf("the archive has (-want +got):\n%s%v", diff, err)
		}
		all, err := archive.Sums(filepath.Dir(target), func(name string) bool { return name == "left.out" })
		if want := sum + "  x.tar.gz\n"; err != nil || all != want {
			t.Errorf("the checksums are %q, want %q: %v", all, want, err)
		}
	}
	if sums[0] != sums[1] {
		t.Error("the same files made another archive")
	}
}
