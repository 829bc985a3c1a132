package diff

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestSpellings: a canonical manifest has another reader than other spellings. The diff must not
// depend on the reader of either side.
func TestSpellings(t *testing.T) {
	const (
		pod     = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":`
		foreign = `{"apiVersion":"example.com/v1","kind":"X","metadata":{"name":"x"},"spec":`
	)
	cases := map[string]struct {
		old, new string
		want     []string
	}{
		"KeyOrder":         {foreign + `{"a":1,"b":{"c":2,"d":3}}}`, foreign + `{"b":{"d":3,"c":2},"a":1}}`, nil},
		"KeyOrderAndMore":  {foreign + `{"a":1,"b":2}}`, foreign + `{"b":3,"a":1}}`, []string{".spec.b"}},
		"Duplicates":       {foreign + `{"a":1}}`, foreign + `{"a":2,"a":1}}`, nil},
		"DuplicatesDiffer": {foreign + `{"a":1,"a":2}}`, foreign + `{"a":2,"a":1}}`, []string{".spec.a"}},
		"ListMapReorder":   {pod + `[{"name":"a"},{"name":"b"}]}}`, pod + `[{"name":"b"},{"name":"a"}]}}`, []string{".spec.containers"}},
		"ListMapDuplicate": {pod + `[{"name":"a"},{"name":"a"}]}}`, pod + `[{"name":"a"}]}}`, []string{".spec.containers[1]"}},
		"PortsReorder": {
			pod + `[{"name":"a","ports":[{"containerPort":1,"protocol":"TCP"},{"containerPort":2}]}]}}`,
			pod + `[{"name":"a","ports":[{"containerPort":2,"protocol":"TCP"},{"containerPort":1}]}]}}`,
			[]string{`.spec.containers[name="a"].ports`},
		},
		"SetReorder": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"finalizers":["b/c","d/e"],"name":"x"}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"finalizers":["d/e","b/c"],"name":"x"}}`, nil,
		},
		"GuessedKeys":  {foreign + `[{"name":"a","v":1},{"name":"b","v":1}]}`, foreign + `[{"name":"b","v":2},{"name":"a","v":1}]}`, []string{".spec", `.spec[name="b"].v`}},
		"Implied":      {pod + `[{"image":"i:1","name":"a"}]}}`, pod + `[{"args":[],"image":"i:1","imagePullPolicy":"IfNotPresent","name":"a"}]}}`, nil},
		"NotImplied":   {pod + `[{"image":"i:1","name":"a"}]}}`, pod + `[{"image":"i:1","imagePullPolicy":"Always","name":"a"}]}}`, []string{`.spec.containers[name="a"].imagePullPolicy`}},
		"Quantities":   {pod + `[{"name":"a","resources":{"limits":{"cpu":0.5}}}]}}`, pod + `[{"name":"a","resources":{"limits":{"cpu":"500m"}}}]}}`, nil},
		"Nulls":        {foreign + `{"a":null,"b":[null]}}`, foreign + `{"b":[null,null]}}`, []string{".spec.b[1]"}},
		"Numbers":      {foreign + `{"a":1.0,"b":1e2,"c":9007199254740993}}`, foreign + `{"a":1,"b":100,"c":9007199254740992}}`, []string{".spec.c"}},
		"Escapes":      {foreign + `{"a":"\u003c","b":"\/"}}`, foreign + `{"a":"<","b":"/x"}}`, []string{".spec.b"}},
		"SecretInside": {foreign + `{"a":1,"t":{"apiVersion":"v1","data":{"p":"eA=="},"kind":"Secret"}}}`, foreign + `{"a":1,"t":{"apiVersion":"v1","data":{"p":"eQ=="},"kind":"Secret"}}}`, []string{".spec.t.data.p"}},
		"ServerFields": {
			`{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"penstock.dev/x":"y"},"name":"x","uid":"1"},"status":{"a":1}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{},"name":"x","uid":"2"}}`, nil,
		},
		"NoJSON": {foreign + `{"a":`, foreign + `{}}`, nil},
	}
	options := Options{Schema: difftest.Builtin(t), Limits: unlimited()}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ref := difftest.Object(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: x}").Ref
			if tc.old[:len(`{"apiVersion":"v1"`)] != `{"apiVersion":"v1"` {
				ref.Group, ref.ID.Kind = "example.com", "X"
			}
			ref.Digest = ""
			old, new := &manifest.Object{Ref: ref, JSON: []byte(tc.old)}, &manifest.Object{Ref: ref, JSON: []byte(tc.new)}
			want := Compare(t.Context(), respelled(old), respelled(new), options)
			var paths []string
			for _, field := range want.Fields {
				paths = append(paths, field.Path)
			}
			if diff := cmp.Diff(tc.want, paths); diff != "" {
				t.Errorf("-want +got: %s", diff)
			}
			for side, got := range map[string]Change{
				"neither": Compare(t.Context(), old, new, options),
				"old":     Compare(t.Context(), respelled(old), new, options),
				"new":     Compare(t.Context(), old, respelled(new), options),
			} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("respelled: -both, +%s: %s", side, diff)
				}
			}
		})
	}
}

func TestEqualDigestsAreNotDecoded(t *testing.T) {
	var old, new, oldUnread, newUnread []manifest.Object
	for i := range 20 {
		write := func(version int) manifest.Object {
			return *difftest.Object(t, fmt.Sprintf("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x%d.example.com, labels: {v: '%d'}}", i, version))
		}
		if i%4 == 0 {
			old, new = append(old, write(1)), append(new, write(2))
			oldUnread, newUnread = append(oldUnread, write(1)), append(newUnread, write(2))
			continue
		}
		same := write(1)
		old, new = append(old, same), append(new, same)
		same.JSON = []byte("no JSON")
		oldUnread = append(oldUnread, same)
		same.JSON = []byte(`{"and":"other JSON on the other side"}`)
		newUnread = append(newUnread, same)
	}
	options := Options{Schema: difftest.Builtin(t)}
	want, got := Revisions(t.Context(), old, new, options), Revisions(t.Context(), oldUnread, newUnread, options)
	want.Summary.OldBytes, want.Summary.NewBytes = got.Summary.OldBytes, got.Summary.NewBytes
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-with all manifests, +with those that changed: %s", diff)
	}
	if want.Summary.Changed != 5 || want.Summary.Unchanged != 15 {
		t.Errorf("%s, %d unchanged; want 5 changed and 15 unchanged", want.Summary, want.Summary.Unchanged)
	}
}
