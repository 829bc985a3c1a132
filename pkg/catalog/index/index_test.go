package index

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/catalog/digestfolder"
	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/graph"
)

const lamp = `
{"schema":"olm.bundle","package":"lamp","name":"lamp.v1","image":"old","properties":[]}
{"schema":"olm.package","name":"lamp","defaultChannel":"stable","description":"# Lamp\n\n![x](y)\nGives light.\n","icon":{"base64data":"aGk=","mediatype":"image/png"}}
{"schema":"olm.channel","package":"lamp","name":"stable","entries":[{"name":"lamp.v1"},{"name":"lamp.v2","replaces":"lamp.v1"}]}
{"schema":"acme.io/other","package":"lamp"}
{"schema":"olm.package","name":"axe"}
{"schema":"olm.bundle","package":"lamp","name":"lamp.v1","image":"one","relatedImages":[{"name":"r","image":"s"}],"properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"1.0.0"}},{"type":"olm.gvk","value":{"group":"lamp.io","version":"v1","kind":"Lamp"}},{"type":"olm.csv.metadata","value":{"description":"long","installModes":[{"type":"OwnNamespace","supported":true}]}},{"type":"olm.bundle.object","value":{"data":"long"}}]}
{"schema":"olm.bundle","package":"lamp","name":"lamp.v2","image":"two","properties":[{"type":"olm.package","value":{"packageName":"lamp","version":"2.0.0"}}]}
{"schema":"olm.deprecations","package":"lamp","entries":[{"reference":{"schema":"olm.package"},"message":"gone"},{"reference":{"schema":"olm.bundle","name":"lamp.v2"},"message":"broken"}]}
`

func digest(n int) string { return fmt.Sprintf("sha256:%064x", n) }

func documents(content string) fbc.Documents {
	return func(ctx context.Context, found func(*fbc.Document) error) error {
		return fbc.Read(ctx, strings.NewReader(content), "c", fbc.DefaultLimits(), found)
	}
}

// never is for an index that must exist already.
func never(context.Context, func(*fbc.Document) error) error {
	return errors.New("the catalog was read again")
}

func opened(t *testing.T, root string) *Store {
	t.Helper()
	store, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func updated(t *testing.T, store *Store, catalog string, n int, read fbc.Documents) *Index {
	t.Helper()
	found, err := store.Update(t.Context(), catalog, digest(n), read)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestIndex: an index returns the written data, condensed for the resolver.
func TestIndex(t *testing.T) {
	i := updated(t, opened(t, t.TempDir()), "c", 1, documents(lamp))
	gone, broken := "gone", "broken"
	want := []Summary{
		{Name: "axe"},
		{
			Name: "lamp", DefaultChannel: "stable", Latest: "1.0.0", Bundles: 2, Deprecation: &gone, Description: "Gives light.",
			Channels: []Channel{{Name: "stable", Latest: "1.0.0"}},
			Versions: []Version{
				{Version: "2.0.0", Channels: []string{"stable"}, Deprecation: &broken},
				{Version: "1.0.0", Channels: []string{"stable"}, Unsupported: "cannot watch all namespaces: supports OwnNamespace"},
			},
			Kinds: []metav1.GroupVersionKind{{Group: "lamp.io", Version: "v1", Kind: "Lamp"}},
		},
	}
	if diff := cmp.Diff(want, i.Packages(), cmpopts.IgnoreFields(Summary{}, "Package", "Icon", "Digest", "Bytes")); diff != "" {
		t.Errorf("table: (-want +got)\n%s", diff)
	}
	config, err := i.Package("lamp")
	if err != nil {
		t.Fatal(err)
	}
	first := config.Bundles[0]
	if first.Image != "one" || len(first.RelatedImages) != 0 || len(first.Properties) != 3 || string(first.Properties[2].Value) != `{"installModes":[{"type":"OwnNamespace","supported":true}]}` {
		t.Errorf("bundle: %+v", first)
	}
	if got := graph.Unsupported(&first); got != "cannot watch all namespaces: supports OwnNamespace" {
		t.Errorf("unsupported: %q", got)
	}
	if len(config.Packages) != 1 || config.Packages[0].Icon != nil || len(config.Channels) != 1 || len(config.Deprecations) != 1 || len(config.Others) != 0 {
		t.Errorf("package: %+v", config)
	}
	if icon, err := i.Icon("lamp"); err != nil || string(icon.Data) != "hi" {
		t.Errorf("icon: %+v, %v", icon, err)
	}
	for _, name := range []string{"axe", "none"} {
		if icon, err := i.Icon(name); icon != nil || err != nil {
			t.Errorf("icon of %s: %+v, %v", name, icon, err)
		}
	}
	if config, err := i.Package("none"); config != nil || err != nil {
		t.Errorf("a package of nobody: %+v, %v", config, err)
	}
}

// TestRestart: indexes survive a restart, and incomplete ones are removed.
func TestRestart(t *testing.T) {
	root := t.TempDir()
	updated(t, opened(t, root), "c", 1, documents(lamp))
	if err := os.Mkdir(filepath.Join(root, digestfolder.Unfinished+"x"), 0o700); err != nil {
		t.Fatal(err)
	}
	store := opened(t, root)
	if found := store.Current("c"); found == nil || found.Digest() != digest(1) {
		t.Errorf("after a restart the catalog uses %+v", found)
	}
	if left, err := filepath.Glob(filepath.Join(root, digestfolder.Unfinished+"*")); err != nil || len(left) > 0 {
		t.Errorf("half-built indexes stay: %v, %v", left, err)
	}
	updated(t, store, "c", 1, never)
	updated(t, store, "another", 1, never)
	if diff := cmp.Diff([]string{"another", "c"}, store.Catalogs()); diff != "" {
		t.Error(diff)
	}
}

// TestFailedUpdate: a catalog keeps its index if the next one cannot be built.
func TestFailedUpdate(t *testing.T) {
	root := t.TempDir()
	store := opened(t, root)
	updated(t, store, "c", 1, documents(lamp))
	for name, content := range map[string]string{"cut off": lamp + `{"schema"`, "a wrong bundle": lamp + `{"schema":"olm.bundle","package":"p","name":"b","properties":7}`} {
		if _, err := store.Update(t.Context(), "c", digest(2), documents(content)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, at := range []*Store{store, opened(t, root)} {
		if found := at.Current("c"); found == nil || found.Digest() != digest(1) {
			t.Errorf("the catalog uses %+v", found)
		}
	}
	entries, err := os.ReadDir(root)
	if err != nil || len(entries) != 2 {
		t.Errorf("left on disk: %v, %v", entries, err)
	}
}

// TestCollect: an index that no catalog uses is deleted, and its readers can continue.
func TestCollect(t *testing.T) {
	store := opened(t, t.TempDir())
	old := updated(t, store, "c", 1, documents(lamp))
	updated(t, store, "d", 2, documents(lamp))
	updated(t, store, "c", 3, documents(lamp))
	done, err := store.folders.Take(t.Context(), digest(2))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.Remove("d"), store.Remove("nobody")); err != nil {
		t.Fatal(err)
	}
	if n, err := store.Collect(); n != 1 || err != nil {
		t.Errorf("collected %d, %v; want 1: somebody is about to use another", n, err)
	}
	done()
	if n, err := store.Collect(); n != 1 || err != nil {
		t.Errorf("collected %d, %v; want 1", n, err)
	}
	if config, err := old.Package("lamp"); err != nil || len(config.Bundles) != 2 {
		t.Errorf("a reader of the old index: %v", err)
	}
	if config, err := store.Current("c").Package("lamp"); err != nil || len(config.Bundles) != 2 {
		t.Errorf("a reader of the new index: %v", err)
	}
	if _, err := os.Stat(store.folders.Folder(digest(1))); !os.IsNotExist(err) {
		t.Errorf("the old index is still there: %v", err)
	}
}

// TestDamaged: an index with changed bytes returns errors, never wrong data, and is built again.
func TestDamaged(t *testing.T) {
	for _, name := range []string{tableFile, packagesFile} {
		for kind, damage := range map[string]func([]byte) []byte{
			"cut off":      func(b []byte) []byte { return b[:len(b)/2] },
			"a bit":        func(b []byte) []byte { b[len(b)/2] ^= 1; return b },
			"nothing left": func([]byte) []byte { return nil },
		} {
			root := t.TempDir()
			updated(t, opened(t, root), "c", 1, documents(lamp))
			file := filepath.Join(root, format+strings.ReplaceAll(digest(1), ":", "-"), name)
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, damage(content), 0o600); err != nil {
				t.Fatal(err)
			}
			store := opened(t, root)
			if i := store.Current("c"); i != nil {
				if i.verify() == nil {
					t.Errorf("%s, %s: it is read as if it were whole", name, kind)
				}
			}
			again := updated(t, store, "c", 1, documents(lamp))
			if config, err := again.Package("lamp"); err != nil || len(config.Bundles) != 2 {
				t.Errorf("%s, %s: built again: %v", name, kind, err)
			}
		}
	}
}

// TestDamagedIcon: after damage to an icon the index is built again, as after damage to a package.
func TestDamagedIcon(t *testing.T) {
	store := opened(t, t.TempDir())
	i := updated(t, store, "c", 1, documents(lamp))
	file := filepath.Join(store.folders.Folder(digest(1)), packagesFile)
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	damaged := i.Find("lamp").Icon
	content[damaged.Offset+damaged.Size-1] ^= 1
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := i.Icon("lamp"); err == nil {
		t.Fatal("a damaged icon is read without an error")
	}
	if icon, err := updated(t, store, "c", 1, documents(lamp)).Icon("lamp"); err != nil || string(icon.Data) != "hi" {
		t.Errorf("made again, the icon is %+v, %v", icon, err)
	}
}

func TestUpdateRefuses(t *testing.T) {
	store := opened(t, t.TempDir())
	for _, c := range [][2]string{{"c", "latest"}, {"c", "sha256:../../x"}, {"../c", digest(1)}, {"", digest(1)}, {".", digest(1)}, {"build-x", digest(1)}} {
		if _, err := store.Update(t.Context(), c[0], c[1], documents(lamp)); err == nil {
			t.Errorf("catalog %q, digest %q: no error", c[0], c[1])
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Update(ctx, "c", digest(1), documents(lamp)); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %v", err)
	}
}

func TestFirstSentence(t *testing.T) {
	for markdown, want := range map[string]string{
		"": "", "## Overview\n\nArgo CD is\ndeclarative": "Argo CD is", "# Only\n## this": "Only", "[![b](c)](d)\n<p>\n* one": "one",
		strings.Repeat("x", 200): strings.Repeat("x", 117) + "…",
	} {
		if got := firstSentence(markdown); got != want {
			t.Errorf("%q: %q, want %q", markdown, got, want)
		}
	}
}

// TestDigestOfPackage: the digest changes with the content of the package, icons included, and with
// nothing else.
func TestDigestOfPackage(t *testing.T) {
	store := opened(t, t.TempDir())
	digests := func(n int, content string) (axe, lamp string) {
		rows := updated(t, store, "c", n, documents(content)).Packages()
		return rows[0].Digest, rows[1].Digest
	}
	axe, first := digests(1, lamp)
	if axe == "" || axe == first {
		t.Errorf("two packages have the digests %q and %q", axe, first)
	}
	for n, change := range [][2]string{{"aGk=", "aG8="}, {"broken", "bad"}, {`"image":"two"`, `"image":"three"`}} {
		same, other := digests(n+2, strings.Replace(lamp, change[0], change[1], 1))
		if same != axe || other == first {
			t.Errorf("%s becomes %s: digest of the package as before: %t, of another one: %t", change[0], change[1], other == first, same == axe)
		}
	}
	if same, again := digests(9, lamp); same != axe || again != first {
		t.Errorf("the same content has other digests")
	}
}

// TestBounds: a package's row in memory is limited and printable for any catalog.
func TestBounds(t *testing.T) {
	content := &strings.Builder{}
	fmt.Fprintf(content, `{"schema":"olm.package","name":"big","description":"a\u001b[2Jb %s"}`, strings.Repeat("x", 1<<16))
	for n := range 2 * MostVersions {
		fmt.Fprintf(content, `{"schema":"olm.bundle","package":"big","name":"big.v%d","properties":[{"type":"olm.package","value":{"packageName":"big","version":"1.%d.0"}},{"type":"olm.gvk","value":{"group":"%d.io","version":"v1","kind":"Big"}},{"type":"olm.gvk","value":{"group":"%d.com","version":"v1","kind":"Big"}}]}`, n, n, n, n)
		fmt.Fprintf(content, `{"schema":"olm.channel","package":"big","name":"c%03d%s","entries":[{"name":"big.v%d"}]}`, n, strings.Repeat("y", 1<<12), n)
		fmt.Fprintf(content, `{"schema":"olm.channel","package":"big","name":"%03dall","entries":[{"name":"big.v199"}]}`, n)
	}
	row := updated(t, opened(t, t.TempDir()), "c", 1, documents(content.String())).Packages()[0]
	if row.Bundles != 2*MostVersions || len(row.Versions) != MostVersions || len(row.Channels) != MostChannels || len(row.Kinds) != MostKinds || len(row.Versions[0].Channels) != MostChannels {
		t.Errorf("%d bundles, %d versions, %d channels, %d kinds", row.Bundles, len(row.Versions), len(row.Channels), len(row.Kinds))
	}
	if row.Versions[0].Version != "1.199.0" || !strings.HasPrefix(row.Description, "a[2Jb x") {
		t.Errorf("first %q, described %q", row.Versions[0].Version, row.Description)
	}
	if encoded, err := json.Marshal(row); err != nil || len(encoded) > 64<<10 {
		t.Errorf("the row has %d bytes, %v", len(encoded), err)
	}
}
