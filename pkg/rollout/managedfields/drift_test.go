package managedfields

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

// object decodes JSON as the engine and the client do.
func object(t *testing.T, raw string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(raw), &o); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return o
}

func TestContains(t *testing.T) {
	cases := map[string]struct {
		reason       string
		wanted, live string
		want         bool
	}{
		"equal":               {"nothing differs", `{"a":1,"b":"x","c":true,"d":1.5}`, `{"a":1,"b":"x","c":true,"d":1.5}`, true},
		"more":                {"others add what they like", `{"a":{"b":1}}`, `{"a":{"b":1,"c":2},"d":3}`, true},
		"value":               {"a value differs", `{"a":{"b":1}}`, `{"a":{"b":2}}`, false},
		"missing":             {"a value is gone", `{"a":{"b":1}}`, `{"a":{}}`, false},
		"missing map":         {"a map is gone with what was in it", `{"a":{"b":1}}`, `{}`, false},
		"type":                {"text is no number", `{"a":"1"}`, `{"a":1}`, false},
		"null":                {"null asks for nothing", `{"a":null}`, `{}`, true},
		"null, there":         {"null asks for nothing", `{"a":null}`, `{"a":1}`, true},
		"empty map":           {"servers drop empty maps", `{"a":{}}`, `{}`, true},
		"empty list":          {"and empty lists", `{"a":[]}`, `{}`, true},
		"false":               {"and what is the zero value of its type", `{"paused":false}`, `{}`, true},
		"zero":                {"the same", `{"minReadySeconds":0}`, `{}`, true},
		"empty text":          {"the same", `{"storageClassName":""}`, `{}`, true},
		"false, now true":     {"but what is there must be right", `{"paused":false}`, `{"paused":true}`, false},
		"zero, now one":       {"the same", `{"replicas":0}`, `{"replicas":1}`, false},
		"true":                {"true is no zero value", `{"paused":true}`, `{}`, false},
		"quantity":            {"no schema says that these are equal: one apply settles it", `{"cpu":"0.5"}`, `{"cpu":"500m"}`, false},
		"scalars":             {"lists of scalars are compared as they are", `{"a":["x","y"]}`, `{"a":["x","y"]}`, true},
		"scalars, longer":     {"one more may be atomic", `{"a":["x"]}`, `{"a":["x","y"]}`, false},
		"scalars, order":      {"order may mean something", `{"a":["x","y"]}`, `{"a":["y","x"]}`, false},
		"scalars, gone":       {"a list with content is wanted", `{"a":["x"]}`, `{}`, false},
		"maps":                {"servers default fields in items", `{"c":[{"name":"a"}]}`, `{"c":[{"name":"a","pull":"Always"}]}`, true},
		"maps, order":         {"items of maps are found in any order", `{"c":[{"name":"a"},{"name":"b"}]}`, `{"c":[{"name":"b"},{"name":"x"},{"name":"a"}]}`, true},
		"maps, item gone":     {"one is missing", `{"c":[{"name":"a"},{"name":"b"}]}`, `{"c":[{"name":"b"}]}`, false},
		"maps, value in item": {"one differs", `{"c":[{"name":"a","image":"x:1"}]}`, `{"c":[{"name":"a","image":"x:2"}]}`, false},
		"mixed list":          {"a list that is not of maps alone is compared as it is", `{"c":[{"a":1},"x"]}`, `{"c":[{"a":1,"b":2},"x"]}`, false},
		"map for scalar":      {"another shape", `{"a":{"b":1}}`, `{"a":"b"}`, false},
		"scalar for map":      {"another shape", `{"a":"b"}`, `{"a":{"b":1}}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Contains(object(t, tc.wanted), object(t, tc.live)); got != tc.want {
				t.Errorf("%s: got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestFindDrift(t *testing.T) {
	const us = `{"manager":"penstock/argocd","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":`
	entry := func(manager, operation, subresource, fields string) string {
		return `{"manager":"` + manager + `","operation":"` + operation + `","subresource":"` + subresource +
			`","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":` + fields + `}`
	}
	cases := map[string]struct {
		reason       string
		wanted, live string
		managed      string
		want         []string
	}{
		"nothing": {
			reason: "all is as wanted", wanted: `{"data":{"a":"1"}}`, live: `{"data":{"a":"1"}}`,
			managed: us + `{"f:data":{"f:a":{}}}}`,
		},
		"changed": {
			reason: "the other one has the field now", wanted: `{"data":{"a":"1","b":"2"}}`, live: `{"data":{"a":"9","b":"2"}}`,
			managed: us + `{"f:data":{"f:b":{}}}},` + entry("kubectl-edit", "Update", "", `{"f:data":{"f:a":{}}}`),
			want:    []string{".data.a was changed by kubectl-edit"},
		},
		"removed": {
			reason: "nobody has it", wanted: `{"data":{"a":"1","b":"2"}}`, live: `{"data":{"b":"2"}}`,
			managed: us + `{"f:data":{"f:b":{}}}}`,
			want:    []string{".data.a was removed"},
		},
		"removed with all in it": {
			reason: "one line says it", wanted: `{"spec":{"template":{"a":"1","b":{"c":"2"}}}}`, live: `{"spec":{}}`,
			managed: us + `{}}`,
			want:    []string{".spec.template was removed"},
		},
		"list by key": {
			reason: "an item is named by its key", wanted: `{"spec":{"containers":[{"name":"a","image":"x:1"},{"name":"b","image":"y:1"}]}}`,
			live:    `{"spec":{"containers":[{"name":"b","image":"y:1"},{"name":"a","image":"x:2"}]}}`,
			managed: us + `{}},` + entry("argocd", "Update", "", `{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:image":{}}}}}`),
			want:    []string{`.spec.containers[name="a"].image was changed by argocd`},
		},
		"list by two keys": {
			reason:  "the second port has the same number",
			wanted:  `{"spec":{"ports":[{"port":53,"protocol":"TCP","name":"a"},{"port":53,"protocol":"UDP","name":"b"}]}}`,
			live:    `{"spec":{"ports":[{"port":53,"protocol":"TCP","name":"a"},{"port":53,"protocol":"UDP","name":"c"}]}}`,
			managed: us + `{}},` + entry("x", "Update", "", `{"f:spec":{"f:ports":{"k:{\"port\":53,\"protocol\":\"UDP\"}":{"f:name":{}}}}}`),
			want:    []string{`.spec.ports[port=53,protocol="UDP"].name was changed by x`},
		},
		"set": {
			reason: "an element that others added is no Drift", wanted: `{"metadata":{"finalizers":["a"]}}`, live: `{"metadata":{"finalizers":["a","b"]}}`,
			managed: us + `{}},` + entry("x", "Update", "", `{"f:metadata":{"f:finalizers":{"v:\"b\"":{}}}}`),
		},
		"list by index": {
			reason: "also lists of items by number", wanted: `{"spec":{"list":["a","b"]}}`, live: `{"spec":{"list":["a","c"]}}`,
			managed: us + `{}},` + entry("x", "Update", "", `{"f:spec":{"f:list":{"i:1":{}}}}`),
			want:    []string{".spec.list[1] was changed by x"},
		},
		"same value": {
			reason: "who writes what we want takes nothing", wanted: `{"data":{"a":"1"}}`, live: `{"data":{"a":"1"}}`,
			managed: us + `{}},` + entry("x", "Update", "", `{"f:data":{"f:a":{}}}`),
		},
		"still ours": {
			reason: "two managers of one value: the manifest changed, nobody else", wanted: `{"data":{"a":"2"}}`, live: `{"data":{"a":"1"}}`,
			managed: us + `{"f:data":{"f:a":{}}}},` + entry("x", "Update", "", `{"f:data":{"f:a":{}}}`),
		},
		"status": {
			reason: "status is not ours to lose", wanted: `{"status":{"a":"1"},"spec":{}}`, live: `{"status":{"a":"2"},"spec":{}}`,
			managed: us + `{}},` + entry("kubelet", "Update", "status", `{"f:status":{"f:a":{}}}`),
		},
		"two entries of one manager": {
			reason: "the entries of several versions are one", wanted: `{"data":{"a":"1","b":"2"}}`, live: `{"data":{"a":"8","b":"9"}}`,
			managed: entry("x", "Update", "", `{"f:data":{"f:a":{}}}`) + "," + entry("x", "Apply", "", `{"f:data":{"f:b":{}}}`),
			want:    []string{".data.a was changed by x", ".data.b was changed by x"},
		},
		"same name, other operation": {
			reason: "an update under our name is not our apply", wanted: `{"data":{"a":"1"}}`, live: `{"data":{"a":"2"}}`,
			managed: entry("penstock/argocd", "Update", "", `{"f:data":{"f:a":{}}}`),
			want:    []string{".data.a was changed by penstock/argocd"},
		},
		"quantity": {
			reason: "the server spells it differently, and nobody took it", wanted: `{"spec":{"cpu":"0.5"}}`, live: `{"spec":{"cpu":"500m"}}`,
			managed: us + `{"f:spec":{"f:cpu":{}}}}`,
		},
		"null": {
			reason: "null asks for nothing", wanted: `{"metadata":{"creationTimestamp":null}}`, live: `{"metadata":{}}`, managed: us + `{}}`,
		},
		"dropped by the server": {
			reason: "what is empty is not stored; it is still ours",
			wanted: `{"spec":{"paused":false,"minReadySeconds":0,"selector":{},"list":[],"class":""}}`, live: `{"spec":{}}`,
			managed: us + `{"f:spec":{"f:paused":{},"f:minReadySeconds":{},"f:selector":{},"f:list":{},"f:class":{}}}}`,
		},
		"removed by a webhook": {
			reason: "nobody claims what a webhook did, but it is gone", wanted: `{"spec":{"a":"1","deep":{"b":"2"}}}`, live: `{"spec":{"deep":{}}}`,
			managed: us + `{"f:spec":{"f:a":{},"f:deep":{"f:b":{}}}}}`,
			want:    []string{".spec.a was removed", ".spec.deep.b was removed"},
		},
		"unreadable entry": {
			reason: "managedFields that cannot be parsed hide only themselves", wanted: `{"data":{"a":"1"}}`, live: `{"data":{}}`,
			managed: entry("x", "Update", "", `"nonsense"`),
			want:    []string{".data.a was removed"},
		},
		"wiped managedFields": {
			reason: "nobody can be named, but it is another value", wanted: `{"data":{"a":"1","b":"2"}}`, live: `{"data":{"a":"9","b":"2"}}`,
			want: []string{".data.a was changed, and no field manager owns it"},
		},
		"keys with dots": {
			reason: "a label", wanted: `{"metadata":{"labels":{"penstock.dev/chain":"argocd"}}}`, live: `{"metadata":{"labels":{}}}`,
			managed: us + `{}}`,
			want:    []string{".metadata.labels.penstock.dev/chain was removed"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{Object: object(t, tc.live)}
			var managed []any
			managed, _ = object(t, `{"list":[`+tc.managed+`]}`)["list"].([]any)
			if err := unstructured.SetNestedSlice(live.Object, managed, "metadata", "managedFields"); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range FindDrift(object(t, tc.wanted), live, manager) {
				got = append(got, l.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	many := make([]Drift, 7)
	for i := range many {
		many[i] = Drift{Path: ".a", Manager: "x"}
	}
	cases := map[string]struct {
		drifts []Drift
		want   string
	}{
		"none": {nil, "a value differs although no field manager owns it"},
		"two":  {[]Drift{{Path: ".a", Manager: "x"}, {Path: ".b", Gone: true}}, ".a was changed by x, .b was removed"},
		"many": {many, ".a was changed by x, .a was changed by x, .a was changed by x, .a was changed by x, .a was changed by x, and 2 more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Describe(tc.drifts); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
