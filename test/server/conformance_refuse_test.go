//go:build integration

package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
)

func refusedManners() map[string]manner {
	return map[string]manner{
		"Media": {do: media, deviations: []deviation{noProtobuf("accept nothing that is there"), noProtobuf("send something else")}},
	}
}

// serverMetadata: metadata is validated as for every type, and clients cannot set the server's
// fields.
func serverMetadata(s *subject) {
	post := func(what string, value any, path ...string) reply {
		return s.answered(what, call{method: http.MethodPost, query: "dryRun=All", body: with(s.draft(s.name("a")), value, append([]string{"metadata"}, path...)...)})
	}
	post("label's key", "x", "labels", "not a key")
	post("label's value", "not a value", "labels", "key")
	post("annotation's key", "x", "annotations", "not a key")
	post("annotations' size", strings.Repeat("x", 300<<10), "annotations", "key")
	post("finalizer", []any{"unqualified"}, "finalizers")
	post("finalizers that exclude each other", []any{"orphan", "foregroundDeletion", s.finalizer}, "finalizers")
	owner := func(more ...string) []any {
		o := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "11111111-1111-1111-1111-111111111111"}
		for _, text := range more {
			key, value, _ := strings.Cut(text, "=")
			o[key] = value
		}
		return []any{o}
	}
	post("owner", owner(), "ownerReferences")
	for what, refs := range map[string][]any{
		"owner without uid": owner("uid="), "owner without version": owner("apiVersion="), "owner that cannot be": owner("kind=Event"),
	} {
		s.hint(what, call{method: http.MethodPost, query: "dryRun=All", body: with(s.draft(s.name("a")), refs, "metadata", "ownerReferences")})
	}
	both := append(owner(), owner("uid=22222222-2222-2222-2222-222222222222")...)
	for _, o := range both {
		o.(map[string]any)["controller"] = true
	}
	post("two controllers", both, "ownerReferences")
	post("wrong type", "text", "labels")
	server := post("the server's part", "2001-01-01T00:00:00Z", "creationTimestamp")
	s.note("its own time", "%t", at(server.body, "metadata", "creationTimestamp") != "2001-01-01T00:00:00Z")
	doomed := post("being deleted", "2001-01-01T00:00:00Z", "deletionTimestamp")
	s.note("it lives", "%v", at(doomed.body, "metadata", "deletionTimestamp"))

	s.create("a")
	patch := func(what string, value any, field string) {
		s.answered(what, call{method: http.MethodPatch, name: s.name("a"), contentType: mergePatch, body: map[string]any{"metadata": map[string]any{field: value}}})
	}
	patch("patch of the time", "2001-01-01T00:00:00Z", "creationTimestamp")
	patch("patch of the generation", 77, "generation")
	patch("patch of the deletion", "2001-01-01T00:00:00Z", "deletionTimestamp")
	patch("patch of the grace period", 5, "deletionGracePeriodSeconds")
	patch("patch of the link", "/x", "selfLink")
	patch("patch of the generated name", "x-", "generateName")
	now := s.get("a").body
	s.note("after a patch of the server's part", "generation %v, time %t, deleted %v, link %v", at(now, "metadata", "generation"),
		at(now, "metadata", "creationTimestamp") != "2001-01-01T00:00:00Z", at(now, "metadata", "deletionTimestamp"), at(now, "metadata", "selfLink"))
	wiped := s.patch("a", map[string]any{"metadata": map[string]any{"managedFields": []any{map[string]any{}}}})
	s.note("managed fields wiped", "%v", at(wiped.body, "metadata", "managedFields"))
}

// fieldFirst are deviations of patches with unknown fields, because our error names the field
// first.
func fieldFirst(observations ...string) []deviation {
	var all []deviation
	for _, what := range observations {
		all = append(all, deviation{
			what: what, host: `…"" is invalid: patch: Invalid value: …unknown field "spec.nonsense"…`, ours: `…Invalid unknown field "spec.nonsense" …`,
			why: "the host puts the whole object before the field, which is thousands of bytes of a revision",
		})
	}
	return all
}

// fieldValidation: an unknown field is an error, a warning or ignored.
func fieldValidation(s *subject) {
	s.create("a")
	unknown := func(body map[string]any) map[string]any { return with(body, "x", "spec", "nonsense") }
	encoded, err := json.Marshal(s.draft(s.name("b")))
	if err != nil {
		s.t.Fatal(err)
	}
	twice := strings.Replace(string(encoded), `"spec":{`, `"spec":{"nonsense":1,"nonsense":2,`, 1)
	for _, level := range []string{"Strict", "Warn", "Ignore", "Nonsense"} {
		query := "dryRun=All&fieldValidation=" + level
		s.answered(level+" create", call{method: http.MethodPost, query: query, body: unknown(s.draft(s.name("b")))})
		s.answered(level+" create, twice", call{method: http.MethodPost, query: query, body: twice})
		s.answered(level+" update", call{method: http.MethodPut, name: s.name("a"), query: query, body: unknown(s.get("a").body)})
		s.answered(level+" merge", call{method: http.MethodPatch, name: s.name("a"), query: query, contentType: mergePatch, body: unknown(s.turned(2))})
		s.answered(level+" strategic", call{method: http.MethodPatch, name: s.name("a"), query: query, contentType: strategicPatch, body: unknown(s.turned(2))})
		s.answered(level+" json", call{method: http.MethodPatch, name: s.name("a"), query: query, contentType: jsonPatch,
			body: []any{map[string]any{"op": "add", "path": "/spec/nonsense", "value": "x"}}})
		s.answered(level+" apply", call{method: http.MethodPatch, name: s.name("a"), query: query + "&fieldManager=other&force=true", contentType: applyPatch, body: unknown(s.applied("a", 2))})
	}
	s.answered("the default", call{method: http.MethodPost, query: "dryRun=All", body: unknown(s.draft(s.name("b")))})
}

// media tests the supported media types.
func media(s *subject) {
	s.create("a")
	s.answered("accept nothing that is there", call{method: http.MethodGet, name: s.name("a"), accept: "application/xml"})
	s.answered("accept anything", call{method: http.MethodGet, name: s.name("a"), accept: "*/*"})
	s.answered("send something else", call{method: http.MethodPost, contentType: "application/xml", body: "<x/>"})
	s.answered("no JSON", call{method: http.MethodPost, body: `{"a":`})
	s.answered("nothing", call{method: http.MethodPost, body: ""})
	s.answered("a list", call{method: http.MethodPost, body: "[]"})
	s.answered("another kind", call{method: http.MethodPost, body: with(s.draft(s.name("b")), "Other", "kind")})
	s.answered("another version", call{method: http.MethodPost, body: with(s.draft(s.name("b")), s.resource.Group+"/v9", "apiVersion")})
	s.answered("another group", call{method: http.MethodPost, body: with(s.draft(s.name("b")), "example.com/v9", "apiVersion")})
	s.answered("wrong type", call{method: http.MethodPost, body: with(s.draft(s.name("b")), "text", "spec")})
	yaml := "apiVersion: " + s.resource.GroupVersion().String() + "\nkind: " + s.kind + "\nmetadata:\n  name: " + s.name("c") + "\nspec: " + describe(s.spec(1)) + "\n"
	s.answered("yaml", call{method: http.MethodPost, contentType: "application/yaml", body: yaml})
	s.answered("no such version", call{method: http.MethodGet, name: "../nonsense"})
}
