package olm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	hub "github.com/penstock-project/penstock/pkg/apis/olm"
)

// TestMutationCannotAlterContent: the stored content is the sent content, even if a mutating
// webhook replaces a digest.
func TestMutationCannotAlterContent(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("u-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	inject := func(body object) func(*hub.ClusterExtensionRevision) {
		return func(revision *hub.ClusterExtensionRevision) {
			entry := &revision.Spec.Phases[0].Objects[0]
			*entry = hub.RevisionObject{Object: &hub.Manifest{Raw: []byte(toText(body))}}
		}
	}
	evil, same := inject(configMap("a", "evil")), inject(configMap("a", "1"))
	add := []any{object{"op": "replace", "path": "/spec/phases/0/objects/0", "value": object{"object": configMap("a", "1")}}}
	piecemeal := []any{
		object{"op": "replace", "path": "/spec/phases/0/objects/0", "value": object{"object": object{}}},
		object{"op": "add", "path": "/spec/phases/0/objects/0/object/apiVersion", "value": "v1"},
		object{"op": "add", "path": "/spec/phases/0/objects/0/object/kind", "value": "ConfigMap"},
		object{"op": "add", "path": "/spec/phases/0/objects/0/object/metadata", "value": object{"name": "a", "namespace": "default"}},
		object{"op": "add", "path": "/spec/phases/0/objects/0/object/data", "value": object{"k": "1"}},
	}
	one := inline(configMap("a", "1"))
	duplicate := strings.Replace(toText(file("n-1", one)), `"spec":{`, `"spec":{"revision":1,`, 1)

	for name, tc := range map[string]struct {
		reason string
		change func(*hub.ClusterExtensionRevision)
		send   func(s *server) response
		code   int
	}{
		"Create":      {"a webhook changes a manifest", evil, func(s *server) response { return s.create(file("n-1", one)) }, http.StatusUnprocessableEntity},
		"CreateApply": {"a webhook changes a manifest", evil, func(s *server) response { return s.apply("alice", file("n-1", one)) }, http.StatusUnprocessableEntity},
		"CreateDuplicate": {"also in a body that was left alone", evil, func(s *server) response {
			return s.do(call{method: http.MethodPost, path: revisions, body: duplicate})
		}, http.StatusUnprocessableEntity},
		"ByDigest": {"a digest is no permission for another manifest", evil, func(s *server) response { return s.create(file("u-2", []any{entry(s.get("u-1"), 0)})) }, http.StatusUnprocessableEntity},
		"Put":      {"updates too", evil, func(s *server) response { return s.put("u-1", file("u-1", one)) }, http.StatusUnprocessableEntity},
		"Merge": {"and patches", evil, func(s *server) response {
			return s.patch("u-1", mergePatch, object{"metadata": object{"labels": object{"a": "b"}}})
		}, http.StatusUnprocessableEntity},
		"JSONPatch": {"whose own manifests are known", evil, func(s *server) response { return s.patch("u-1", jsonPatch, add) }, http.StatusUnprocessableEntity},
		"Piecemeal": {"a JSON patch must bring a manifest as one", nil, func(s *server) response { return s.patch("u-1", jsonPatch, piecemeal) }, http.StatusUnprocessableEntity},

		"Same":        {"what was sent may be put back", same, func(s *server) response { return s.put("u-1", file("u-1", one)) }, http.StatusOK},
		"OwnPatch":    {"a JSON patch brings manifests", nil, func(s *server) response { return s.patch("u-1", jsonPatch, add) }, http.StatusOK},
		"OtherFields": {"other fields may be changed", func(revision *hub.ClusterExtensionRevision) { revision.Annotations = map[string]string{"a": "b"} }, func(s *server) response { return s.create(file("o-1", one)) }, http.StatusCreated},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.subtest(t)
			s.policy.mutate(tc.change)
			defer s.policy.mutate(nil)
			answer := tc.send(s).want(t, tc.code)
			if tc.code != http.StatusUnprocessableEntity {
				return
			}
			if diff := cmp.Diff([]string{"spec.phases[0].objects[0].object"}, causes(answer)); diff != "" || !strings.Contains(answer.raw, "ConfigMap default/a") {
				t.Errorf("%s: the answer names another entry (-want +got):\n%s%s", tc.reason, diff, answer.raw)
			}
		})
	}
}
