package diff

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// anyDeployment generates objects with typed fields: keys, quantities, defaults, sets.
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

// anyPair generates two objects of the same identity.
func anyPair(t *rapid.T) (old, new *manifest.Object) {
	make := func(label string) *manifest.Object {
		var value map[string]any
		if rapid.Bool().Draw(t, "custom") {
			value = map[string]any{"apiVersion": "example.com/v1", "kind": "X", "metadata": map[string]any{"name": "d"}}
			value["spec"] = difftest.AnyValue(3).Draw(t, label)
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
			// The pairing of similar items may depend on the direction. The existence of a
			// difference must not.
			if there.Kind != back.Kind {
				rt.Fatalf("there %s, back %s", there.Kind, back.Kind)
			}
		}
		if diff := cmp.Diff(Compare(t.Context(), respelled(old), respelled(new), options), there); diff != "" {
			rt.Fatalf("-of manifests in another spelling, +of canonical ones: %s", diff)
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

// respelled returns the same manifest in a spelling that is not canonical, which another reader
// parses.
func respelled(object *manifest.Object) *manifest.Object {
	if object == nil {
		return nil
	}
	other := *object
	other.Digest, other.JSON = "", append([]byte(" "), object.JSON...)
	return &other
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
		{ID: manifest.ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "x"}, Version: "v1"},
		{ID: manifest.ID{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding", Name: "x"}, Version: "v1"},
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
