package directory

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// deployment returns a Deployment with one container that has two more lines.
func deployment(container string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: b}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n" +
		"    metadata: {labels: {a: b}}\n    spec:\n      containers:\n      - name: main\n        image: x\n" + container
}

func TestApplyCheck(t *testing.T) {
	twice := deployment("        env:\n        - name: A\n          value: one\n        - {name: B, value: x}\n        - name: A\n          value: two\n")
	cases := map[string]struct {
		reason                 string
		files                  files
		content                string
		warnings, wantProblems []string
	}{
		"Mended": {
			reason:  "the last value stays at its place, and the warning names both lines",
			files:   files{"a.yaml": "# x\n---\n" + twice},
			content: `"env":[{"name":"B","value":"x"},{"name":"A","value":"two"}]`,
			warnings: []string{`a.yaml:15: Deployment.apps b/a: spec.template.spec.containers[0].env[0]: "A" is set again in item 2 (counted from 0), ` +
				`and the last value counts: this one is left out (line 18 stays)`},
		},
		"Refused": {
			reason: "what has no one meaning names both lines; what is mended beside it is told too",
			files:  files{"a.yaml": twice + "        ports:\n        - {containerPort: 1, name: a}\n        - {containerPort: 1, name: b}\n"},
			warnings: []string{`a.yaml:13: Deployment.apps b/a: spec.template.spec.containers[0].env[0]: "A" is set again in item 2 (counted from 0), ` +
				`and the last value counts: this one is left out (line 16 stays)`},
			wantProblems: []string{`a.yaml:20: Deployment.apps b/a: spec.template.spec.containers[0].ports[1]: items 0 and 1 of the list (counted from 0) have the same key ` +
				`(containerPort 1, protocol "TCP"): server-side apply accepts each only once (first: line 19)`},
		},
		"Unknown": {
			reason:   "a field that this version does not know may be one of a newer cluster",
			files:    files{"a.yaml": deployment("        restart: never\n")},
			content:  `"restart":"never"`,
			warnings: []string{`a.yaml:12: Deployment.apps b/a: spec.template.spec.containers[0].restart: is not a field of this type: a cluster that does not know it refuses the object`},
		},
		"Defined": {
			reason: "a definition that is here says which fields there are, in whichever order they come",
			files: files{
				"a.yaml": "apiVersion: example.com/v1\nkind: X\nmetadata: {name: a}\nspec:\n  names: [a, b, a]\n  nonsense: 1\n",
				"b.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: xs.example.com}\nspec:\n  group: example.com\n  scope: Cluster\n" +
					"  names: {kind: X, plural: xs}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, " +
					"properties: {names: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}}}}\n",
			},
			wantProblems: []string{
				`a.yaml:5: X.example.com a: spec.names[2]: items 0 and 2 of the list (counted from 0) are equal: server-side apply accepts each only once (first: line 5)`,
				`a.yaml:6: X.example.com a: spec.nonsense: is not a field of this type`,
			},
		},
		"JSON": {
			reason:  "JSON has lines too",
			files:   files{"a.json": "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"containers\":[{\"name\":\"a\",\"env\":[\n{\"name\":\"A\"},\n{\"name\":\"A\"}]}]}}"},
			content: `"env":[{"name":"A"}]`,
			warnings: []string{
				`a.json:3: Pod a: spec.containers[0].env[1]: repeats item 0 (counted from 0) and is left out (line 2 stays)`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var warnings []string
			phases, err := tc.files.render(Options{Warn: func(one Error) { warnings = append(warnings, one.Error()) }})
			if diff := cmp.Diff(tc.warnings, warnings); diff != "" {
				t.Errorf("%s: warnings: -want, +got:\n%s", tc.reason, diff)
			}
			if want := strings.Join(tc.wantProblems, "\n"); want != "" {
				if err == nil || err.Error() != want {
					t.Errorf("%s: got\n%v\nwant\n%s", tc.reason, err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(phases[0].Objects[0].JSON); !strings.Contains(got, tc.content) {
				t.Errorf("%s: %s has no %s", tc.reason, got, tc.content)
			}
		})
	}
}
