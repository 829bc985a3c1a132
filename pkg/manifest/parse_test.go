package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     string
		want   Ref
		json   string
	}{
		"Core": {
			reason: "the core group has no name",
			in:     `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"n"},"data":{"b":"1","a":"2"}}`,
			want:   Ref{ID: ID{Kind: "ConfigMap", Namespace: "n", Name: "a"}, Version: "v1"},
			json:   `{"apiVersion":"v1","data":{"a":"2","b":"1"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"n"}}`,
		},
		"ServerFilled": {
			reason: "what encoders of Go types and old generators leave behind is dropped, also when empty",
			in: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"","creationTimestamp":null,
				"labels":null,"annotations":null,"uid":"","resourceVersion":"","generation":0,"managedFields":[],
				"ownerReferences":null,"finalizers":[]},"spec":{"template":{"metadata":{"creationTimestamp":null}}},"status":{"x":1}}`,
			want: Ref{ID: ID{Group: "apps", Kind: "Deployment", Name: "a"}, Version: "v1"},
			json: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"metadata":{"creationTimestamp":null}}}}`,
		},
		"StringData": {
			reason: "a Secret stays as it was written",
			in:     `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"p":"x"}}`,
			want:   Ref{ID: ID{Kind: "Secret", Name: "a"}, Version: "v1"},
			json:   `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"p":"x"}}`,
		},
		"NameWithColon": {
			reason: "names of RBAC objects are path segments, not DNS labels",
			in:     `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"system:a:B"}}`,
			want:   Ref{ID: ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "system:a:B"}, Version: "v1"},
			json:   `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"system:a:B"}}`,
		},
		"NullEntries": {
			reason: "an API server takes a null label or annotation as empty text",
			in:     `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"x":null},"annotations":{"b":"c","y":null}},"data":{"k":null}}`,
			want:   Ref{ID: ID{Kind: "ConfigMap", Name: "a"}, Version: "v1"},
			json:   `{"apiVersion":"v1","data":{"k":null},"kind":"ConfigMap","metadata":{"annotations":{"b":"c","y":""},"labels":{"x":""},"name":"a"}}`,
		},
		"KindNamedList": {
			reason: "a kind may end in List as long as it has no items",
			in:     `{"apiVersion":"example.com/v1","kind":"AllowList","metadata":{"name":"a"}}`,
			want:   Ref{ID: ID{Group: "example.com", Kind: "AllowList", Name: "a"}, Version: "v1"},
			json:   `{"apiVersion":"example.com/v1","kind":"AllowList","metadata":{"name":"a"}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(tc.in))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(Object{Ref: tc.want, JSON: []byte(tc.json)}, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	metadata := func(more string) string {
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a",` + more + `}}`
	}
	type finding struct {
		Field string
		Type  field.ErrorType
	}
	cases := map[string]struct {
		reason string
		in     string
		want   []finding
	}{
		"Nothing": {
			reason: "everything that is missing is said at once",
			in:     `{}`,
			want: []finding{
				{"apiVersion", field.ErrorTypeRequired}, {"kind", field.ErrorTypeRequired},
				{"metadata.name", field.ErrorTypeRequired},
			},
		},
		"WrongTypes": {
			reason: "a field of another type is not the same as a missing one",
			in:     `{"apiVersion":1,"kind":{},"metadata":[]}`,
			want: []finding{
				{"apiVersion", field.ErrorTypeTypeInvalid}, {"kind", field.ErrorTypeTypeInvalid},
				{"metadata", field.ErrorTypeTypeInvalid},
			},
		},
		"APIVersionOfThreeParts": {
			reason: "it names no group and version",
			in:     `{"apiVersion":"a/b/c","kind":"A","metadata":{"name":"a"}}`,
			want:   []finding{{"apiVersion", field.ErrorTypeInvalid}},
		},
		"APIVersionWithoutGroup": {
			reason: "/v1 would be another spelling of v1",
			in:     `{"apiVersion":"/v1","kind":"A","metadata":{"name":"a"}}`,
			want:   []finding{{"apiVersion", field.ErrorTypeInvalid}},
		},
		"APIVersionWithoutVersion": {
			reason: "no API server serves it",
			in:     `{"apiVersion":"apps/","kind":"A","metadata":{"name":"a"}}`,
			want:   []finding{{"apiVersion", field.ErrorTypeInvalid}},
		},
		"KindWithSlash": {
			reason: "a subresource is no object",
			in:     `{"apiVersion":"v1","kind":"Pod/status","metadata":{"name":"a"}}`,
			want:   []finding{{"kind", field.ErrorTypeInvalid}},
		},
		"List": {
			reason: "a list is not one object",
			in:     `{"apiVersion":"v1","kind":"List","metadata":{"name":"a"},"items":[]}`,
			want:   []finding{{"items", field.ErrorTypeForbidden}},
		},
		"NameAsPath": {
			reason: "a request for it would go elsewhere",
			in:     `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"../a","namespace":".."}}`,
			want:   []finding{{"metadata.name", field.ErrorTypeInvalid}, {"metadata.namespace", field.ErrorTypeInvalid}},
		},
		"Exported": {
			reason: "an object exported from a cluster carries what only the server may set",
			in: metadata(`"uid":"u","resourceVersion":"1","generation":3,"selfLink":"/x","creationTimestamp":"2026-01-01T00:00:00Z",
				"deletionTimestamp":"2026-01-01T00:00:00Z","deletionGracePeriodSeconds":30,"managedFields":[{}]`),
			want: []finding{
				{"metadata.uid", field.ErrorTypeForbidden}, {"metadata.resourceVersion", field.ErrorTypeForbidden},
				{"metadata.generation", field.ErrorTypeForbidden}, {"metadata.creationTimestamp", field.ErrorTypeForbidden},
				{"metadata.deletionTimestamp", field.ErrorTypeForbidden}, {"metadata.deletionGracePeriodSeconds", field.ErrorTypeForbidden},
				{"metadata.selfLink", field.ErrorTypeForbidden}, {"metadata.managedFields", field.ErrorTypeForbidden},
			},
		},
		"Ownership": {
			reason: "owners and finalizers of a manifest would work against the revision",
			in:     metadata(`"ownerReferences":[{"name":"x"}],"finalizers":["a/b"]`),
			want:   []finding{{"metadata.ownerReferences", field.ErrorTypeForbidden}, {"metadata.finalizers", field.ErrorTypeForbidden}},
		},
		"GenerateName": {
			reason: "every apply would make another object",
			in:     metadata(`"generateName":"a-"`),
			want:   []finding{{"metadata.generateName", field.ErrorTypeForbidden}},
		},
		"Annotations": {
			reason: "each value that is not a string is named by its key, in order",
			in:     metadata(`"annotations":{"z/y":true,"b":"ok","a":1,"c":null},"labels":{"d":{}}`),
			want: []finding{
				{"metadata.labels[d]", field.ErrorTypeTypeInvalid}, {"metadata.annotations[a]", field.ErrorTypeTypeInvalid},
				{"metadata.annotations[z/y]", field.ErrorTypeTypeInvalid},
			},
		},
		"AnnotationsAsList": {
			reason: "a list of pairs is a frequent slip",
			in:     metadata(`"annotations":["a=b"]`),
			want:   []finding{{"metadata.annotations", field.ErrorTypeTypeInvalid}},
		},
		"Reserved": {
			reason: "only Penstock says what belongs to which chain",
			in:     metadata(`"labels":{"penstock.dev/chain":"x"},"annotations":{"penstock.dev/applied":"x","penstock.development/x":"ok"}`),
			want:   []finding{{"metadata.labels[penstock.dev/chain]", field.ErrorTypeForbidden}, {"metadata.annotations[penstock.dev/applied]", field.ErrorTypeForbidden}},
		},
		"TeardownPolicy": {
			reason: "an object may ask to be left, and for nothing else",
			in:     metadata(`"annotations":{"penstock.dev/teardown-policy":"Never"}`),
			want:   []finding{{"metadata.annotations[penstock.dev/teardown-policy]", field.ErrorTypeNotSupported}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tc.in))
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("%s: got %v, want an *InvalidError", tc.reason, err)
			}
			var got []finding
			for _, e := range invalid.Fields {
				got = append(got, finding{e.Field(), e.Type})
				if !strings.Contains(err.Error(), e.Field()) {
					t.Errorf("the error does not name %s: %v", e.Field(), err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestInvalidErrorIsBounded(t *testing.T) {
	annotations := map[string]any{}
	for i := range 1000 {
		annotations[fmt.Sprintf("key-%03d", i)] = int64(i)
	}
	_, err := Canonical(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a", "annotations": annotations},
	})
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want an *InvalidError", err)
	}
	if len(invalid.Fields) != maxFieldErrors || invalid.Omitted != 1000-maxFieldErrors {
		t.Errorf("got %d errors and %d omitted", len(invalid.Fields), invalid.Omitted)
	}
}

func TestErrorsInALargerObject(t *testing.T) {
	_, err := Parse([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":{"x.io/y":1}}}`))
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want an *InvalidError", err)
	}
	got := invalid.Under(field.NewPath("spec", "phases").Index(0).Child("objects").Index(2).Child("object")).ToAggregate().Error()
	want := "spec.phases[0].objects[2].object.metadata.annotations[x.io/y]: Invalid value: is a number, want a string: put it in quotes"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestCanonicalKeepsItsInput(t *testing.T) {
	object := func() map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "status": map[string]any{},
			"metadata": map[string]any{"name": "a", "creationTimestamp": nil, "labels": nil},
		}
	}
	given := object()
	if _, err := Canonical(given); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object(), given); diff != "" {
		t.Errorf("the caller's object was changed: -before, +after:\n%s", diff)
	}
}
