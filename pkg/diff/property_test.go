package diff

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// anyValue generates JSON of few words, so that two values often share parts.
func anyValue(depth int) *rapid.Generator[any] {
	word := rapid.SampledFrom([]string{"a", "b", "c.d/e", "name", "", "true", "1", "- x", "x: y", "line 1\nline 2\n", "line 1\nline 3", " lead\nx", "é\u202e\x1b", "\U000e0001", "--flag=1", "--flag=2", "a:1", "a:2"})
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 4
		}
		switch kind {
		case 0, 1:
			return word.Draw(t, "word")
		case 2:
			return int64(rapid.IntRange(-1, 2).Draw(t, "number"))
		case 3:
			return rapid.SampledFrom([]any{true, false, 0.5, 1e300}).Draw(t, "other")
		case 4:
			return rapid.SliceOfN(anyValue(depth-1), 0, 5).Draw(t, "list")
		case 5:
			// A list whose items may have keys.
			names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID).Draw(t, "names")
			list := make([]any, 0, len(names))
			for _, name := range names {
				list = append(list, map[string]any{"name": name, "v": anyValue(depth-1).Draw(t, "v")})
			}
			return list
		default:
			return rapid.MapOfN(word, anyValue(depth-1), 0, 4).Draw(t, "object")
		}
	})
}

// anyDeployment generates what the types of Kubernetes know: keys, quantities,
// defaults, sets.
func anyDeployment(t *rapid.T) map[string]any {
	optional := func(into map[string]any, name string, values ...any) {
		if i := rapid.IntRange(-1, len(values)-1).Draw(t, name); i >= 0 {
			into[name] = values[i]
		}
	}
	var containers []any
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 1, 3, rapid.ID).Draw(t, "containers") {
		c := map[string]any{"name": name}
		optional(c, "image", "i:1", "i:2", "i")
		optional(c, "imagePullPolicy", "Always", "IfNotPresent")
		optional(c, "args", []any{}, []any{"--v=1", "x"}, []any{"x", "--v=2"})
		var ports []any
		for _, number := range rapid.SliceOfNDistinct(rapid.IntRange(1, 3), 0, 3, rapid.ID).Draw(t, "ports") {
			port := map[string]any{"containerPort": int64(number)}
			optional(port, "protocol", "TCP", "UDP")
			ports = append(ports, port)
		}
		if ports != nil {
			c["ports"] = ports
		}
		limits := map[string]any{}
		optional(limits, "cpu", "0.5", "500m", int64(1), "1000m")
		optional(limits, "memory", "1Gi", "1024Mi", "2Gi")
		c["resources"] = map[string]any{"limits": limits}
		containers = append(containers, c)
	}
	pod := map[string]any{"containers": containers}
	optional(pod, "restartPolicy", "Always", "Never")
	optional(pod, "securityContext", map[string]any{}, map[string]any{"runAsUser": int64(1)})
	optional(pod, "nodeSelector", map[string]any{}, map[string]any{"a": "b"})
	spec := map[string]any{"template": map[string]any{"spec": pod}}
	optional(spec, "replicas", int64(1), int64(2))
	optional(spec, "strategy", map[string]any{}, map[string]any{"type": "Recreate"}, map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": "25%"}})
	metadata := map[string]any{"name": "d"}
	optional(metadata, "finalizers_", "x")
	return map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
}

// anyPair generates two objects of one identity.
func anyPair(t *rapid.T) (old, new *manifest.Object) {
	make := func(label string) *manifest.Object {
		var value map[string]any
		if rapid.Bool().Draw(t, "custom") {
			value = map[string]any{"apiVersion": "example.com/v1", "kind": "X", "metadata": map[string]any{"name": "d"}}
			value["spec"] = anyValue(3).Draw(t, label)
		} else {
			value = anyDeployment(t)
		}
		o, err := difftest.Digester().New(value)
		if err != nil {
			t.Fatal(err)
		}
		return &o
	}
	return make("old"), make("new")
}

func TestProperties(t *testing.T) {
	types := difftest.Builtin(t)
	options := Options{Schema: types, Limits: unlimited()}
	rapid.Check(t, func(rt *rapid.T) {
		old, new := anyPair(rt)
		if old.ID != new.ID {
			return
		}
		copied := *old
		copied.Digest = ""
		if change := Compare(t.Context(), old, &copied, options); change.Kind != Unchanged {
			rt.Fatalf("compared with itself: %v", summarise(change))
		}
		there, back := Compare(t.Context(), old, new, options), Compare(t.Context(), new, old, options)
		if diff := cmp.Diff(there, Compare(t.Context(), old, new, options)); diff != "" {
			rt.Fatalf("not the same twice: %s", diff)
		}
		if there.Kind != back.Kind || there.AddedLines != back.RemovedLines || there.RemovedLines != back.AddedLines {
			// Which of two similar items is paired may depend on the direction,
			// but whether there is a difference may not.
			if there.Kind != back.Kind {
				rt.Fatalf("there %s, back %s", there.Kind, back.Kind)
			}
		}
		if there.Kind == Changed {
			checkChange(rt, types, old, new, there)
		}
		checkOutput(rt, there)
		for _, change := range []Change{Compare(t.Context(), nil, new, options), Compare(t.Context(), new, nil, options)} {
			if change.AddedLines+change.RemovedLines == 0 || change.Kind == Changed {
				rt.Fatalf("%s: +%d -%d", change.Kind, change.AddedLines, change.RemovedLines)
			}
		}
	})
}

// TestYAML: what is printed reads as what was written.
func TestYAML(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		value := map[string]any{"v": anyValue(4).Draw(rt, "value")}
		n := newComparison(t.Context(), Options{}).build(value, nil, place{})
		h := &hunks{limit: 1 << 30, width: 1 << 30, around: 3}
		(&yamlPrinter{hunks: h, stop: func() bool { return false }}).object(newSide, n, 0)
		h.finish()
		var document string
		for i, line := range splitLines(h.out.String()) {
			if i > 0 {
				document += line[1:] + "\n"
			}
		}
		data, err := yaml.YAMLToJSON([]byte(document))
		if err != nil {
			rt.Fatalf("%v in\n%s", err, document)
		}
		want, err := json.Marshal(value)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(decode(t, want), decode(t, data)); diff != "" {
			rt.Fatalf("-written, +read:\n%s\n%s", diff, document)
		}
	})
}

func splitLines(s string) []string {
	var lines []string
	for len(s) > 0 {
		end := slices.Index([]byte(s), '\n')
		lines, s = append(lines, s[:end]), s[end+1:]
	}
	return lines
}

// TestAlign compares with the textbook's table.
func TestAlign(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sequence := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 20)
		old, new := sequence.Draw(rt, "old"), sequence.Draw(rt, "new")
		pairs := align(old, new, func() bool { return false })
		last := pair{-1, -1}
		for _, p := range pairs {
			if p.old <= last.old || p.new <= last.new || old[p.old] != new[p.new] {
				rt.Fatalf("%v is no common subsequence", pairs)
			}
			last = p
		}
		table := make([][]int, len(old)+1)
		for i := range table {
			table[i] = make([]int, len(new)+1)
		}
		for i := len(old) - 1; i >= 0; i-- {
			for j := len(new) - 1; j >= 0; j-- {
				table[i][j] = max(table[i+1][j], table[i][j+1])
				if old[i] == new[j] {
					table[i][j] = table[i+1][j+1] + 1
				}
			}
		}
		if len(pairs) != table[0][0] {
			rt.Fatalf("%d in common, want %d", len(pairs), table[0][0])
		}
	})
}

// TestAlignIsBounded: nothing in common, and very long.
func TestAlignIsBounded(t *testing.T) {
	old, new := make([]int, 100_000), make([]int, 100_000)
	for i := range old {
		old[i], new[i] = i, -i-1
	}
	old[0], new[0] = 7, 7
	if pairs := align(old, new, func() bool { return false }); len(pairs) != 1 {
		t.Errorf("got %d pairs, want that at the start", len(pairs))
	}
}

func TestCount(t *testing.T) {
	ref := func(name, digest string) manifest.Ref {
		return manifest.Ref{ID: manifest.ID{Kind: "ConfigMap", Name: name}, Digest: manifest.Digest(digest)}
	}
	got := Count([]manifest.Ref{ref("same", "1"), ref("changed", "1"), ref("gone", "1")}, []manifest.Ref{ref("new", "1"), ref("changed", "2"), ref("same", "1")})
	if diff := cmp.Diff(Summary{Added: 1, Removed: 1, Changed: 1, Unchanged: 1}, got); diff != "" || got.String() != "+1 ~1 -1" {
		t.Errorf("%s: %s", got, diff)
	}
}

func FuzzCompare(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"v"}}`,
		`{"apiVersion":"v1","kind":"Secret","data":{"k":"!"},"stringData":[1]}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":[{"name":"a"},{"name":"a"},3,null,[[]]]}}}}`,
		`{"kind":"ClusterRole","rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"],"resourceNames":[1]}],"metadata":{"annotations":7}}`,
		`{"kind":"CustomResourceDefinition","spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"a":{"enum":[1]}}}}}]}}`,
		`{"spec":{"resources":{"limits":{"cpu":"1e999999999"}}},"metadata":null}`,
		`[]`, `{`, "{\"\\u001b\":\"\\u202e\"}",
	} {
		f.Add([]byte(seed), []byte(`{"a":1}`), uint8(0))
	}
	kinds := []manifest.Ref{
		{ID: manifest.ID{Kind: "Secret", Name: "x"}, Version: "v1"},
		{ID: manifest.ID{Group: "apps", Kind: "Deployment", Name: "x"}, Version: "v1"},
		{ID: manifest.ID{Group: rbacGroup, Kind: "ClusterRole", Name: "x"}, Version: "v1"},
		{ID: manifest.ID{Group: rbacGroup, Kind: "RoleBinding", Name: "x"}, Version: "v1"},
		{ID: manifest.ID{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "xs.example.com"}, Version: "v1"},
		{ID: manifest.ID{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration", Name: "x"}, Version: "v1"},
		{ID: manifest.ID{Group: "example.com", Kind: "X", Name: "\x1b"}, Version: "v1"},
	}
	types, err := schema.NewBuiltin()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, old, new []byte, kind uint8) {
		ref := kinds[int(kind)%len(kinds)]
		before, after := manifest.Object{Ref: ref, JSON: old}, manifest.Object{Ref: ref, JSON: new}
		report := Revisions(t.Context(), []manifest.Object{before}, []manifest.Object{after}, Options{Schema: types})
		for _, change := range report.Changes {
			checkOutput(t, change)
		}
		for _, change := range []Change{
			Compare(t.Context(), nil, &after, Options{Schema: types}),
			Compare(t.Context(), &before, nil, Options{Schema: types}),
			Compare(t.Context(), &before, &manifest.Object{Ref: ref, JSON: slices.Clone(old)}, Options{Schema: types}),
		} {
			checkOutput(t, change)
			if change.Kind == Changed {
				t.Errorf("compared with itself: %s", fmt.Sprint(summarise(change)))
			}
		}
	})
}
