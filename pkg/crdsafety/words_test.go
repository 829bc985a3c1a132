package crdsafety

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestWords: a check uses the same words as the notes of a diff for the same change. A case without
// notes is a change that a diff does not warn about, or only as a whole.
func TestWords(t *testing.T) {
	one := func(properties string) string {
		return "spec:\n  group: example.com\n  names: {kind: Lamp, plural: lamps}\n  scope: Namespaced\n  versions:\n" + served("v1", properties)
	}
	for name, c := range map[string]struct {
		live, next, want string
		silent           bool
	}{
		"type":            {live: one("size: {type: integer}"), next: one("size: {type: string}"), want: "v1: .spec.size changes its type from integer to string"},
		"type comes":      {live: one("size: {}"), next: one("size: {type: string}"), want: "v1: .spec.size must be of type string"},
		"type in a list":  {live: one("size: {type: array, items: {type: string}}"), next: one("size: {type: array, items: {type: integer}}"), want: "v1: .spec.size[*] changes its type from string to integer"},
		"field goes":      {live: one("size: {type: integer}, color: {type: string}"), next: one("size: {type: integer}"), want: "v1: .spec.color is removed: its content is dropped"},
		"enum":            {live: one("size: {type: string, enum: [a, b]}"), next: one("size: {type: string, enum: [a]}"), want: "v1: .spec.size no longer allows \"b\""},
		"enum comes":      {live: one("size: {type: string}"), next: one("size: {type: string, enum: [a, b]}"), want: "v1: .spec.size allows only some values: \"a\", \"b\""},
		"maximum":         {live: one("size: {type: integer, maximum: 9}"), next: one("size: {type: integer, maximum: 8}"), want: "v1: .spec.size changes maximum from 9 to 8"},
		"minimum comes":   {live: one("size: {type: integer}"), next: one("size: {type: integer, minimum: 1}"), want: "v1: .spec.size gets minimum 1"},
		"pattern":         {live: one("size: {type: string}"), next: one("size: {type: string, pattern: a+}"), want: "v1: .spec.size gets pattern"},
		"pattern changes": {live: one("size: {type: string, pattern: b+}"), next: one("size: {type: string, pattern: a+}"), want: "v1: .spec.size changes its pattern"},
		"default":         {live: one("size: {type: integer, default: 1}"), next: one("size: {type: integer, default: 2}"), want: "v1: .spec.size changes its default", silent: true},
		"default goes":    {live: one("size: {type: integer, default: 1}"), next: one("size: {type: integer}"), want: "v1: .spec.size loses its default", silent: true},
		"oneOf comes":     {live: one("size: {type: object}"), next: one("size: {type: object, oneOf: [{required: [a]}]}"), want: "v1: .spec.size gets oneOf", silent: true},
		"scope":           {live: one(""), next: strings.ReplaceAll(one(""), "Namespaced", "Cluster"), want: "its scope changes from Namespaced to Cluster"},
		"required": {
			live: one("size: {type: object, properties: {a: {type: string}, b: {type: string}}}"),
			next: one("size: {type: object, required: [b], properties: {a: {type: string}, b: {type: string}}}"), want: "v1: .spec.size.b is now required",
		},
		"two required": {
			live: one("size: {type: object, properties: {a: {type: string}, b: {type: string}}}"),
			next: one("size: {type: object, required: [b, a], properties: {a: {type: string}, b: {type: string}}}"), silent: true,
			want: "v1: .spec.size.a is now required; v1: .spec.size.b is now required",
		},
		"stored version": {
			live: one("") + served("v2", "") + "status: {storedVersions: [v1, v2]}", next: one(""), silent: true,
			want: "version v2 is removed, but objects are stored in it: the API server refuses that while status.storedVersions lists it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			checker, err := New(nil)
			if err != nil {
				t.Fatal(err)
			}
			live, next := definition(t, c.live), definition(t, c.next)
			var first string
			for range 5 { // the library has no order
				found := checker.Compare(live, next)
				if len(found) != 1 || found[0].Words != c.want {
					t.Fatalf("found %+v\nwant %s", found, c.want)
				}
				if said := fmt.Sprint(found); first == "" {
					first = said
				} else if said != first {
					t.Fatalf("once %s, then %s", first, said)
				}
			}
			if notes := notesOf(t, live, next); !c.silent && !slices.Contains(notes, c.want) {
				t.Errorf("the diff says %q\nwant %q", notes, c.want)
			}
		})
	}
}

func notesOf(t *testing.T, live, next *apiextensionsv1.CustomResourceDefinition) []string {
	t.Helper()
	before, after := asObject(t, live), asObject(t, next)
	var out []string
	for _, note := range diff.Compare(t.Context(), &before, &after, diff.Options{}).Notes {
		out = append(out, note.Message)
	}
	return out
}

func asObject(t *testing.T, of *apiextensionsv1.CustomResourceDefinition) manifest.Object {
	t.Helper()
	of = of.DeepCopy()
	of.APIVersion, of.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	of.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	encoded, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	object, err := manifest.Parse(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return object
}
