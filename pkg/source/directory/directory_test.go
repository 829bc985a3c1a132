package directory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/source"
)

type files map[string]string

func (f files) render(options Options) ([]source.Phase, error) {
	fsys := fstest.MapFS{}
	for name, text := range f {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return Render(context.Background(), fsys, options)
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

func names(phases []source.Phase) []string {
	var list []string
	for _, phase := range phases {
		for _, object := range phase.Objects {
			list = append(list, object.ID.String())
		}
	}
	return list
}

func TestRender(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  files
		want   []string
	}{
		"Files": {
			reason: "manifests are read in all formats and at all depths, other files are not",
			files: files{
				"a.yaml": configMap("a"), "b.YML": configMap("b"), "c/d/e.yml": configMap("c"),
				"c.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"}}`, "README.md": "# x", "script.sh": "exit 1",
			},
			want: []string{"ConfigMap a", "ConfigMap b", "ConfigMap c", "ConfigMap d"},
		},
		"Hidden": {
			reason: "hidden files and folders belong to tools",
			files:  files{"a.yaml": configMap("a"), ".b.yaml": "a: [", ".git/c.yaml": "a: [", "d/..e/f.yaml": "a: ["},
			want:   []string{"ConfigMap a"},
		},
		"Documents": {
			reason: "empty documents, comments, directives, CRLF and a BOM are no objects",
			files: files{"a.yaml": "\ufeff# x\n---\n" + configMap("a") + "---\n\n--- # y\r\n" + strings.ReplaceAll(configMap("b"), "\n", "\r\n") +
				"...\n---\nnull\n---\n~\n---\n" + configMap("c") + "data:\n  text: |\n    ---\n    x\n---\n"},
			want: []string{"ConfigMap a", "ConfigMap b", "ConfigMap c"},
		},
		"ContentBehindTheMarker": {
			reason: "a document may begin on the line of its marker",
			files:  files{"a.yaml": "--- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n--- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n"},
			want:   []string{"ConfigMap a", "ConfigMap b"},
		},
		"Lists": {
			reason: "lists are flattened, lists in lists too; items of a typed list have its kind",
			files: files{
				"a.yaml": "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n" +
					"- apiVersion: v1\n  kind: SecretList\n  items:\n  - metadata: {name: b}\n",
				"b.json": `{"kind":"ConfigMapList","apiVersion":"v1","items":[{"metadata":{"name":"c"}}]}`,
				"c.yaml": "kind: List\napiVersion: v1\nitems: []\n",
			},
			want: []string{"ConfigMap a", "ConfigMap c", "Secret b"},
		},
		"JSONStream": {
			reason: "JSON values may follow each other, and JSON may be in a file named yaml",
			files: files{
				"a.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}` + "\n" + `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}} null`,
				"b.yaml": "\n{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c\"},\"data\":{\"x\":\"\\ud83d\\ude00\"}}",
				"c.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: d}}",
			},
			want: []string{"ConfigMap a", "ConfigMap b", "ConfigMap c", "ConfigMap d"},
		},
		"Mixed": {
			reason: "JSON documents may be among YAML documents, indented by tabs too",
			files:  files{"a.yaml": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}` + "\n---\n" + configMap("b") + "---\n{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"ConfigMap\",\n\t\"metadata\": {\"name\": \"c\"}\n}\n"},
			want:   []string{"ConfigMap a", "ConfigMap b", "ConfigMap c"},
		},
		"Marks": {
			reason: "files that were joined have byte order marks in between; an empty list has no objects",
			files:  files{"a.yaml": "\ufeff" + configMap("a") + "---\n\ufeff" + configMap("b") + "\ufeff---\n" + configMap("c"), "b.yaml": "apiVersion: v1\nkind: List\nmetadata: {}\nitems:\n"},
			want:   []string{"ConfigMap a", "ConfigMap b", "ConfigMap c"},
		},
		"Anchors": {
			reason: "aliases and merges are YAML as kubectl reads it",
			files: files{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: &m\n  name: a\ndata: &d\n  x: text\n---\n" +
				"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata:\n  one: &x text\n  two: *x\n"},
			want: []string{"ConfigMap a", "ConfigMap b"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			phases, err := tc.files.render(Options{})
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, names(phases)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestValuesAreReadAsKubectlDoes(t *testing.T) {
	yaml := files{"a.yaml": configMap("a") + "spec: {bool: yes, octal: 0644, int: 9007199254740993, float: 1e3, date: 2020-01-01, text: '0644', null: ~}\n"}
	if _, err := yaml.render(Options{}); err == nil {
		t.Error("a key that is null is not refused")
	}
	yaml["a.yaml"] = strings.Replace(yaml["a.yaml"], "null: ~", "nil: ~, 80: x", 1)
	phases, err := yaml.render(Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"spec":{"80":"x","bool":true,"date":"2020-01-01","float":1000,"int":9007199254740993,"nil":null,"octal":420,"text":"0644"}}`
	if diff := cmp.Diff(want, string(phases[0].Objects[0].JSON)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestClusterScoped: objects of cluster-scoped kinds lose their namespace. Two objects that become
// equal by that are refused.
func TestClusterScoped(t *testing.T) {
	role := func(namespace string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r, namespace: " + namespace + "}\n"
	}
	var warnings []string
	phases, err := (files{"a.yaml": role("x")}).render(Options{Warn: func(one Error) { warnings = append(warnings, one.Error()) }})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ClusterRole.rbac.authorization.k8s.io r"}, names(phases)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a.yaml:3: ClusterRole.rbac.authorization.k8s.io r: metadata.namespace is left out, because ClusterRole.rbac.authorization.k8s.io is cluster-scoped"}, warnings); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, err := (files{"a.yaml": role("one") + "---\n" + role("two")}).render(Options{}); err == nil || !strings.Contains(err.Error(), "ClusterRole.rbac.authorization.k8s.io r is already at a.yaml:1") {
		t.Errorf("two roles that are one: %v", err)
	}
}

// TestStatus: the status of a kind without a status subresource is content.
func TestStatus(t *testing.T) {
	for object, kept := range map[string]bool{
		"apiVersion: example.com/v1\nkind: Lamp\nmetadata: {name: a}\nstatus: {lit: true}\n":    true,
		"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: a}\nstatus: {phase: Bound}\n": false,
	} {
		phases, err := (files{"a.yaml": object}).render(Options{Warn: func(one Error) { t.Errorf("%s: warned: %v", object, one) }})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(phases[0].Objects[0].JSON); strings.Contains(got, `"status":{"lit":true}`) != kept || strings.Contains(got, "Bound") {
			t.Errorf("%s is rendered as %s", object, got)
		}
	}
}

// TestJoinedMarker: a template that trims too much joins a line to the document marker, as in
// cert-manager 1.21.
func TestJoinedMarker(t *testing.T) {
	for _, joined := range []string{"---# of the second\napiVersion: v1", "---apiVersion: v1"} {
		data := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: first}\n" + joined + "\nkind: ConfigMap\nmetadata:\n  name: second\n"
		located, err := ReadTexts(t.Context(), []Text{{Name: "a.yaml", Data: []byte(data)}}, Options{AsHelm: true})
		if err != nil || len(located) != 2 {
			t.Errorf("%q: %d objects, %v", joined, len(located), err)
		}
		if _, err := ReadTexts(t.Context(), []Text{{Name: "a.yaml", Data: []byte(data)}}, Options{}); err == nil {
			t.Errorf("%q is taken in a file of a user, which kubectl refuses", joined)
		}
	}
}

// TestAsHelm: text that Helm accepts is accepted with a warning at its line, and refused in users'
// files.
func TestAsHelm(t *testing.T) {
	data := configMap("a") + "data:\n  x: one\n  yes: text\n  x: two\n---\n" + `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},` + "\n" + `"data":{"x":"one","x":"two"}}` + "\n"
	var warnings []string
	located, err := ReadTexts(t.Context(), []Text{{Name: "a.yaml", Data: []byte(data)}}, Options{AsHelm: true, Warn: func(one Error) { warnings = append(warnings, one.Error()) }})
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{
		"a.yaml:7: key yes is read as another value than its text: put it in quotes: the last value counts, as with Helm",
		`a.yaml:8: key "x" is already on line 6: the last value counts, as with Helm`,
		`a.yaml:11: key "x" is already on line 11: the last value counts, as with Helm`,
	}
	if diff := cmp.Diff(wanted, warnings); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	for i, want := range []string{`"data":{"true":"text","x":"two"}`, `"data":{"x":"two"}`} {
		if !strings.Contains(string(located[i].JSON), want) {
			t.Errorf("%s is missing in %s", want, located[i].JSON)
		}
	}
	if _, err := (files{"a.yaml": data}).render(Options{}); err == nil || strings.Count(err.Error(), "is already on line") != 2 {
		t.Errorf("the user's own file: %v", err)
	}
}

func TestRenderErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  files
		want   []string
	}{
		"Nothing": {
			reason: "an empty revision is a wrong directory",
			files:  files{"README.md": "x"},
			want:   []string{"no manifests found: looked for *.yaml, *.yml and *.json"},
		},
		"Syntax": {
			reason: "the line is where the error is, in the file and not in the document, for every kind of error",
			files: files{
				"a.yaml": configMap("a") + "---\nx:\n  a: 1\n b: 2\n",
				"b.yaml": "x: 1\ny: 2\nfoo\nz: 3\n",
				"c.yaml": "a: b: c\n",
				"d.yaml": "a:\n  - 1\n  - 2\n\tb: 1\n",
				"e.yaml": "a: 1\n\nb: 'x\nc: 1\n",
				"f.yaml": "a: 1\nb: *c\n",
				"g.json": "{\n  \"a\": 1,\n  \"b\":,\n}",
				"h.json": "{\n  \"a\": 1\n",
				"i.yaml": "a: 1\nb: [1,\n 2\nc: 3\n",
				"j.yaml": "a: 1\nb: .nan\n",
			},
			want: []string{
				"a.yaml:8: not valid YAML: did not find expected key",
				"b.yaml:3: not valid YAML: could not find expected ':'",
				"c.yaml:1: not valid YAML: mapping values are not allowed in this context",
				"d.yaml:4: not valid YAML: found a tab character that violates indentation",
				"e.yaml:3: not valid YAML: found unexpected end of stream",
				"f.yaml:2: not valid YAML: unknown anchor 'c' referenced",
				"g.json:3: not valid JSON: invalid character ',' looking for beginning of value",
				"h.json:2: not valid JSON: unexpected EOF",
				"i.yaml:3: not valid YAML: did not find expected ',' or ']'",
				"j.yaml:2: not valid YAML: json: unsupported value: NaN",
			},
		},
		"DuplicateKeys": {
			reason: "one of two values would be dropped unseen",
			files: files{
				"a.yaml": "# x\n" + configMap("a") + "data:\n  x: 1\n  z: 2\n  x: 3\nkind: Secret\n",
				"b.json": "{\n\"apiVersion\":\"v1\",\n\"apiVersion\":\"v1\"}",
				"c.yaml": configMap("c") + "data:\n  80: a\n  \"80\": b\n",
			},
			want: []string{
				`a.yaml:9: key "x" is already on line 7`,
				`a.yaml:10: key "kind" is already on line 3`,
				`b.json:3: key "apiVersion" is already on line 2`,
				`c.yaml:7: key "80" is already on line 6`,
			},
		},
		"StrangeKeys": {
			reason: "kubectl would read other keys than are written",
			files:  files{"a.yaml": configMap("a") + "data:\n  on: a\n  0x50: b\n  y: c\n  'no': d\n  {{ .Values.x }}: e\n  1.5: f\n"},
			want: []string{
				"a.yaml:6: key on is read as another value than its text: put it in quotes",
				"a.yaml:7: key 0x50 is read as another value than its text: put it in quotes",
				"a.yaml:8: key y is read as another value than its text: put it in quotes",
				"a.yaml:10: a key that is a map or a list: is this a template that was not rendered?",
				"a.yaml:11: key 1.5 is read as another value than its text: put it in quotes",
			},
		},
		"Identity": {
			reason: "fields are reported where they are, missing ones where their parent is",
			files: files{
				"a.yaml": "kind: ConfigMap\nmetadata:\n  name: a\n---\napiVersion: v1\nmetadata:\n  name: b\n---\n# x\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels: {}\n",
				"c.yaml": "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: no\n",
				"b.yaml": configMap("b") + "  uid: x\n  ownerReferences:\n  - name: y\n",
			},
			want: []string{
				"a.yaml:1: ConfigMap a: apiVersion: is missing",
				"a.yaml:5: kind: is missing",
				"a.yaml:12: ConfigMap: metadata.name: is missing",
				"b.yaml:5: ConfigMap b: metadata.uid: the server sets it: remove it (objects exported from a cluster have it)",
				"b.yaml:6: ConfigMap b: metadata.ownerReferences: they name uids of one cluster, and garbage collection could delete the object while the revision still lists it: remove them",
				"c.yaml:4: Namespace: metadata.name: is a boolean, want a string: put it in quotes",
			},
		},
		"Annotations": {
			reason: "a value that is not a string is the slip of every second person",
			files: files{
				"a.yaml": configMap("a") + "  annotations:\n    a: ok\n    b.io/c: true\n    d: 1\n    e: yes\n  labels:\n    x:\n",
				"b.json": "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"b\",\n\"annotations\":{\n\"a\":1}}}",
			},
			want: []string{
				"a.yaml:7: ConfigMap a: metadata.annotations[b.io/c]: is a boolean, want a string: put it in quotes",
				"a.yaml:8: ConfigMap a: metadata.annotations[d]: is a number, want a string: put it in quotes",
				"a.yaml:9: ConfigMap a: metadata.annotations[e]: is a boolean, want a string: put it in quotes",
				"b.json:3: ConfigMap b: metadata.annotations[a]: is a number, want a string: put it in quotes",
			},
		},
		"DuplicateObjects": {
			reason: "both places are named; another version is the same object, another namespace is not",
			files: files{
				"a.yaml":   configMap("a") + "---\n" + configMap("b") + "---\n" + configMap("b") + "  namespace: other\n",
				"b/c.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: b\n",
				"d.json":   "[]",
				"e.yaml":   "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: d}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
			},
			want: []string{
				"b/c.yaml:4: ConfigMap b is already at a.yaml:6: an object can be in a revision once",
				"d.json:1: not a Kubernetes object: want a map with apiVersion, kind and metadata",
				"e.yaml:5: Deployment.apps d is already at e.yaml:1: an object can be in a revision once",
			},
		},
		"OtherDocuments": {
			reason: "a directory with other YAML is not plain manifests, and what is left out unseen is missed later",
			files: files{
				"annotations.yaml": "annotations:\n  a: b\n", "text.yaml": "just text\n", "list.yaml": "- a\n- b\n",
				"items.yaml": "apiVersion: v1\nkind: List\nitems:\n- 1\n",
			},
			want: []string{
				"annotations.yaml:1: not a Kubernetes object: apiVersion and kind are missing",
				"items.yaml:4: not a Kubernetes object: want a map with apiVersion, kind and metadata",
				"list.yaml:1: not a Kubernetes object: want a map with apiVersion, kind and metadata",
				"text.yaml:1: not a Kubernetes object: want a map with apiVersion, kind and metadata",
			},
		},
		"Kustomization": {
			reason: "overlays and charts are not manifests, and the message says what to run",
			files:  files{"a/kustomization.yaml": "resources: [x.yaml]\n", "a/patch.yaml": "x: y\n", "b/Chart.yaml": "name: x\n", "b/values.yaml": "x: y\n", "c/x.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"},
			want: []string{
				"a/kustomization.yaml: a kustomization is not rendered here: run `kustomize build` on its folder and give the output to `penstock render -`",
				"b/Chart.yaml: a chart is not rendered here: give its folder to `penstock render --chart`",
				"c/x.yaml:1: a kustomization is not rendered here: run `kustomize build` on its folder and give the output to `penstock render -`",
			},
		},
		"Encoding": {
			reason: "bytes that are no text would be replaced unseen",
			files:  files{"a.yaml": configMap("a\xff")},
			want:   []string{"a.yaml: not valid UTF-8: 1 of 52 bytes cannot be read"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := tc.files.render(Options{})
			if err == nil {
				t.Fatalf("%s: got no error", tc.reason)
			}
			if diff := cmp.Diff(tc.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestErrorsAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		fmt.Fprintf(&text, "---\nkind: A\nmetadata: {name: a%d}\n", i)
	}
	_, err := files{"a.yaml": text.String()}.render(Options{MaxErrors: 3})
	var all *Errors
	if !errors.As(err, &all) {
		t.Fatalf("got %v, want *Errors", err)
	}
	if len(all.List) != 3 || all.Omitted != 97 {
		t.Errorf("got %d errors and %d omitted, want 3 and 97", len(all.List), all.Omitted)
	}
	var one *Error
	if !errors.As(err, &one) || one.Line != 2 {
		t.Errorf("got %v, want the first *Error", one)
	}
	if !strings.HasSuffix(err.Error(), "\nand 97 more") {
		t.Errorf("the end does not count the rest: %v", err)
	}
}

func TestSymbolicLinks(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret.yaml")
	write(t, outside, configMap("outside"))
	write(t, filepath.Join(dir, "..data", "a.yaml"), configMap("mounted"))
	link(t, filepath.Join("..data", "a.yaml"), filepath.Join(dir, "a.yaml"))

	phases, err := renderRoot(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ConfigMap mounted"}, names(phases)); diff != "" {
		t.Errorf("a link to a file is read like a file: -want, +got:\n%s", diff)
	}

	link(t, outside, filepath.Join(dir, "b.yaml"))
	link(t, "missing", filepath.Join(dir, "c.yaml"))
	link(t, "..data", filepath.Join(dir, "d"))
	_, err = renderRoot(t, dir)
	if err == nil {
		t.Fatal("links that lead out, nowhere and to a folder are no error")
	}
	for _, want := range []string{"b.yaml: following the symbolic link: ", "c.yaml: following the symbolic link: ", "d: is a symbolic link to a folder"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%v", want, err)
		}
	}
}

func TestRenderStream(t *testing.T) {
	phases, err := RenderStream(context.Background(), strings.NewReader(configMap("a")+"---\n"+configMap("b")), "stdin", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ConfigMap a", "ConfigMap b"}, names(phases)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if _, err = RenderStream(context.Background(), strings.NewReader(""), "stdin", Options{}); err == nil {
		t.Error("an empty stream is no error")
	}
	if _, err = RenderStream(context.Background(), strings.NewReader("a: b"), "stdin", Options{}); err == nil || !strings.HasPrefix(err.Error(), "stdin:1: ") {
		t.Errorf("got %v, want an error at stdin:1", err)
	}
}

func TestRenderStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Render(ctx, fstest.MapFS{"a.yaml": {Data: []byte(configMap("a"))}}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func renderRoot(t *testing.T, dir string) ([]source.Phase, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return Render(context.Background(), root.FS(), Options{})
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}
