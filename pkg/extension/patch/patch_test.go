package patch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// objects returns a Deployment, a Service and a Secret in the namespace lamps.
func objects(t *testing.T) []*manifest.Object {
	t.Helper()
	var all []*manifest.Object
	for _, one := range []string{
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"lamps"},"spec":{"replicas":1,"template":{"spec":{"containers":[{"name":"main","image":"x","livenessProbe":{"exec":{}}}]}}}}`,
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"job","namespace":"lamps"},"spec":{"replicas":1}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"lamps"},"spec":{"type":"ClusterIP"}}`,
	} {
		object, err := manifest.Parse([]byte(one))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &object)
	}
	return all
}

// TestApply: each patch sees the result of the patches before it, and every patch must match.
func TestApply(t *testing.T) {
	const web = `target: {group: apps, kind: Deployment, name: web}`
	for name, tc := range map[string]struct {
		patches string
		// want is the expected content of the first object; fails is the expected error.
		want, fails string
		fields      []string
	}{
		"Merge":      {patches: `{` + web + `, type: Merge, patch: {spec: {replicas: 3}}}`, want: `"replicas":3`, fields: []string{"spec.replicas"}},
		"Delete":     {patches: `{` + web + `, type: Merge, patch: {spec: {replicas: null}}}`, want: `"spec":{"template"`, fields: []string{"spec.replicas"}},
		"Probe":      {patches: `{` + web + `, type: JSON, patch: [{op: remove, path: /spec/template/spec/containers/0/livenessProbe}]}`, want: `[{"image":"x","name":"main"}]`, fields: []string{"spec.template.spec.containers.0.livenessProbe"}},
		"Key":        {patches: `{` + web + `, type: JSON, patch: [{op: add, path: /metadata/labels, value: {}}, {op: add, path: /metadata/labels/a.io~1b, value: c}]}`, want: `"labels":{"a.io/b":"c"}`, fields: []string{"metadata.labels", `metadata.labels["a.io/b"]`}},
		"Twice":      {patches: `{` + web + `, type: Merge, patch: {spec: {replicas: 3}}}, {` + web + `, type: JSON, patch: [{op: test, path: /spec/replicas, value: 3}, {op: replace, path: /spec/replicas, value: 4}]}`, want: `"replicas":4`, fields: []string{"spec.replicas", "spec.replicas"}},
		"Two":        {patches: `{target: {group: apps, kind: Deployment}, count: 2, type: Merge, patch: {spec: {replicas: 3}}}`, want: `"replicas":3`, fields: []string{"spec.replicas", "spec.replicas"}},
		"Count":      {patches: `{target: {group: apps, kind: Deployment}, count: 1, type: Merge, patch: {spec: {replicas: 3}}}`, fails: "patch 1 matches 2 objects, and count is 1: its target is Deployment.apps"},
		"None":       {patches: `{` + web + `, type: Merge, patch: {spec: {replicas: 3}}}, {target: {group: apps, kind: Deployment, namespace: lamps, name: gone}, type: Merge, patch: {spec: {replicas: 3}}}`, fails: "patch 2 matches no object: its target is Deployment.apps lamps/gone"},
		"Group":      {patches: `{target: {kind: Deployment, name: web}, type: Merge, patch: {spec: {replicas: 3}}}`, fails: "patch 1 matches no object"},
		"Namespace":  {patches: `{target: {group: apps, kind: Deployment, namespace: other}, type: Merge, patch: {spec: {replicas: 3}}}`, fails: "matches no object"},
		"Renames":    {patches: `{` + web + `, type: Merge, patch: {metadata: {name: other}}}`, fails: "apiVersion, kind, name and namespace do not change"},
		"Moves":      {patches: `{` + web + `, type: Merge, patch: {metadata: {namespace: null}}}`, fails: "do not change"},
		"Kind":       {patches: `{` + web + `, type: JSON, patch: [{op: replace, path: /kind, value: Secret}, {op: replace, path: /apiVersion, value: v1}]}`, fails: "do not change"},
		"Version":    {patches: `{` + web + `, type: Merge, patch: {apiVersion: apps/v2}}`, fails: "do not change"},
		"Ours":       {patches: `{` + web + `, type: Merge, patch: {metadata: {annotations: {penstock.dev/level: "1"}}}}`, fails: "is reserved for what Penstock writes itself"},
		"Missing":    {patches: `{` + web + `, type: JSON, patch: [{op: replace, path: /spec/none/deep, value: 3}]}`, fails: "patch 1 cannot be applied to Deployment.apps lamps/web"},
		"FailedTest": {patches: `{` + web + `, type: JSON, patch: [{op: test, path: /spec/replicas, value: 9}]}`, fails: "patch 1 cannot be applied"},
		"NoObject":   {patches: `{` + web + `, type: JSON, patch: [{op: add, path: /metadata, value: []}]}`, fails: "no manifest afterwards"},
	} {
		t.Run(name, func(t *testing.T) {
			patches, err := Parse("[" + tc.patches + "]")
			if err != nil {
				t.Fatal(err)
			}
			all := objects(t)
			applied, err := Apply(patches, all)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Fatalf("got %v, want %s", err, tc.fails)
				}
				return
			}
			if err != nil || !strings.Contains(string(all[0].JSON), tc.want) {
				t.Fatalf("got %s, %v, want %s", all[0].JSON, err, tc.want)
			}
			var fields []string
			for _, one := range applied {
				fields = append(fields, one.Fields...)
			}
			if diff := cmp.Diff(tc.fields, fields); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// TestBounds: a short patch that matches many objects is limited in time and memory.
func TestBounds(t *testing.T) {
	many := func(count int) []*manifest.Object {
		var all []*manifest.Object
		for i := range count {
			object, err := manifest.Parse([]byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m-%d"}}`, i)))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, &object)
		}
		return all
	}
	apply := func(text string, count int) error {
		patches, err := Parse("[{target: {kind: ConfigMap}, type: Merge, patch: {data: {a: " + text + "}}}]")
		if err != nil {
			t.Fatal(err)
		}
		_, err = Apply(patches, many(count))
		return err
	}
	if err := apply("b", MaxMatches); err != nil {
		t.Error(err)
	}
	if err := apply("b", MaxMatches+1); err == nil || !strings.Contains(err.Error(), "match more than 1000 objects together") {
		t.Errorf("got %v", err)
	}
	if err := apply(strings.Repeat("b", 100<<10), 100); err == nil || !strings.Contains(err.Error(), "bytes larger together") {
		t.Errorf("got %v", err)
	}
}

// TestParse: a text that is not a list of patches is refused.
func TestParse(t *testing.T) {
	operations := `{target: {kind: Service}, type: JSON, patch: [` + strings.Repeat("{op: remove, path: /a},", 501) + `]}`
	for name, tc := range map[string]struct{ value, want string }{
		"NoList":     {`{}`, "it must be a list of patches"},
		"Empty":      {`[]`, "it has 0 patches, and must have 1 to 64"},
		"Many":       {"[" + strings.Repeat("{target: {kind: Service}, type: Merge, patch: {a: 1}},", 65) + "]", "it has 65 patches"},
		"Unknown":    {`[{target: {kind: Service, labels: {}}, type: Merge, patch: {a: 1}}]`, "unknown field"},
		"NoKind":     {`[{target: {name: web}, type: Merge, patch: {a: 1}}]`, "patch 1: target.kind is missing"},
		"Secret":     {`[{target: {kind: Secret}, type: Merge, patch: {data: {a: Yg==}}}]`, "a Secret must not be"},
		"Type":       {`[{target: {kind: Service}, type: Strategic, patch: {a: 1}}]`, `type is "Strategic", and must be Merge or JSON`},
		"Count":      {`[{target: {kind: Service}, type: Merge, patch: {a: 1}, count: 0}]`, "count is 0, and must be 1 or more"},
		"NoPatch":    {`[{target: {kind: Service}, type: Merge}]`, "must be an object with fields"},
		"MergeList":  {`[{target: {kind: Service}, type: Merge, patch: [1]}]`, "must be an object with fields"},
		"Directive":  {`[{target: {kind: Service}, type: Merge, patch: {spec: {$patch: delete}}}]`, "spec.$patch is a directive of strategic merge patches"},
		"JSONObject": {`[{target: {kind: Service}, type: JSON, patch: {a: 1}}]`, "must be a list of operations"},
		"NoOps":      {`[{target: {kind: Service}, type: JSON, patch: []}]`, "must be a list of operations"},
		"Copy":       {`[{target: {kind: Service}, type: JSON, patch: [{op: copy, from: /spec, path: /spec/a}]}]`, `operation 1 is "copy", and must be add, remove, replace, move or test`},
		"NoOp":       {`[{target: {kind: Service}, type: JSON, patch: [{path: /spec}]}]`, "operation 1 is"},
		"NoPath":     {`[{target: {kind: Service}, type: JSON, patch: [{op: remove}]}]`, "operation 1 has no path"},
		"Root":       {`[{target: {kind: Service}, type: JSON, patch: [{op: replace, path: "", value: {}}]}]`, "operation 1 has no path"},
		"NoFrom":     {`[{target: {kind: Service}, type: JSON, patch: [{op: move, path: /a}]}]`, "operation 1 has no from"},
		"Null":       {`[{target: {kind: Service}, type: JSON, patch: [null]}]`, "operation 1 is"},
		"Operations": {"[" + operations + "," + operations + "]", fmt.Sprintf("its patches have %d operations, and may have at most %d", 1002, MaxOperations)},
	} {
		if _, err := Parse(tc.value); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
	}
}

// FuzzPatch: no patch causes a panic or changes the identity of an object.
func FuzzPatch(f *testing.F) {
	f.Add(`[{target: {group: apps, kind: Deployment}, type: JSON, patch: [{op: move, from: /spec, path: /spec/replicas}]}]`)
	f.Add(`[{target: {kind: Service}, type: JSON, patch: [{op: add, path: /spec/-1, value: null}, {op: remove, path: /metadata/~}]}]`)
	f.Add(`[{target: {kind: Service}, type: Merge, patch: {spec: null, metadata: {labels: {a: null}}}}]`)
	f.Fuzz(func(t *testing.T, value string) {
		patches, err := Parse(value)
		if err != nil {
			return
		}
		all := objects(t)
		if _, err := Apply(patches, all); err != nil {
			return
		}
		for i, was := range objects(t) {
			if all[i].ID != was.ID || all[i].Version != was.Version {
				t.Errorf("%s became %s", was.ID, all[i].ID)
			}
		}
	})
}
