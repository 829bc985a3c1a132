//go:build integration

package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// at returns a value in an object, or nil.
func at(object map[string]any, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
	return value
}

// create creates an object.
func (s *subject) create(letter string) reply {
	s.t.Helper()
	return s.must(call{method: http.MethodPost, body: s.draft(s.name(letter))})
}

// labelled creates an object with labels.
func (s *subject) labelled(letter string, labels ...string) reply {
	s.t.Helper()
	return s.must(call{method: http.MethodPost, body: with(s.draft(s.name(letter)), pairs(labels), "metadata", "labels")})
}

func pairs(texts []string) map[string]any {
	all := map[string]any{}
	for _, text := range texts {
		key, value, _ := strings.Cut(text, "=")
		all[key] = value
	}
	return all
}

// with returns a copy of an object with a changed field. nil removes the field.
func with(object map[string]any, value any, path ...string) map[string]any {
	copied := (&unstructured.Unstructured{Object: object}).DeepCopy().Object
	if value == nil {
		unstructured.RemoveNestedField(copied, path...)
	} else if err := unstructured.SetNestedField(copied, value, path...); err != nil {
		panic(err)
	}
	return copied
}

// get reads an object.
func (s *subject) get(letter string) reply {
	s.t.Helper()
	return s.must(call{method: http.MethodGet, name: s.name(letter)})
}

// patch sends a merge patch.
func (s *subject) patch(letter string, body any) reply {
	s.t.Helper()
	return s.must(call{method: http.MethodPatch, name: s.name(letter), contentType: mergePatch, body: body})
}

// release removes the finalizers of an object that is being deleted.
func (s *subject) release(letter string) {
	s.t.Helper()
	s.patch(letter, map[string]any{"metadata": map[string]any{"finalizers": nil}})
}

// remove deletes an object and removes its finalizers.
func (s *subject) remove(letter string) {
	s.t.Helper()
	s.must(call{method: http.MethodDelete, name: s.name(letter)})
	s.release(letter)
}

// letters lists the objects of a list by the letter in their names.
func (s *subject) letters(a reply) string {
	var letters []string
	items, _ := a.body["items"].([]any)
	for _, item := range items {
		name := fmt.Sprint(at(item.(map[string]any), "metadata", "name"))
		letters = append(letters, strings.TrimSuffix(strings.TrimPrefix(name, s.base+"-"), "-1"))
	}
	slices.Sort(letters)
	return strings.Join(letters, " ")
}

// turned returns a patch of the knob and of status.
func (b breed) turned(knob int) map[string]any {
	return with(map[string]any{}, b.setting(knob), b.knob...)
}
func (b breed) judged(n int) map[string]any { return with(map[string]any{}, b.outcome(n), b.status...) }

// turn sets the knob of an object. judge sets its status.
func (s *subject) turn(letter string, knob int) reply {
	s.t.Helper()
	return s.patch(letter, s.turned(knob))
}

func (s *subject) judge(letter string, n int) reply {
	s.t.Helper()
	return s.must(call{method: http.MethodPatch, name: s.name(letter) + "/status", contentType: mergePatch, body: s.judged(n)})
}
