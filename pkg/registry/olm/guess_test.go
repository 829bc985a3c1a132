package olm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/manifest/release"
)

// guessing is a way to compare a guessed Secret with the stored Secret.
type guessing struct {
	method, path, contentType string
	// body returns a body with the guessed manifest.
	body func(guess object) any
	// code is the status for users who cannot know the Secret. right and wrong are the statuses of
	// a right and a wrong guess for users who may know it. wrong is 0 if both are equal.
	code, right, wrong int
}

// guessings returns all ways: methods, patches, an error that makes the endpoint decode the body
// itself, and parts that only the endpoint assembles. It also has digests with manifests, and
// creates for which admission checks too late or too little.
func guessings(stored object) map[string]guessing {
	const forbidden, invalid, ok, made, conflict = http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusOK, http.StatusCreated, http.StatusConflict
	digest := at(stored, "spec", "phases", 0, "objects", 1, "digest")
	ref := func(guess object) object {
		return object{"apiVersion": "v1", "kind": "Secret", "namespace": "default", "name": at(guess, "metadata", "name"), "digest": digest}
	}
	phases := func(guess object) []any {
		return file("e-1", inline(configMap("a", "1"), guess))["spec"].(object)["phases"].([]any)
	}
	spec := func(guess object) any { return object{"spec": object{"phases": phases(guess)}} }
	whole := func(guess object) any {
		return with(stored, phases(guess), "spec", "phases")
	}
	text := func(of any) string {
		raw, err := json.Marshal(of)
		if err != nil {
			panic(err) // maps and strings can be encoded
		}
		return string(raw)
	}
	entryOf := func(name string, change func(entry, guess object)) func(object) any {
		return func(guess object) any {
			entry := object{"object": guess}
			change(entry, guess)
			return file(name, []any{entry})
		}
	}
	one := revisions + "/e-1"
	operations := func(list ...object) any { return list }
	createOnly := func(guess object) object {
		return with(guess, object{release.CreateOnlyAnnotation: "true"}, "metadata", "annotations")
	}
	return map[string]guessing{
		"PUT":           {http.MethodPut, one, "", whole, forbidden, ok, invalid},
		"PUT, YAML":     {http.MethodPut, one, "application/yaml", func(guess object) any { return "# YAML\n" + text(whole(guess)) }, forbidden, ok, invalid},
		"PUT, twice":    {http.MethodPut, one, "", func(guess object) any { return `{"kind":"x",` + text(whole(guess))[1:] }, forbidden, ok, invalid},
		"merge":         {http.MethodPatch, one, mergePatch, spec, forbidden, ok, invalid},
		"strategic":     {http.MethodPatch, one, strategicPatch, spec, forbidden, ok, invalid},
		"apply":         {http.MethodPatch, one + "?fieldManager=m", applyPatch, func(guess object) any { return file("e-1", inline(configMap("a", "1"), guess)) }, forbidden, ok, conflict},
		"apply, forced": {http.MethodPatch, one + "?fieldManager=m&force=true", applyPatch, func(guess object) any { return file("e-1", inline(configMap("a", "1"), guess)) }, forbidden, ok, invalid},
		"JSON patch": {http.MethodPatch, one, jsonPatch, func(guess object) any {
			return operations(object{"op": "replace", "path": "/spec/phases/0/objects/1", "value": object{"object": guess}})
		}, forbidden, ok, invalid},
		"JSON patch, list": {http.MethodPatch, one, jsonPatch, func(guess object) any {
			return operations(object{"op": "replace", "path": "/spec/phases", "value": phases(guess)})
		}, forbidden, ok, invalid},
		"JSON patch, beside the digest": {http.MethodPatch, one, jsonPatch, func(guess object) any {
			return operations(object{"op": "add", "path": "/spec/phases/0/objects/1/object", "value": guess})
		}, forbidden, ok, invalid},
		"JSON patch, in pieces": {http.MethodPatch, one, jsonPatch, func(guess object) any {
			value := guess["stringData"]
			return operations(object{"op": "add", "path": "/spec/phases/0/objects/1/object", "value": with(guess, nil, "stringData")},
				object{"op": "add", "path": "/spec/phases/0/objects/1/object/stringData", "value": value})
		}, forbidden, invalid, invalid},
		"beside the digest": {http.MethodPatch, one, mergePatch, func(guess object) any {
			entry := ref(guess)
			entry["object"] = guess
			return object{"spec": object{"phases": []any{object{"name": "one", "objects": []any{object{"object": configMap("a", "1")}, entry}}}}}
		}, forbidden, ok, invalid},
		"create, beside the digest": {http.MethodPost, revisions + "?dryRun=All", "", entryOf("f-1", func(entry, _ object) { entry["digest"] = digest }), forbidden, made, invalid},
		"create, create-only":       {http.MethodPost, revisions + "?dryRun=All", "", entryOf("f-1", func(entry, guess object) { entry["object"] = createOnly(guess) }), forbidden, made, made},
		"create, twice": {http.MethodPost, revisions + "?dryRun=All", "", func(guess object) any {
			return `{"kind":"x",` + text(entryOf("f-1", func(entry, _ object) { entry["digest"] = digest })(guess))[1:]
		}, forbidden, made, invalid},
	}
}

// TestSecretsAreNotGuessed: a user who may neither get nor patch a Secret learns nothing by sending
// guesses. The answers to a right and a wrong guess are equal, without a digest. Users who may get
// or patch the Secret are not restricted.
func TestSecretsAreNotGuessed(t *testing.T) {
	s := newServer(t, settings{})
	s.rules.set("mallory", nil)
	s.rules.deny("mallory", "bypass privilegechecks e", "bypass privilegechecks f", "bypass privilegechecks")
	for _, user := range []string{"getter", "patcher"} {
		s.rules.deny(user, "bypass privilegechecks e", "bypass privilegechecks f")
	}
	s.rules.deny("getter", "patch secrets", "patch secrets pin")
	s.rules.deny("patcher", "get secrets", "get secrets pin")
	s.create(file("e-1", inline(configMap("a", "1"), secret("pin", "4711")))).want(t, http.StatusCreated)
	stored := s.get("e-1")
	version := resourceVersion(stored)

	for name, way := range guessings(stored) {
		t.Run(name, func(t *testing.T) {
			s := s.subtest(t)
			answer := func(user, guess, query string) response {
				path := way.path
				if query != "" && !strings.Contains(path, query) {
					path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + query
				}
				return s.do(call{method: way.method, path: path, contentType: way.contentType, user: user, body: way.body(secret("pin", guess))})
			}
			for _, query := range []string{"dryRun=All", ""} {
				right, wrong := answer("mallory", "4711", query), answer("mallory", "0000", query)
				if right.code != wrong.code || right.raw != wrong.raw || fmt.Sprint(right.warnings) != fmt.Sprint(wrong.warnings) {
					t.Errorf("%q: the right guess is answered\n%d %s %s\nand a wrong one\n%d %s %s", query, right.code, right.raw, right.warnings, wrong.code, wrong.raw, wrong.warnings)
				}
				if right.code != way.code || strings.Contains(right.raw, "hmac-") || strings.Contains(right.raw, "4711") {
					t.Errorf("%q: answered %d %s, want %d and nothing of the Secret", query, right.code, right.raw, way.code)
				}
			}
			for _, user := range []string{"getter", "patcher"} {
				if got := answer(user, "4711", "dryRun=All"); got.code != way.right {
					t.Errorf("%s, who may know it, and is right: %d %s, want %d", user, got.code, got.raw, way.right)
				}
				if got := answer(user, "0000", "dryRun=All"); got.code != way.wrong || got.code >= 300 && strings.Contains(got.raw, "hmac-") {
					t.Errorf("%s, who may know it, and is wrong: %d %s, want %d", user, got.code, got.raw, way.wrong)
				}
			}
		})
	}
	if now := resourceVersion(s.get("e-1")); now != version {
		t.Errorf("the revision was written: resourceVersion %v, was %v", now, version)
	}
	// Without an answer from the authorizer, nothing is allowed and nothing is revealed.
	s.rules.set("", fmt.Errorf("the authorizer is away"))
	for _, guess := range []string{"4711", "0000"} {
		got := s.do(call{method: http.MethodPut, path: revisions + "/e-1", user: "mallory", body: guessings(stored)["PUT"].body(secret("pin", guess))})
		if got.code != http.StatusInternalServerError || strings.Contains(got.raw, guess) {
			t.Errorf("without an authorizer: %d %s", got.code, got.raw)
		}
	}
}
