//go:build integration

package server_test

import (
	"fmt"
	"net/http"
	"strings"
)

func writeManners() map[string]manner {
	return map[string]manner{
		"Generation":      {do: generation},
		"Patches":         {do: patches, deviations: undecodable("another kind", "merge of a wrong type")},
		"DryRun":          {do: dryRuns},
		"Preconditions":   {do: preconditions},
		"Names":           {do: names, deviations: nameDeviations()},
		"Metadata":        {do: serverMetadata},
		"FieldValidation": {do: fieldValidation, deviations: fieldFirst("Strict merge", "Strict strategic", "Strict json")},
	}
}

// undecodable are deviations of patches whose result is not an object of the kind. The host puts
// the whole object into the message, and ours names the error first.
func undecodable(whats ...string) []deviation {
	var all []deviation
	for _, what := range whats {
		all = append(all, deviation{
			what: what, host: `HTTP422 Failure Invalid  "" is invalid: patch: Invalid value: OBJECT: …`,
			ours: "HTTP422 Failure Invalid …(the patched object cannot be decoded)…",
			why:  "seven kilobytes of JSON hide what is wrong",
		})
	}
	return all
}

func nameDeviations() []deviation {
	const invalid = `HTTP422 Failure Invalid KIND.GROUP "…" is invalid: metadata.name: Invalid value: "…": `
	const why = "the name of a revision is <extension>-<number>, and says what is wrong with which part"
	const kind = "ClusterExtensionRevision"
	const ours, format = invalid + "the extension's name …", invalid + "a lowercase RFC …"
	return []deviation{
		{of: kind, what: "generated", host: "HTTP201", ours: invalid + "must be <extension>-<revision>, such as argocd-1…", why: "the name of a revision has its number, which is no random one"},
		{of: kind, what: "generated from", host: "true", ours: "false", why: "as above"},
		{of: kind, what: "not a name", host: format, ours: ours, why: why},
		{of: kind, what: "path", host: format, ours: ours, why: why},
		{of: kind, what: "too long", host: invalid + "must be no more than …", ours: ours, why: why},
	}
}

// generation counts only changes of spec. Neither spec nor status can be written through the
// other's endpoint.
func generation(s *subject) {
	created := s.must(call{method: http.MethodPost, body: with(s.draft(s.name("a")), s.outcome(7), s.status...)})
	s.note("status of the creator", "%t", describe(at(created.body, s.status...)) == describe(s.outcome(7)))
	look := func(what string, a reply) {
		s.note(what, "generation %v, changed %t", at(a.body, "metadata", "generation"), a.version() != created.version())
		created = a
	}
	look("created", created)
	look("spec", s.turn("a", 2))
	look("spec again", s.turn("a", 2))
	look("label", s.patch("a", map[string]any{"metadata": map[string]any{"labels": map[string]any{"x": "y"}}}))
	judged := s.judge("a", 3)
	look("status", judged)
	s.note("status is kept", "%t", describe(at(judged.body, s.status...)) == describe(s.outcome(3)))
	look("status through the main resource", s.patch("a", s.judged(4)))
	s.note("it is ignored", "%t", describe(at(s.get("a").body, s.status...)) == describe(s.outcome(3)))
	look("spec through status", s.must(call{method: http.MethodPatch, name: s.name("a") + "/status", contentType: mergePatch, body: s.turned(9)}))
	s.note("that, too", "%t", describe(at(s.get("a").body, s.knob...)) == describe(s.setting(2)))
	look("put of what was read", s.must(call{method: http.MethodPut, name: s.name("a"), body: s.get("a").body}))
	s.note("status read", "%t", s.must(call{method: http.MethodGet, name: s.name("a") + "/status"}).version() == created.version())
	s.answered("status created", call{method: http.MethodPost, name: s.name("a") + "/status", body: s.get("a").body})
	s.answered("status deleted", call{method: http.MethodDelete, name: s.name("a") + "/status"})
	look("deleted", s.must(call{method: http.MethodDelete, name: s.name("a")}))
}

// patches tests each kind of patch, and errors in patches.
func patches(s *subject) {
	s.create("a")
	path := "/" + strings.Join(s.knob, "/")
	patch := func(what, contentType string, body any) reply {
		return s.answered(what, call{method: http.MethodPatch, name: s.name("a"), contentType: contentType, body: body})
	}
	knob := func(what string, a reply, want int) {
		s.note(what+" is done", "%t", describe(at(a.body, s.knob...)) == describe(s.setting(want)))
	}
	knob("merge", patch("merge", mergePatch, s.turned(2)), 2)
	knob("strategic", patch("strategic", strategicPatch, s.turned(3)), 3)
	knob("json", patch("json", jsonPatch, []any{
		map[string]any{"op": "test", "path": path, "value": s.setting(3)},
		map[string]any{"op": "replace", "path": path, "value": s.setting(4)},
	}), 4)
	patch("strategic directive", strategicPatch, map[string]any{"metadata": map[string]any{
		"finalizers": []any{"example.com/second"}, "$retainKeys": nil}})
	s.note("finalizers were merged", "%v", at(s.get("a").body, "metadata", "finalizers"))
	patch("json test fails", jsonPatch, []any{map[string]any{"op": "test", "path": path, "value": s.setting(1)}})
	patch("json path is missing", jsonPatch, []any{map[string]any{"op": "remove", "path": "/spec/nothing"}})
	patch("json is no patch", jsonPatch, s.turned(2))
	s.hint("merge is no json", call{method: http.MethodPatch, name: s.name("a"), contentType: mergePatch, body: `{"spec":`})
	patch("merge of a wrong type", mergePatch, map[string]any{"spec": "text"})
	patch("another kind", mergePatch, map[string]any{"kind": "Other"})
	patch("another name", mergePatch, map[string]any{"metadata": map[string]any{"name": s.name("b")}})
	patch("unknown kind of patch", "application/nonsense", s.turned(2))
	patch("empty", mergePatch, map[string]any{})
	s.answered("patch of all", call{method: http.MethodPatch, contentType: mergePatch, body: s.turned(2)})
	s.answered("of nothing", call{method: http.MethodPatch, name: s.name("z"), contentType: mergePatch, body: s.turned(2)})
	s.answered("of nothing, json", call{method: http.MethodPatch, name: s.name("z"), contentType: jsonPatch, body: []any{}})
}

// dryRuns: dry-runs of every verb answer as the write would, and change nothing.
func dryRuns(s *subject) {
	s.labelled("a", "scenario="+s.base)
	before := s.get("a").version()
	const dry = "dryRun=All"
	created := s.answered("create", call{method: http.MethodPost, query: dry, body: s.draft(s.name("b"))})
	s.note("what would be created", "uid %t, version %v, generation %v", at(created.body, "metadata", "uid") != nil, at(created.body, "metadata", "resourceVersion"), at(created.body, "metadata", "generation"))
	s.answered("create what is there", call{method: http.MethodPost, query: dry, body: s.draft(s.name("a"))})
	patched := s.answered("patch", call{method: http.MethodPatch, name: s.name("a"), query: dry, contentType: mergePatch, body: s.turned(2)})
	s.note("what would be patched", "%t, version %t, generation %v", describe(at(patched.body, s.knob...)) == describe(s.setting(2)), patched.version() == before, at(patched.body, "metadata", "generation"))
	s.answered("update", call{method: http.MethodPut, name: s.name("a"), query: dry, body: with(s.get("a").body, s.setting(2), s.knob...)})
	s.answered("update of an old one", call{method: http.MethodPut, name: s.name("a"), query: dry, body: with(s.get("a").body, "1", "metadata", "resourceVersion")})
	s.answered("status", call{method: http.MethodPatch, name: s.name("a") + "/status", query: dry, contentType: mergePatch, body: s.judged(2)})
	s.answered("apply", call{method: http.MethodPatch, name: s.name("a"), query: dry + "&fieldManager=other&force=true", contentType: applyPatch, body: s.applied("a", 2)})
	s.answered("apply what is not there", call{method: http.MethodPatch, name: s.name("c"), query: dry + "&fieldManager=other", contentType: applyPatch, body: s.applied("c", 1)})
	deleted := s.answered("delete", call{method: http.MethodDelete, name: s.name("a"), query: dry})
	s.note("what would be deleted", "%v", deleted.body["kind"])
	s.answered("delete in the body", call{method: http.MethodDelete, name: s.name("a"), body: map[string]any{"dryRun": []any{"All"}}})
	s.answered("delete all", call{method: http.MethodDelete, query: dry + "&labelSelector=scenario%3D" + s.base})
	s.answered("nonsense", call{method: http.MethodPost, query: "dryRun=Some", body: s.draft(s.name("b"))})
	s.answered("of a delete, nonsense", call{method: http.MethodDelete, name: s.name("a"), query: "dryRun=Some"})
	s.note("nothing has changed", "%t", s.get("a").version() == before)
	s.answered("nothing was created", call{method: http.MethodGet, name: s.name("b")})
}

// preconditions: no client overwrites or deletes a version that it has not seen.
func preconditions(s *subject) {
	old := s.create("a")
	s.turn("a", 2)
	put := func(what string, body map[string]any) {
		s.answered(what, call{method: http.MethodPut, name: s.name("a"), body: body})
	}
	put("update of an old one", with(old.body, s.setting(3), s.knob...))
	put("update of another one", with(with(s.get("a").body, "11111111-1111-1111-1111-111111111111", "metadata", "uid"), s.setting(3), s.knob...))
	put("update of a nonsense version", with(old.body, "nonsense", "metadata", "resourceVersion"))
	put("update of any", with(with(old.body, nil, "metadata", "resourceVersion"), s.setting(4), s.knob...))
	merge := func(what string, value any, path ...string) {
		s.answered(what, call{method: http.MethodPatch, name: s.name("a"), contentType: mergePatch, body: with(s.turned(5), value, path...)})
	}
	merge("patch of an old one", old.version(), "metadata", "resourceVersion")
	merge("patch of another one", "11111111-1111-1111-1111-111111111111", "metadata", "uid")
	merge("patch of this one", old.uid(), "metadata", "uid")
	s.answered("status of an old one", call{method: http.MethodPut, name: s.name("a") + "/status", body: old.body})
	remove := func(what string, key, value string) {
		s.answered(what, call{method: http.MethodDelete, name: s.name("a"), body: map[string]any{"preconditions": map[string]any{key: value}}})
	}
	remove("delete of another one", "uid", "11111111-1111-1111-1111-111111111111")
	remove("delete of an old one", "resourceVersion", old.version())
	s.note("it is there", "%v", at(s.get("a").body, "metadata", "deletionTimestamp"))
	remove("delete of this one", "resourceVersion", s.get("a").version())
	s.answered("create what is being deleted", call{method: http.MethodPost, body: s.draft(s.name("a"))})
	s.answered("create with a version", call{method: http.MethodPost, body: with(s.draft(s.name("b")), "1", "metadata", "resourceVersion")})
}

// names tests the names of objects, and generated names.
func names(s *subject) {
	s.create("a")
	post := func(what string, body any) reply { return s.answered(what, call{method: http.MethodPost, body: body}) }
	post("again", s.draft(s.name("a")))
	post("nothing", with(s.draft("x"), nil, "metadata", "name"))
	post("not a name", s.draft("Not_A_Name-1"))
	post("path", s.draft("a/b-1"))
	post("too long", s.draft(strings.Repeat("x", 260)+"-1"))
	generated := post("generated", with(with(s.draft("x"), nil, "metadata", "name"), s.base+"-", "metadata", "generateName"))
	s.note("generated from", "%t", strings.HasPrefix(fmt.Sprint(at(generated.body, "metadata", "name")), s.base+"-"))
	s.answered("put of another name", call{method: http.MethodPut, name: s.name("b"), body: s.get("a").body})
	s.answered("put of what is not there", call{method: http.MethodPut, name: s.name("z"), body: s.draft(s.name("z"))})
	s.answered("get of what is not there", call{method: http.MethodGet, name: s.name("z")})
	s.answered("delete of what is not there", call{method: http.MethodDelete, name: s.name("z")})
	s.answered("post to one", call{method: http.MethodPost, name: s.name("a"), body: s.draft(s.name("a"))})
	s.answered("put to all", call{method: http.MethodPut, body: s.draft(s.name("a"))})
	s.answered("no such subresource", call{method: http.MethodGet, name: s.name("a") + "/nonsense"})
}
