package content

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"github.com/penstock-project/penstock/pkg/catalog/digestfolder"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

const catalog = `---
schema: olm.package
name: a
defaultChannel: stable
---
schema: olm.channel
package: a
name: stable
entries: [{name: a.v1}]
---
{"schema": "olm.bundle", "package": "a", "name": "a.v1", "image": "r/a:1", "big": 12345678901234567890, "html": "<&>"}
---
schema: olm.package
name: b
---
{"schema": "other", "name": "a.v1", "package": "b"}
---
{"name": "nothing"}
`

func documents(text string) fbc.Documents {
	return func(ctx context.Context, found func(*fbc.Document) error) error {
		return fbc.Read(ctx, strings.NewReader(text), "catalog.yaml", fbc.DefaultLimits(), found)
	}
}

const (
	one = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	two = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
)

func read(t *testing.T, from io.Reader) string {
	t.Helper()
	all, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

func TestContent(t *testing.T) {
	store, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.Ensure(t.Context(), one, documents(catalog))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(read(t, c.All()), "\n")
	if len(lines) != 7 || lines[6] != "" {
		t.Fatalf("the content has the lines %q", lines)
	}
	if !strings.Contains(lines[2], "12345678901234567890") {
		t.Errorf("a number is another one: %s", lines[2])
	}
	unpacked, err := gzip.NewReader(c.Compressed())
	if err != nil {
		t.Fatal(err)
	}
	if read(t, unpacked) != strings.Join(lines, "") {
		t.Error("the compressed content is another one")
	}
	for name, test := range map[string]struct {
		schema, pkg, name string
		want              []int
	}{
		"Schema":             {schema: "olm.package", want: []int{0, 3}},
		"Package":            {pkg: "a", want: []int{1, 2}},
		"Name":               {name: "a.v1", want: []int{2, 4}},
		"All":                {schema: "olm.bundle", pkg: "a", name: "a.v1", want: []int{2}},
		"PackageByName":      {schema: "olm.package", name: "b", want: []int{3}},
		"NothingSuch":        {schema: "olm.bundle", pkg: "b"},
		"WithoutSchema":      {name: "nothing"},
		"PackageIsNoPackage": {schema: "olm.package", pkg: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := c.Select(test.schema, test.pkg, test.name)
			if err != nil {
				t.Fatal(err)
			}
			var want strings.Builder
			for _, line := range test.want {
				want.WriteString(lines[line])
			}
			if got := read(t, found); got != want.String() {
				t.Errorf("found %q, want %q", got, want.String())
			}
		})
	}
}

// TestAsItIs: JSON stays unchanged: the order of keys, numbers and characters.
func TestAsItIs(t *testing.T) {
	store, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := store.Ensure(t.Context(), one, documents("{ \"schema\" : \"x\",\n \"big\": 12345678901234567890, \"a\": \"< & \\u003e\"}"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, c.All()), "{\"schema\":\"x\",\"big\":12345678901234567890,\"a\":\"< & \\u003e\"}\n"; got != want {
		t.Errorf("the content is %q, want %q", got, want)
	}
}

func TestStore(t *testing.T) {
	root := t.TempDir()
	store, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	first, err := store.Ensure(t.Context(), one, documents(catalog))
	if err != nil {
		t.Fatal(err)
	}
	// Existing content is not built again.
	if _, err := store.Ensure(t.Context(), one, func(context.Context, func(*fbc.Document) error) error { return errors.New("read again") }); err != nil {
		t.Error(err)
	}
	// Unreadable content leaves no files.
	var where *fbc.Error
	if _, err := store.Ensure(t.Context(), two, documents("{\"schema\": \"x\"}\n{\"schema\": \"y\", \"z\": nul}\n")); !errors.As(err, &where) || where.Line != 2 {
		t.Errorf("the error is %v, want one that names line 2", err)
	}
	if store.Find(two) != nil {
		t.Error("a content that cannot be read is there")
	}
	// A restart finds the content, and removes incomplete folders.
	if err := os.Mkdir(filepath.Join(root, digestfolder.Unfinished+"x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if store, err = Open(root); err != nil || store.Find(one) == nil {
		t.Fatalf("after a restart the content is %v: %v", store.Find(one), err)
	}
	if entries, _ := os.ReadDir(root); len(entries) != 1 {
		t.Errorf("the folder has %v", entries)
	}
	// A truncated content does not count.
	short := filepath.Join(store.root.Folder(one), plainFile)
	content, err := os.ReadFile(short)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Ensure(t.Context(), two, documents(catalog)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(store.root.Folder(two), plainFile), content[:10], 0o600); err != nil {
		t.Fatal(err)
	}
	if store.Find(two) != nil {
		t.Error("a content that is cut short is taken for whole")
	}
	// A reader can read content even after Collect removed it.
	if err := store.Collect([]string{two}); err != nil {
		t.Fatal(err)
	}
	if store.Find(one) != nil {
		t.Error("what nobody names is still there")
	}
	if read(t, first.All()) != string(content) {
		t.Error("what was collected cannot be read by who has it")
	}
}
