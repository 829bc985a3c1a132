//go:build integration

package server_test

import (
	"fmt"
	"net/http"
)

func deleteManners() map[string]manner {
	const warned = "HTTP200 warnings[\"\\\"metadata.finalizers: without FINALIZER Penstock does not delete the objects of this revision\\\"\"]"
	const why = "a person who takes the finalizer off leaves objects behind, and is told so"
	return map[string]manner{
		"Delete": {do: deleting, deviations: []deviation{{
			of: "ClusterExtensionRevision", what: "Orphan, what it asks for", ours: "Orphan", why: "what becomes of a revision's objects is in its spec, in the same write",
		}}},
		"DeleteCollection": {do: deleteCollection, deviations: unsupportedField("with an unknown field")},
		"Finalizers": {do: finalizers, deviations: []deviation{
			{of: "ClusterExtensionRevision", what: "the last one goes", host: "HTTP200", ours: warned, why: why},
			{of: "ClusterExtensionRevision", what: "put without them", host: "HTTP200", ours: warned, why: why},
		}},
	}
}

// doomed describes an object that is being deleted.
func (s *subject) doomed(a reply) string {
	m := a.body
	return fmt.Sprintf("%v deleted %t, grace %v, generation %v, finalizers %v", m["kind"], at(m, "metadata", "deletionTimestamp") != nil,
		at(m, "metadata", "deletionGracePeriodSeconds"), at(m, "metadata", "generation"), at(m, "metadata", "finalizers"))
}

// deleting tests the propagation policies of a deletion.
func deleting(s *subject) {
	remove := func(what, letter string, options any) {
		s.create(letter)
		a := s.answered(what, call{method: http.MethodDelete, name: s.name(letter), body: options})
		s.note(what+", answer", "%s", s.doomed(a))
		s.note(what+", object", "%s", s.doomed(s.get(letter)))
	}
	// The garbage collector removes its finalizer for orphan and foreground when it has finished.
	// The answer shows the state before that.
	remove("default", "a", nil)
	remove("background", "b", map[string]any{"propagationPolicy": "Background"})
	for letter, policy := range map[string]string{"c": "Foreground", "d": "Orphan"} {
		s.create(letter)
		a := s.ask(call{method: http.MethodDelete, name: s.name(letter), body: map[string]any{"propagationPolicy": policy}})
		s.note(policy, "%s", s.doomed(a))
		if teardown := at(a.body, "spec", "teardownPolicy"); teardown != nil && teardown != "Delete" {
			s.note(policy+", what it asks for", "%v", teardown)
		}
	}
	s.create("e")
	s.note("by query", "%s", s.doomed(s.ask(call{method: http.MethodDelete, name: s.name("e"), query: "propagationPolicy=Orphan"})))
	s.note("again", "%s", s.ask(call{method: http.MethodDelete, name: s.name("a")}))
	s.note("generation after that", "%v", at(s.get("a").body, "metadata", "generation"))

	s.create("f")
	s.answered("no such policy", call{method: http.MethodDelete, name: s.name("f"), body: map[string]any{"propagationPolicy": "Nonsense"}})
	s.answered("two wishes", call{method: http.MethodDelete, name: s.name("f"), body: map[string]any{"propagationPolicy": "Orphan", "orphanDependents": true}})
	// Until 1.35 kube-apiserver answers 500 to unreadable options.
	for what, options := range map[string]any{"no options": "{", "options of another kind": map[string]any{"kind": "ConfigMap", "apiVersion": "v1"}} {
		s.note(what, "refused %t", s.ask(call{method: http.MethodDelete, name: s.name("f"), body: options}).code >= http.StatusBadRequest)
	}
	s.note("it lives", "%v", at(s.get("f").body, "metadata", "deletionTimestamp"))
	s.patch("f", map[string]any{"metadata": map[string]any{"labels": map[string]any{"x": "y"}}})
	s.answered("with time", call{method: http.MethodDelete, name: s.name("f"), query: "gracePeriodSeconds=30"})
	s.note("time", "%v", at(s.get("f").body, "metadata", "deletionGracePeriodSeconds"))
}

// finalizers block a deletion.
func finalizers(s *subject) {
	s.create("a")
	s.must(call{method: http.MethodDelete, name: s.name("a")})
	more := map[string]any{"metadata": map[string]any{"finalizers": []any{s.finalizer, "example.com/late"}}}
	s.answered("another finalizer", call{method: http.MethodPatch, name: s.name("a"), contentType: mergePatch, body: more})
	s.note("a change", "%s", s.turn("a", 2))
	s.note("status", "%s", s.judge("a", 2))
	s.answered("it is undeleted", call{method: http.MethodPatch, name: s.name("a"), contentType: mergePatch,
		body: map[string]any{"metadata": map[string]any{"deletionTimestamp": nil}}})
	s.note("it is not", "%t", at(s.get("a").body, "metadata", "deletionTimestamp") != nil)
	last := s.answered("the last one goes", call{method: http.MethodPatch, name: s.name("a"), contentType: mergePatch,
		body: map[string]any{"metadata": map[string]any{"finalizers": nil}}})
	s.note("the last state", "%v %v", last.body["kind"], at(last.body, "metadata", "finalizers"))
	s.answered("it is gone", call{method: http.MethodGet, name: s.name("a")})
	// An object can be released by apply and by put. Here by put.
	s.create("b")
	s.must(call{method: http.MethodDelete, name: s.name("b")})
	s.answered("put without them", call{method: http.MethodPut, name: s.name("b"), body: with(s.get("b").body, nil, "metadata", "finalizers")})
	s.answered("and gone", call{method: http.MethodGet, name: s.name("b")})
}

// deleteCollection deletes the selected objects.
func deleteCollection(s *subject) {
	s.several("a b c d")
	selected := func(more string) string { return "labelSelector=scenario%3D" + s.base + more }
	all := func(what string, c call) {
		c.method = http.MethodDelete
		a := s.answered(what, c)
		s.note(what+" answers", "%v: %s", a.body["kind"], s.letters(a))
		s.note(what+" leaves", "%s", s.living())
	}
	all("dry run", call{query: selected("") + "&dryRun=All"})
	all("by label", call{query: selected(",letter%3Da")})
	all("by field", call{query: selected("") + "&fieldSelector=metadata.name%3D" + s.name("b")})
	all("by nothing that is there", call{query: selected(",letter%3Dnone")})
	all("with an unknown field", call{query: selected("") + "&fieldSelector=spec.nonsense%3Dx"})
	all("with another's uid", call{query: selected(",letter%3Dc"), body: map[string]any{"preconditions": map[string]any{"uid": "11111111-1111-1111-1111-111111111111"}}})
	all("foreground", call{query: selected(",letter%3Dc"), body: map[string]any{"propagationPolicy": "Foreground"}})
	all("limit", call{query: selected("") + "&limit=1"})
	all("the rest", call{query: selected("")})
}

// living lists the objects that are not being deleted.
func (s *subject) living() string {
	a := s.list()
	items, _ := a.body["items"].([]any)
	var left []any
	for _, item := range items {
		if at(item.(map[string]any), "metadata", "deletionTimestamp") == nil {
			left = append(left, item)
		}
	}
	a.body["items"] = left
	return s.letters(a)
}
