package diff

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/diff/schema"
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
	definition := *difftest.Object(t, definitionOfX)
	x := func(spec string) manifest.Object {
		return *difftest.Object(t, "apiVersion: example.com/v1\nkind: X\nmetadata: {name: x}\nspec: "+spec)
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
			report := Revisions(t.Context(), []manifest.Object{old}, []manifest.Object{new, definition}, Options{Schema: difftest.Builtin(t)})
			var got []string
			if report.Changes[0].Kind == Changed {
				got = summarise(report.Changes[0])
				checkChange(t, schema.Layers(schema.NewDefinitions([]manifest.Object{definition})), &old, &new, report.Changes[0])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSetsArePrintedInPlace: items of a changed set are not printed as moved.
func TestSetsArePrintedInPlace(t *testing.T) {
	x := func(tags string) *manifest.Object {
		return difftest.Object(t, "apiVersion: example.com/v1\nkind: X\nmetadata: {name: x}\nspec: {tags: "+tags+"}")
	}
	types := schema.NewDefinitions([]manifest.Object{*difftest.Object(t, definitionOfX)})
	change := Compare(t.Context(), x("[a, b]"), x("[c, b, a]"), Options{Schema: types})
	if change.AddedLines != 1 || change.RemovedLines != 0 {
		t.Errorf("want one new line, got\n%s", change.Unified)
	}
}
