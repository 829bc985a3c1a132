package probe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnion(t *testing.T) {
	cases := map[string]struct {
		reason     string
		a, b, want Reads
	}{
		"Sorted":        {"the same set reads the same", Reads{Fields: [][]string{{"b"}}}, Reads{Fields: [][]string{{"a"}, {"b"}}}, Reads{Fields: [][]string{{"a"}, {"b"}}}},
		"Whole":         {"nothing is left to add", Reads{Whole: true, Fields: [][]string{{"a"}}}, Reads{Status: true}, Reads{Whole: true}},
		"StatusByPath":  {"both spellings are one", Reads{Fields: [][]string{{"status"}}}, Reads{Fields: [][]string{{"status", "x"}, {"a"}}}, Reads{Status: true, Fields: [][]string{{"a"}}}},
		"Contained":     {"a part of what is kept", Reads{Fields: [][]string{{"a", "b"}, {"ab"}}}, Reads{Fields: [][]string{{"a"}, {"a", "c", "d"}}}, Reads{Fields: [][]string{{"a"}, {"ab"}}}},
		"AlwaysKept":    {"metadata is part of every observation, which of it does not matter", Reads{Fields: [][]string{{"metadata", "labels", "x"}, {"kind"}, {}}}, Reads{}, Reads{Fields: [][]string{{"metadata"}}}},
		"SimilarPrefix": {"names are compared, not letters", Reads{Fields: [][]string{{"spec", "a"}}}, Reads{Fields: [][]string{{"spec", "ab"}}}, Reads{Fields: [][]string{{"spec", "a"}, {"spec", "ab"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.a.Union(tc.b)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, tc.b.Union(tc.a)); diff != "" {
				t.Errorf("the order matters (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTrim(t *testing.T) {
	const object = `{apiVersion: v1, kind: Widget, metadata: {name: a}, spec: {a: {b: 1, c: 2}, d: [1], e: text}, status: {x: 1}, data: {k: v}}`
	cases := map[string]struct {
		reason string
		reads  Reads
		want   string
	}{
		"Nothing":   {"identity stays", Reads{}, `{apiVersion: v1, kind: Widget, metadata: {name: a}}`},
		"Status":    {"all of it", Reads{Status: true}, `{apiVersion: v1, kind: Widget, metadata: {name: a}, status: {x: 1}}`},
		"Deep":      {"the way to the field, nothing beside it", Reads{Fields: [][]string{{"spec", "a", "b"}, {"data"}}}, `{apiVersion: v1, kind: Widget, metadata: {name: a}, spec: {a: {b: 1}}, data: {k: v}}`},
		"Missing":   {"an object on the way stays visible as one", Reads{Fields: [][]string{{"spec", "z", "y"}, {"nothing"}}}, `{apiVersion: v1, kind: Widget, metadata: {name: a}, spec: {}}`},
		"WrongType": {"so does what is in the way", Reads{Fields: [][]string{{"spec", "d", "x"}, {"spec", "e", "x"}, {"spec", "e", "y"}}}, `{apiVersion: v1, kind: Widget, metadata: {name: a}, spec: {d: [1], e: text}}`},
		"Whole":     {"as it is", Reads{Whole: true}, object},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			original := live(t, object)
			if diff := cmp.Diff(live(t, tc.want), tc.reads.Trim(original)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(live(t, object), original); diff != "" {
				t.Errorf("trimming changed the original:\n%s", diff)
			}
		})
	}
}
