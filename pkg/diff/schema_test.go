package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

const definitionOfX = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: xs.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: X, plural: xs}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              mode: {type: string, default: Auto}
              tls:
                type: object
                default: {}
                properties:
                  enabled: {type: boolean, default: true}
              size:
                anyOf: [{type: integer}, {type: string}]
                pattern: '^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'
                x-kubernetes-int-or-string: true
              port: {x-kubernetes-int-or-string: true}
              tags:
                type: array
                x-kubernetes-list-type: set
                items: {type: string}
              routes:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [from, to]
                items:
                  type: object
                  properties:
                    to: {type: string, default: everywhere}
              budgets:
                type: object
                additionalProperties:
                  type: array
                  x-kubernetes-list-type: map
                  x-kubernetes-list-map-keys: [month]
                  items: {type: object}
`

func TestTypesOfTheBundle(t *testing.T) {
	definition := *object(t, definitionOfX)
	x := func(spec string) manifest.Object {
		return *object(t, "apiVersion: example.com/v1\nkind: X\nmetadata: {name: x}\nspec: "+spec)
	}
	cases := map[string]struct {
		reason, old, new string
		want             []string
	}{
		"Defaults":    {"the schema states them", "{}", "{mode: Auto, tls: {enabled: true}}", nil},
		"NoDefault":   {"another value is none", "{}", "{mode: Manual, tls: {enabled: false}}", []string{`add .spec.mode -> "Manual"`, `add .spec.tls -> {"enabled":false}`}},
		"Quantity":    {"known by the pattern that generators write", "{size: 1Gi}", "{size: 1024Mi}", nil},
		"IntOrString": {"is no quantity", "{port: 80}", "{port: '80'}", []string{`replace .spec.port 80 -> "80"`}},
		"Set":         {"its order says nothing", "{tags: [a, b]}", "{tags: [c, b, a]}", []string{`add .spec.tags[="c"] -> "c"`}},
		"OrderOfASet": {"its order says nothing", "{tags: [a, b]}", "{tags: [b, a]}", nil},
		"Keys": {
			"several keys, one of them by default", "{routes: [{from: a, v: 1}, {from: b, to: c}]}", "{routes: [{from: a, to: everywhere, v: 2}, {from: b, to: d}]}",
			[]string{
				`replace .spec.routes[from="a",to="everywhere"].v 1 -> 2`,
				`remove .spec.routes[from="b",to="c"] {"from":"b","to":"c"} ->`,
				`add .spec.routes[from="b",to="d"] -> {"from":"b","to":"d"}`,
			},
		},
		"KeysThatRepeat": {"then they are no keys", "{routes: [{from: a, v: 1}, {from: a, v: 2}]}", "{routes: [{from: a, v: 1}, {from: a, v: 3}]}", []string{`replace .spec.routes[1].v 2 -> 3`}},
		"ValuesOfMaps":   {"additionalProperties", "{budgets: {a: [{month: 1, v: 1}]}}", "{budgets: {a: [{month: 1, v: 2}]}}", []string{`replace .spec.budgets.a[month=1].v 1 -> 2`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			old, new := x(tc.old), x(tc.new)
			report := Revisions(t.Context(), []manifest.Object{old}, []manifest.Object{new, definition}, Options{Schema: builtinTypes(t)})
			var got []string
			if report.Changes[0].Kind == Changed {
				got = summarise(report.Changes[0])
				checkChange(t, Layers(BundleTypes([]manifest.Object{definition})), &old, &new, report.Changes[0])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSetsArePrintedInPlace: a set that changes is not printed as moved.
func TestSetsArePrintedInPlace(t *testing.T) {
	x := func(tags string) *manifest.Object {
		return object(t, "apiVersion: example.com/v1\nkind: X\nmetadata: {name: x}\nspec: {tags: "+tags+"}")
	}
	types := BundleTypes([]manifest.Object{*object(t, definitionOfX)})
	change := Compare(t.Context(), x("[a, b]"), x("[c, b, a]"), Options{Schema: types})
	if change.AddedLines != 1 || change.RemovedLines != 0 {
		t.Errorf("want one new line, got\n%s", change.Unified)
	}
}

func TestOpenAPI(t *testing.T) {
	const document = `{"components":{"schemas":{
		"com.example.X":{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"X"}],
			"properties":{"spec":{"allOf":[{"$ref":"#/components/schemas/com.example.Spec"}],"default":{}}}},
		"com.example.Spec":{"properties":{
			"self":{"$ref":"#/components/schemas/com.example.Spec"},
			"loop":{"$ref":"#/components/schemas/Loop"},
			"gone":{"$ref":"#/components/schemas/Gone"},
			"memory":{"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"}]},
			"items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object"}}}},
		"Loop":{"$ref":"#/components/schemas/Loop"},
		"io.k8s.apimachinery.pkg.api.resource.Quantity":{"type":"string"}}}}`
	types, err := NewOpenAPI([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	if got := types.TypeOf(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "X"}); got != nil {
		t.Errorf("got a type of a version that is not there: %v", got)
	}
	spec := types.TypeOf(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "X"}).Field("spec")
	shapes := map[string]Shape{
		"memory": spec.Field("self").Field("memory").Shape(),
		"items":  spec.Field("items").Shape(),
	}
	if diff := cmp.Diff(map[string]Shape{"memory": {Quantity: true}, "items": {List: ListMap, Keys: []string{"k"}}}, shapes); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	for _, name := range []string{"loop", "gone", "none"} {
		if got := spec.Field(name); got != nil {
			t.Errorf("%s: got %v, want no type", name, got)
		}
	}
	if _, err := NewOpenAPI([]byte("{")); err == nil {
		t.Error("read a document that is none")
	}
}

func TestBuiltinKnowsItsGroups(t *testing.T) {
	types := builtinTypes(t)
	for _, known := range []schema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "FlowSchema"},
		{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
	} {
		if types.TypeOf(known) == nil {
			t.Errorf("does not know %s", known)
		}
	}
	for _, foreign := range []schema.GroupVersionKind{
		{Group: "core", Version: "v1", Kind: "Pod"}, {Group: "apps.example.com", Version: "v1", Kind: "Deployment"},
		{Group: "storage.x-k8s.io", Version: "v1", Kind: "StorageClass"}, {Group: "policy.networking.k8s.io", Version: "v1", Kind: "Eviction"},
		{Group: "apps", Version: "v9", Kind: "Deployment"},
	} {
		if types.TypeOf(foreign) != nil {
			t.Errorf("takes %s for one of Kubernetes", foreign)
		}
	}
}

// TestDefaultsAreOfTypes finds rows of the table that no type has: they would
// never be used.
func TestDefaultsAreOfTypes(t *testing.T) {
	types := builtinTypes(t).(*builtin)
	for name, fields := range builtinDefaults() {
		known, ok := types.named(name).(*builtinType)
		if !ok {
			t.Errorf("no type %s", name)
			continue
		}
		for field := range fields {
			if _, ok := known.atom.Map.FindField(field); !ok {
				t.Errorf("%s has no field %s", name, field)
			}
		}
	}
}

// TestDocumentedDefaults keeps the table in the documentation what the code
// does; with -update it writes it.
func TestDocumentedDefaults(t *testing.T) {
	const file, begin, end = "../../docs/reference/diff.md", "<!-- defaults -->\n", "<!-- end of defaults -->\n"
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), begin)
	old, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no table of defaults", file)
	}
	want := defaultsTable(t)
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, old); diff != "" {
		t.Errorf("run the test with -update: -code, +documentation:\n%s", diff)
	}
}

func defaultsTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| type | absent means |\n|---|---|\n")
	all := builtinDefaults()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var parts []string
		for _, field := range slices.Sorted(maps.Keys(all[name])) {
			value := all[name][field]
			spelled := "depends on other fields"
			if _, isComputed := value.(computed); !isComputed {
				encoded, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				spelled = "`" + string(encoded) + "`"
			}
			parts = append(parts, fmt.Sprintf("%s %s", field, spelled))
		}
		short := strings.TrimPrefix(name, "io.k8s.api.")
		fmt.Fprintf(&b, "| %s | %s |\n", short, strings.Join(parts, ", "))
	}
	return b.String()
}
