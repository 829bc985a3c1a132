package definition

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

const widgets = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
"spec":{"group":"example.com","scope":"Namespaced","names":{"kind":"Widget","plural":"widgets"},"versions":[
 {"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{
  "spec":{"type":"object","required":["size"],"x-kubernetes-validations":[{"rule":"self.size <= self.most","message":"size is more than most"}],"properties":{
   "size":{"type":"integer","minimum":1},"most":{"type":"integer","default":10},
   "colour":{"type":"string","enum":["red","blue"]},
   "tags":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
   "free":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
  "status":{"type":"object","properties":{"ready":{"type":"boolean"}}}}}}},
 {"name":"v1alpha1","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason  string
		version string
		object  string
		exists  bool
		want    []string
	}{
		"good":          {reason: "a default makes the rule true", object: `"spec":{"size":10,"free":{"a":{"b":1}}}`},
		"missing":       {reason: "a field is required", object: `"spec":{}`, want: []string{"spec.size: Required"}},
		"no spec":       {reason: "an object without it has nothing to require", object: `"x":1`, want: []string{"x: Forbidden"}},
		"type":          {reason: "a number is no string", object: `"spec":{"size":"ten"}`, want: []string{"spec.size: Invalid"}},
		"enum":          {reason: "there are two", object: `"spec":{"size":1,"colour":"green"}`, want: []string{"spec.colour: Unsupported"}},
		"unknown field": {reason: "apply refuses it", object: `"spec":{"size":1,"colur":"red"}`, want: []string{"spec.colur: Forbidden"}},
		"set":           {reason: "twice the same", object: `"spec":{"size":1,"tags":["a","a"]}`, want: []string{"spec.tags[1]: Duplicate"}},
		"rule":          {reason: "beyond the default", object: `"spec":{"size":11}`, want: []string{"spec: Invalid"}},
		"status":        {reason: "nobody looks at it", object: `"spec":{"size":1},"status":{"ready":"yes"}`},
		"exists":        {reason: "its values may stay", object: `"spec":{"size":11}`, exists: true},
		"exists, unknown field": {
			reason: "a new field has to be declared", object: `"spec":{"size":11,"colur":"red"}`, exists: true, want: []string{"spec.colur: Forbidden"},
		},
		"not served": {reason: "no such version", version: "v1alpha1", object: `"spec":{}`, want: []string{"apiVersion: Unsupported"}},
		"homeless":   {reason: "the kind is namespaced", object: `"metadata":{"name":"w"},"spec":{"size":1}`, want: []string{"metadata.namespace: Required"}},
	}
	d, err := Parse([]byte(widgets))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(schema.GroupKind{Group: "example.com", Kind: "Widget"}, d.Kind()); diff != "" {
		t.Error(diff)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(tc.object, `"metadata"`) {
				tc.object = `"metadata":{"namespace":"a","name":"w"},` + tc.object
			}
			var object map[string]any
			if err := utiljson.Unmarshal([]byte(`{"apiVersion":"example.com/v1","kind":"Widget",`+tc.object+`}`), &object); err != nil {
				t.Fatal(err)
			}
			before := runtime.DeepCopyJSON(object)
			version := tc.version
			if version == "" {
				version = "v1"
			}
			findings, err := d.Validate(t.Context(), version, object, tc.exists)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range findings {
				what, _, _ := strings.Cut(f.ErrorBody(), " ")
				got = append(got, f.Field+": "+strings.TrimSuffix(what, ":"))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", tc.reason, diff, findings)
			}
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
		})
	}
}

// TestBrokenDefinitions: invalid definitions are left to the API server.
func TestBrokenDefinitions(t *testing.T) {
	for name, text := range map[string]string{
		"no schema":      `{"spec":{"versions":[{"name":"v1","served":true}]}}`,
		"not structural": `{"spec":{"versions":[{"name":"v1","served":true,"schema":{"openAPIV3Schema":{"properties":{"spec":{"items":{}}}}}}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if findings, err := d.Validate(t.Context(), "v1", map[string]any{}, false); err == nil {
				t.Errorf("no error, but %v", findings)
			}
		})
	}
	if _, err := Parse([]byte(`[]`)); err == nil {
		t.Error("a list is no definition")
	}
}
