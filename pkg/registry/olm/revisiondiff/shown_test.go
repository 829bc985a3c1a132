package revisiondiff

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/install"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/plugin/changes"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// pair is two versions of one object. Each leaf has a unique word.
type pair struct {
	old, new map[string]any
	// words are the words of leaves that only one version has. Words of a Secret must never be
	// shown.
	words  []string
	secret bool
}

// writer makes pairs. It uses each word once.
type writer struct {
	t     *rapid.T
	words int
}

func (w *writer) word() string {
	w.words++
	return fmt.Sprintf("word%06dx", w.words)
}

// filler returns text that occurs often. Its length is below, at or far above the limit of a line.
func (w *writer) filler() string {
	return strings.Repeat("so on ", rapid.SampledFrom([]int{0, 1, 650, 1500}).Draw(w.t, "filler"))
}

// text returns text with a word in a random place: in a line, in a long line, or in one of many
// lines.
func (w *writer) text() func(word string) string {
	before, after := w.filler(), w.filler()
	lines := rapid.SampledFrom([]int{0, 0, 3, 200}).Draw(w.t, "lines")
	above, below := strings.Repeat("a line that is there twice\n", lines), strings.Repeat("\nand a line behind", lines)
	return func(word string) string { return above + before + word + after + below }
}

// leaf adds a leaf to one or both versions.
func (w *writer) leaf(p *pair, old, new map[string]any, key string) {
	make := w.text()
	was, is := w.word(), w.word()
	value := func(word string) any {
		if p.secret {
			return base64.StdEncoding.EncodeToString([]byte(make(word)))
		}
		return make(word)
	}
	switch rapid.SampledFrom([]string{"same", "changed", "changed", "added", "removed", "list", "keyed"}).Draw(w.t, "what") {
	case "same":
		old[key], new[key] = value(was), value(was)
		return
	case "added":
		new[key], was = value(is), ""
	case "removed":
		old[key], is = value(was), ""
	case "list":
		if p.secret {
			old[key], new[key] = value(was), value(is)
			break
		}
		old[key], new[key] = []any{"first", make(was), "last"}, []any{"first", make(is), "last"}
	case "keyed":
		if p.secret {
			old[key], new[key] = value(was), value(is)
			break
		}
		item := func(name, word string) any { return map[string]any{"name": name, "value": make(word)} }
		old[key], new[key] = []any{item("a", "same"), item("b", was)}, []any{item("b", is), item("a", "same")}
	default:
		old[key], new[key] = value(was), value(is)
	}
	for _, word := range []string{was, is} {
		if word != "" {
			p.words = append(p.words, word)
		}
	}
}

func (w *writer) pair(i int) pair {
	kind := rapid.SampledFrom([]string{"ConfigMap", "Secret", "Widget", "Labels"}).Draw(w.t, "kind")
	p := pair{secret: kind == "Secret"}
	metadata := func(version string) map[string]any {
		return map[string]any{"name": fmt.Sprintf("object-%d", i), "namespace": "space", "labels": map[string]any{"app.kubernetes.io/version": version}}
	}
	p.old = map[string]any{"apiVersion": "v1", "kind": kind, "metadata": metadata("same")}
	p.new = map[string]any{"apiVersion": "v1", "kind": kind, "metadata": metadata("same")}
	old, new := map[string]any{}, map[string]any{}
	switch kind {
	case "Labels": // folded with changes of the same kind
		for _, side := range []struct {
			object  map[string]any
			version string
		}{{p.old, "labelwas"}, {p.new, "labelis"}} {
			side.object["kind"], side.object["metadata"] = "ConfigMap", metadata(side.version)
		}
		p.words = []string{"labelwas", "labelis"}
		return p
	case "Widget":
		p.old["apiVersion"], p.new["apiVersion"] = "example.com/v1", "example.com/v1"
		p.old["spec"], p.new["spec"] = map[string]any{"deep": map[string]any{"deeper": old}}, map[string]any{"deep": map[string]any{"deeper": new}}
	default:
		p.old["data"], p.new["data"] = old, new
	}
	for i := range rapid.IntRange(1, 3).Draw(w.t, "leaves") {
		w.leaf(&p, old, new, fmt.Sprint("key", i))
	}
	// If only one revision has the object, all of its words count.
	switch rapid.SampledFrom([]string{"both", "both", "both", "old", "new"}).Draw(w.t, "revisions") {
	case "old":
		p.new = nil
	case "new":
		p.old = nil
	}
	if p.old == nil || p.new == nil {
		encoded, _ := json.Marshal(p.object())
		p.words = slices.DeleteFunc(p.words, func(word string) bool { return !p.secret && !strings.Contains(string(encoded), word) })
	}
	return p
}

// object returns a version that exists.
func (p *pair) object() map[string]any {
	if p.new != nil {
		return p.new
	}
	return p.old
}

// both holds the two revisions of pairs, and their stored form.
type both struct {
	from, to   *olm.ClusterExtensionRevision
	older, now []manifest.Object
}

func (b both) Stored(context.Context, string) (*olm.ClusterExtensionRevision, error) { return nil, nil }

func (b both) Chain(context.Context, string) ([]olm.ClusterExtensionRevision, error) { return nil, nil }

func (b both) Contents(_ context.Context, revision *olm.ClusterExtensionRevision) ([]manifest.Object, error) {
	if revision == b.from {
		return b.older, nil
	}
	return b.now, nil
}

func revisionsOf(t *rapid.T, pairs []pair) both {
	make := func(name string, side func(pair) map[string]any) (*olm.ClusterExtensionRevision, []manifest.Object) {
		revision := &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}
		phase := olm.RevisionPhase{Name: "all"}
		var objects []manifest.Object
		for _, one := range pairs {
			if side(one) == nil {
				continue
			}
			object, err := difftest.Digester().New(side(one))
			if err != nil {
				t.Fatal(err)
			}
			objects = append(objects, object)
			phase.Objects = append(phase.Objects, olm.RevisionObject{
				APIVersion: schema.GroupVersion{Group: object.Group, Version: object.Version}.String(), Kind: object.Kind, Namespace: object.Namespace, Name: object.Name,
				Digest: string(object.Digest), Size: int64(len(object.JSON)),
			})
		}
		revision.Spec.Phases = []olm.RevisionPhase{phase}
		return revision, objects
	}
	var b both
	b.from, b.older = make("argocd-1", func(p pair) map[string]any { return p.old })
	b.to, b.now = make("argocd-2", func(p pair) map[string]any { return p.new })
	return b
}

type anything struct{}

func (anything) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}

// TestAllIsShown: each output shows every changed word, or names the object and a command that
// shows it. Values of Secrets are only reported as changed.
func TestAllIsShown(t *testing.T) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	rapid.Check(t, func(t *rapid.T) {
		w := &writer{t: t}
		var pairs []pair
		for i := range rapid.SampledFrom([]int{1, 3, 14}).Draw(t, "objects") {
			pairs = append(pairs, w.pair(i))
		}
		b := revisionsOf(t, pairs)
		comparer := New(Deps{Revisions: b, Authorizer: anything{}})
		compare := func(options *v1alpha1.RevisionDiffOptions) *v1alpha1.RevisionDiff {
			made, err := comparer.Between(genericrequest.WithUser(context.Background(), &user.DefaultInfo{Name: "root"}), b.from, b.to, options)
			if err != nil {
				t.Fatal(err)
			}
			out := &v1alpha1.RevisionDiff{}
			if err := scheme.Convert(made, out, nil); err != nil {
				t.Fatal(err)
			}
			return out
		}
		all := compare(nil)
		for format, output := range outputs(t, all) {
			for i := range pairs {
				one := &pairs[i]
				name := fmt.Sprintf("object-%d", i)
				command := "kubectl penstock diff argocd-1..argocd-2 --object " + kindOf(one.object()) + "/space/" + name
				if lacks := missing(one, output); lacks != "" {
					hidden := !strings.Contains(output, command) && !cutIn(format, all, name) && !strings.Contains(output, "space/"+name+" (not all shown)") && !commentFull(output, name)
					if hidden {
						t.Fatalf("%s: %s of %s is not shown, and no command is named that shows it:\n%s", format, lacks, name, shortened(output))
					}
					whole := compare(&v1alpha1.RevisionDiffOptions{ObjectKind: kindOf(one.object()), ObjectNamespace: "space", ObjectName: name})
					for format, output := range outputs(t, whole) {
						if format == "markdown" {
							continue // it is for a comment with a limited size
						}
						if lacks := missing(one, output); lacks != "" {
							t.Fatalf("%s: %s is not shown by %s either:\n%s", format, lacks, command, shortened(output))
						}
					}
				}
				checkSecret(t, format, one, all, name, output)
			}
		}
	})
}

// missing returns a word of an object that an output lacks, or "".
func missing(p *pair, output string) string {
	if p.secret {
		return ""
	}
	for _, word := range p.words {
		if !strings.Contains(output, word) {
			return word
		}
	}
	return ""
}

// checkSecret: no word of a Secret is shown, and a changed Secret is among the objects.
func checkSecret(t *rapid.T, format string, p *pair, diff *v1alpha1.RevisionDiff, name, output string) {
	if !p.secret || len(p.words) == 0 {
		return
	}
	for _, word := range p.words {
		if strings.Contains(output, word) || strings.Contains(output, base64.StdEncoding.EncodeToString([]byte(word))[:12]) {
			t.Fatalf("%s: a value of Secret %s is shown", format, name)
		}
	}
	i := slices.IndexFunc(diff.Changes, func(change v1alpha1.ObjectChange) bool { return change.Kind == "Secret" && change.Name == name })
	if i < 0 || p.old != nil && p.new != nil && (diff.Changes[i].Change != v1alpha1.ChangeChanged || diff.Changes[i].FieldCount == 0) {
		t.Fatalf("%s: Secret %s changes, and that is not said: %+v", format, name, diff.Changes)
	}
	if !strings.Contains(output, name) {
		t.Fatalf("%s: Secret %s changes, and is not named:\n%s", format, name, shortened(output))
	}
}

// cutIn reports whether JSON output marks an object as cut. JSON has no command to show it: a
// program requests the object.
func cutIn(format string, diff *v1alpha1.RevisionDiff, name string) bool {
	if format != "json" {
		return false
	}
	return slices.ContainsFunc(diff.Changes, func(change v1alpha1.ObjectChange) bool {
		return change.Name == name && (change.Truncated != nil || change.NotCompared != "")
	})
}

// commentFull reports whether a comment names the changed object and the command that shows it,
// because the lines of objects do not fit.
func commentFull(output, name string) bool {
	return strings.Contains(output, "more left out: this comment would be too long. All of it: kubectl penstock diff argocd-1..argocd-2**") &&
		strings.Contains(output, " space/"+name+" |")
}

// outputs returns a diff in all formats of the plugin. The console gets the same data as JSON.
func outputs(t *rapid.T, diff *v1alpha1.RevisionDiff) map[string]string {
	encoded, err := json.Marshal(diff)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"json": string(encoded)}
	for name, view := range map[string]changes.View{"text": {Lines: true}, "unfolded": {Lines: true, Unfold: true}} {
		var text bytes.Buffer
		// The screen is wide, so no command is broken into two lines.
		changes.Print(screen.New(&text, func(any) (screen.Size, bool) { return screen.Size{}, false }, screen.ColourNever, func(string) string { return "" }), diff, view)
		out[name] = text.String()
	}
	out["markdown"] = strings.NewReplacer("\\", "", "&lt;", "<", "&#64;", "@").Replace(changes.Markdown(diff, changes.View{}))
	return out
}

func kindOf(object map[string]any) string {
	if group, _, found := strings.Cut(object["apiVersion"].(string), "/"); found {
		return object["kind"].(string) + "." + group
	}
	return object["kind"].(string)
}

func shortened(output string) string {
	var out strings.Builder
	for line := range strings.Lines(output) {
		out.WriteString(line[:min(len(line), 200)])
		if len(line) > 200 {
			out.WriteString("…\n")
		}
	}
	return out.String()[:min(out.Len(), 20_000)]
}
