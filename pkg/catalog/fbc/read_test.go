package fbc

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// listing returns the line, schema, package and name of every document.
func listing(t *testing.T, file string, content []byte, limits Limits) ([]string, error) {
	t.Helper()
	var out []string
	err := Read(t.Context(), bytes.NewReader(content), file, limits, func(d *Document) error {
		out = append(out, fmt.Sprintf("%d %s %s %s", d.Line, d.Schema, d.Package, d.Name))
		return d.Check()
	})
	return out, err
}

func TestRead(t *testing.T) {
	one := `{"schema":"olm.package","name":"argocd"}`
	two := `{"schema":"olm.bundle","package":"argocd","name":"argocd.v1"}`
	both := []string{"1 olm.package argocd argocd", "2 olm.bundle argocd argocd.v1"}
	for name, c := range map[string]struct {
		reason, content string
		want            []string
	}{
		"lines":          {"what catalogd serves", one + "\n" + two + "\n", both},
		"no last line":   {"nothing must end the last document", one + "\n" + two, both},
		"concatenated":   {"what opm render prints has no separator", one + two, []string{both[0], "1 olm.bundle argocd argocd.v1"}},
		"indented":       {"opm render -o json", "{\n  \"schema\": \"olm.package\",\n  \"name\": \"argocd\"\n}\n" + two, []string{both[0], "5 olm.bundle argocd argocd.v1"}},
		"braces in text": {"a string is not structure", `{"schema":"x","name":"}{\"\\"}` + "\n" + two, []string{`1 x  }{"\`, both[1]}},
		"separated JSON": {"YAML readers take it", one + "\n---\n" + two, []string{both[0], "3 olm.bundle argocd argocd.v1"}},
		"YAML": {"keys in alphabetical order: schema comes last", "name: argocd\nschema: olm.package\n---\n# a comment\nname: argocd.v1\npackage: argocd\nschema: olm.bundle\n",
			[]string{both[0], "5 olm.bundle argocd argocd.v1"}},
		"YAML after a comment":      {"such a document is nothing", "# licence\n---\nschema: olm.package\nname: argocd\n", []string{"3 olm.package argocd argocd"}},
		"YAML begins with ---":      {"most do", "---\nschema: olm.package\nname: argocd\n---\n", []string{"2 olm.package argocd argocd"}},
		"a comment at ---":          {"what follows is another document", "schema: olm.package\nname: argocd\n--- # next\nname: argocd.v1\npackage: argocd\nschema: olm.bundle\n", []string{both[0], "4 olm.bundle argocd argocd.v1"}},
		"the end of a document":     {"three dots say so", "schema: olm.package\nname: argocd\n...\nname: argocd.v1\npackage: argocd\nschema: olm.bundle\n", []string{both[0], "4 olm.bundle argocd argocd.v1"}},
		"a hyphen more":             {"that is text", "schema: olm.package\nname: argocd\ndescription:\n  ---\n  --- a\n", both[:1]},
		"JSON in YAML":              {"JSON is YAML", "---\n" + one, []string{"2 olm.package argocd argocd"}},
		"YAML behind JSON":          {"a separator says that the next document is of its own notation", one + "\n---\n# a comment\nname: argocd.v1\npackage: argocd\nschema: olm.bundle\n---\n\t" + one, []string{both[0], "4 olm.bundle argocd argocd.v1", "8 olm.package argocd argocd"}},
		"a mark":                    {"some editors write it", "\ufeff" + one + "\n" + two, both},
		"a mark of a joined file":   {"it stands before the separator or the document", "\ufeffschema: olm.package\nname: argocd\n\ufeff---\n\ufeffname: argocd.v1\npackage: argocd\nschema: olm.bundle\n", []string{both[0], "4 olm.bundle argocd argocd.v1"}},
		"capitals":                  {"keys have no case", `{"Schema":"olm.package","NAME":"argocd"}`, both[:1]},
		"another schema":            {"it is kept", `{"schema":"acme.io/extra","package":"argocd"}`, []string{"1 acme.io/extra argocd "}},
		"no schema":                 {"the reader does not judge", `{"name":"x"}`, []string{"1   x"}},
		"null":                      {"as if it were not there", `{"schema":"olm.package","name":"argocd","package":null}`, both[:1]},
		"nothing":                   {"an empty file", "", nil},
		"space":                     {"an empty file, too", " \n\t\n", nil},
		"Windows":                   {"carriage returns are space", one + "\r\n" + two + "\r\n", both},
		"name of a package differs": {"the name counts", `{"schema":"olm.package","name":"argocd","package":"other"}`, both[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := listing(t, "catalog", []byte(c.content), DefaultLimits())
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", c.reason, diff)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	small := Limits{DocumentBytes: 100, Bytes: 1000, Documents: 3}
	for name, c := range map[string]struct{ content, want string }{
		"cut off":                 {`{"schema":"olm.bundle"` + "\n", `c.json:1: the file ends within a JSON object`},
		"cut off later":           {"{\"schema\":\"a\"}\n{\"schema\":", `c.json:2: the file ends within a JSON object`},
		"text after JSON":         {"{\"schema\":\"a\"}\nREADME", `c.json:2: found 'R' where a JSON object should begin`},
		"a readme":                {"# Catalog\nof mine\n", `c.json:2: the document is no object: every file of a catalog is read, so a file that is something else belongs in .indexignore`},
		"an array":                {"- schema: a\n", `c.json:1: the document is no object: every file of a catalog is read, so a file that is something else belongs in .indexignore`},
		"broken YAML":             {"schema: a\n---\nname: b\n\tc: d\n", `c.json:4: reading YAML: found a tab character that violates indentation`},
		"broken JSON":             {`{"schema":"olm.bundle","package":"p","name":"b","x":tru}`, `c.json:1: package p: olm.bundle b: invalid character '}' in literal true (expecting 'e')`},
		"no value":                {`{"schema"}`, `c.json:1: is no valid JSON object`},
		"the same key":            {`{"schema":"a","Schema":"b"}`, `c.json:1: a: keys "schema" and "Schema" are the same key: remove one`},
		"a number":                {`{"schema":"olm.bundle","package":7}`, `c.json:1: olm.bundle: field package: the document: is of type number, want string`},
		"text at ---":             {"schema: a\n--- schema: b\n", `c.json:2: found "schema: b" after ---: a document begins on the next line`},
		"a long line":             {`{"schema":"` + strings.Repeat("x", 200) + `"}`, `c.json:1: the document has more than 100 bytes, which is the most that is read`},
		"a long line without end": {`{"schema":"` + strings.Repeat("x", 900), `c.json:1: the document has more than 100 bytes, which is the most that is read`},
		"a long YAML document":    {"schema: " + strings.Repeat("x", 200), `c.json:1: the document has more than 100 bytes, which is the most that is read`},
		"many bytes":              {strings.Repeat(" ", 2000), `c.json: the catalog has more than 1000 bytes`},
		"many documents":          {strings.Repeat(`{"schema":"a"}`, 4), `c.json:1: the catalog has more than 3 documents`},
		"a bomb of aliases": {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b]\n",
			`c.json:1: the document has more than 100 bytes, which is the most that is read`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := listing(t, "c.json", []byte(c.content), small)
			var typed *Error
			if !errors.As(err, &typed) || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestReadValues: many short values take much more memory than their bytes, so their number is
// limited.
func TestReadValues(t *testing.T) {
	many := strings.Repeat("{},", maxValues/2)
	for name, content := range map[string]string{"JSON": `{"schema":"olm.channel","entries":[` + many + `{}]}`, "YAML": "schema: olm.channel\nentries: [" + many + "{}]\n"} {
		if _, err := listing(t, "c", []byte(content), DefaultLimits()); err == nil || err.Error() != "c:1: the document has more than 2000000 values, which is the most that is read" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadCompressed: the content of a file decides about compression, not its name.
func TestReadCompressed(t *testing.T) {
	content := []byte(`{"schema":"olm.package","name":"argocd"}`)
	var zipped, packed bytes.Buffer
	gz := gzip.NewWriter(&zipped)
	zw, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []io.WriteCloser{gz, zw} {
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name, compressed := range map[string][]byte{"gzip": zipped.Bytes(), "zstd": packed.Bytes()} {
		if got, err := listing(t, "catalog.json", compressed, DefaultLimits()); err != nil || len(got) != 1 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if _, err := listing(t, "catalog.json", compressed[:len(compressed)-6], DefaultLimits()); err == nil {
			t.Errorf("%s that is cut off is read without an error", name)
		}
		if _, err := listing(t, "catalog.json", compressed, Limits{DocumentBytes: 100, Bytes: 20, Documents: 1}); err == nil {
			t.Errorf("%s: more bytes than allowed are read without an error", name)
		}
	}
}

func TestReadDirectory(t *testing.T) {
	document := func(name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(`{"schema":"olm.package","name":"` + name + `"}`)}
	}
	root := fstest.MapFS{
		"b/catalog":          document("b"),
		"a/catalog.yaml":     document("a"),
		"a/.hidden":          document("hidden"),
		"a/README.md":        &fstest.MapFile{Data: []byte("text")},
		"a/deep/x.yaml":      document("deep"),
		"c/cache/x":          document("cache"),
		"c/keep.txt":         document("keep"),
		"c/drop.txt":         document("drop"),
		".indexignore":       &fstest.MapFile{Data: []byte("*.md\n**/cache\n")},
		"c/.indexignore":     &fstest.MapFile{Data: []byte("# text\n*.txt\n!keep.txt\n")},
		"a/deep/other/x.txt": document("other"),
	}
	config, err := LoadDirectory(t.Context(), root, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range config.Packages {
		got = append(got, one.Name)
	}
	if diff := cmp.Diff([]string{"hidden", "a", "other", "deep", "b", "keep"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	delete(root, ".indexignore")
	if _, err := LoadDirectory(t.Context(), root, DefaultLimits()); err == nil || !strings.HasPrefix(err.Error(), "a/README.md:1: ") {
		t.Errorf("a file that is no part of a catalog: %v", err)
	}
}

func TestReadEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Read(ctx, strings.NewReader("{}"), "x", DefaultLimits(), func(*Document) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a reader that nobody waits for: %v", err)
	}
	stop := errors.New("enough")
	if err := Read(t.Context(), strings.NewReader("{}{}"), "x", DefaultLimits(), func(*Document) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("what the caller returns comes back as %v", err)
	}
}

// TestByPackage: the last of two documents with the same name counts.
func TestByPackage(t *testing.T) {
	config, err := Load(t.Context(), strings.NewReader(`
{"schema":"olm.package","name":"a","defaultChannel":"x"}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"one"}
{"schema":"olm.bundle","package":"a","name":"a.v2","image":"two"}
{"schema":"olm.bundle","package":"a","name":"a.v1","image":"three"}
{"schema":"olm.bundle","package":"b","name":"a.v1","image":"four"}
{"schema":"olm.deprecations","package":"a","entries":[{"reference":{"schema":"olm.package"},"message":"old"}]}
{"schema":"olm.deprecations","package":"a","entries":[]}
{"schema":"acme.io/x","package":"a"}
{"schema":"acme.io/x"}
`), "c", DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	a := config.Package("a")
	if got := fmt.Sprint(len(a.Bundles), a.Bundles[0].Image, len(a.Deprecations), len(a.Deprecations[0].Entries), len(a.Others)); got != "2three1 0 1" {
		t.Errorf("package a: %s", got)
	}
	if config.Package("c") != nil || !(&Config{}).Empty() {
		t.Error("there is a package that nobody wrote")
	}
}

// endless is a line without end. It counts the bytes that were read.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	if e.read == 0 {
		copy(p, `{"schema":"`)
	}
	e.read += int64(len(p))
	return len(p), nil
}

// TestHundredMegabytes: with the limits for untrusted catalogs, a line of 100 MB is read only up to
// the limit of a document.
func TestHundredMegabytes(t *testing.T) {
	from := &endless{}
	err := Read(t.Context(), io.LimitReader(from, 100_000_000), "catalog.json", DefaultLimits(), func(*Document) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "catalog.json:1: the document has more than 16777216 bytes") {
		t.Errorf("found %v", err)
	}
	if most := int64(DefaultLimits().DocumentBytes + 1<<20); from.read > most {
		t.Errorf("%d bytes were read; %d are enough", from.read, most)
	}
}
