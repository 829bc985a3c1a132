//go:build integration

package server_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

func applyManners() map[string]manner {
	const why = "conditions are a map by type, whose members' fields are owned one by one; the addresses of an Ingress are one value"
	return map[string]manner{
		"Apply": {do: applying},
		"Ownership": {do: ownership, deviations: []deviation{
			{what: "status, conflict", host: "…: .status.loadBalancer.ingress …", ours: `…: .status.conditions[type="Ready"].reason …`, why: why},
			{what: "put all of status", host: "…editor Update GROUPVERSION has knob", ours: "…editor Update GROUPVERSION has knob; judge Apply GROUPVERSION /status has status", why: why},
		}},
	}
}

// applied returns a whole object to apply, with a value of the knob.
func (s *subject) applied(letter string, knob int) map[string]any {
	return with(s.draft(s.name(letter)), s.setting(knob), s.knob...)
}

// apply applies an object as a field manager.
func (s *subject) apply(letter, query string, body any) reply {
	s.t.Helper()
	return s.ask(call{method: http.MethodPatch, name: s.name(letter), query: query, contentType: applyPatch, body: body})
}

// applying tests server-side apply: creates, repeated applies and conflicts.
func applying(s *subject) {
	one, two := "fieldManager=one", "fieldManager=two"
	first := s.apply("a", one, s.applied("a", 1))
	s.note("created", "%s, generation %v", first, at(first.body, "metadata", "generation"))
	again := s.apply("a", one, s.applied("a", 1))
	s.note("again", "%s, changed %t", again, again.version() != first.version())
	second := s.apply("a", two, s.applied("a", 1))
	s.note("the same by another", "%s, changed %t", second, second.version() != first.version())
	again = s.apply("a", two, s.applied("a", 1))
	s.note("by the same again", "%s, changed %t", again, again.version() != second.version())
	s.note("conflict", "%s", s.apply("a", two, s.applied("a", 2)))
	s.note("forced", "%s", s.apply("a", two+"&force=true", s.applied("a", 2)))
	s.note("who has it", "%s", s.managers("a"))
	s.note("conflict with the winner", "%s", s.apply("a", one, s.applied("a", 1)))

	s.note("label", "%s", s.apply("a", two, with(s.applied("a", 2), "x", "metadata", "labels", "mine")))
	dropped := s.apply("a", two, s.applied("a", 2))
	s.note("label is dropped", "%v", at(dropped.body, "metadata", "labels", "mine"))
	s.patch("a", map[string]any{"metadata": map[string]any{"labels": map[string]any{"theirs": "x"}}})
	kept := s.apply("a", two, s.applied("a", 2))
	s.note("another's label stays", "%v", at(kept.body, "metadata", "labels", "theirs"))

	s.note("no manager", "%s", s.apply("b", "", s.applied("b", 1)))
	s.note("not a manager", "%s", s.apply("b", "fieldManager="+strings.Repeat("x", 129), s.applied("b", 1)))
	s.note("managed fields", "%s", s.apply("b", one, with(s.applied("b", 1), []any{map[string]any{"manager": "x"}}, "metadata", "managedFields")))
	s.note("another name", "%s", s.apply("b", one, s.applied("c", 1)))
	s.note("no kind", "%s", s.apply("b", one, with(s.applied("b", 1), nil, "kind")))
	s.note("an old one", "%s", s.apply("a", two, with(s.applied("a", 2), first.version(), "metadata", "resourceVersion")))
	s.note("one that is not there", "%s", s.apply("b", one, with(s.applied("b", 1), first.version(), "metadata", "resourceVersion")))
	s.note("another one", "%s", s.apply("a", two, with(s.applied("a", 2), "11111111-1111-1111-1111-111111111111", "metadata", "uid")))
	s.note("one with a uid that is not there", "%s", s.apply("b", one, with(s.applied("b", 1), "11111111-1111-1111-1111-111111111111", "metadata", "uid")))
	s.note("no yaml", "%s", s.apply("b", one, "{").short())
	s.note("force of another patch", "%s", s.ask(call{method: http.MethodPatch, name: s.name("a"), query: "force=true", contentType: mergePatch, body: s.turned(3)}))
	s.note("generation", "%v", at(s.get("a").body, "metadata", "generation"))
}

// ownership: fields have owners by manager, operation and subresource.
func ownership(s *subject) {
	s.must(call{method: http.MethodPost, query: "fieldManager=creator", body: s.draft(s.name("a"))})
	s.note("created", "%s", s.managers("a"))
	status := func(query string, n int) reply {
		body := map[string]any{"apiVersion": s.resource.GroupVersion().String(), "kind": s.kind, "metadata": map[string]any{"name": s.name("a")}}
		return s.ask(call{method: http.MethodPatch, name: s.name("a") + "/status", query: query, contentType: applyPatch, body: with(body, s.outcome(n), s.status...)})
	}
	s.note("status", "%s", status("fieldManager=judge", 1))
	s.note("has status", "%s", s.managers("a"))
	s.note("status, conflict", "%s", status("fieldManager=other", 2).String())
	// A write of the whole object gives ownership only of the fields that its endpoint writes.
	s.must(call{method: http.MethodPatch, name: s.name("a"), query: "fieldManager=all&force=true", contentType: applyPatch, body: with(s.applied("a", 2), s.outcome(5), s.status...)})
	s.note("applied all", "%s", s.managers("a"))
	whole := with(with(s.get("a").body, s.setting(3), s.knob...), s.outcome(6), s.status...)
	s.must(call{method: http.MethodPut, name: s.name("a"), query: "fieldManager=editor", body: whole})
	s.note("put all", "%s", s.managers("a"))
	whole = with(with(s.get("a").body, s.setting(4), s.knob...), s.outcome(7), s.status...)
	s.must(call{method: http.MethodPut, name: s.name("a") + "/status", query: "fieldManager=editor", body: whole})
	s.note("put all of status", "%s", s.managers("a"))
	// From client-side to server-side apply.
	s.note("without a body of what is there", "%s", s.ask(call{method: http.MethodPatch, name: s.name("z") + "/status", query: "fieldManager=x",
		contentType: applyPatch, body: s.applied("z", 1)}))
}

// managers lists the field managers with their operations, and whether they own the knob and
// status.
func (s *subject) managers(letter string) string {
	var all []string
	entries, _ := at(s.get(letter).body, "metadata", "managedFields").([]any)
	for _, entry := range entries {
		e := entry.(map[string]any)
		text := fmt.Sprintf("%v %v %v", e["manager"], e["operation"], e["apiVersion"])
		if e["subresource"] != nil {
			text += fmt.Sprintf(" /%v", e["subresource"])
		}
		fields, _ := e["fieldsV1"].(map[string]any)
		for name, path := range map[string][]string{"knob": s.knob, "status": s.status} {
			if at(fields, prefixed(path)...) != nil {
				text += " has " + name
			}
		}
		if finalizers := at(fields, "f:metadata", "f:finalizers"); finalizers != nil {
			text += " finalizers"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// prefixed returns a path as managedFields spell it.
func prefixed(path []string) []string {
	var all []string
	for _, name := range path {
		all = append(all, "f:"+name)
	}
	return all
}
