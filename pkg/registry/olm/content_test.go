package olm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestSameContentIsNoChange: sending the same manifests again, by any method, is no change. GitOps
// tools rely on that.
func TestSameContentIsNoChange(t *testing.T) {
	shared := newServer(t, settings{})
	entries := inline(configMap("a", "1"), secret("b", "x"))

	for name, tc := range map[string]struct {
		reason string
		again  func(s *server, file object) response
	}{
		"Put":             {"kubectl replace", func(s *server, f object) response { return s.put(nameOf(f), f) }},
		"Merge":           {"a merge patch replaces lists as a whole", func(s *server, f object) response { return s.patch(nameOf(f), mergePatch, f) }},
		"Strategic":       {"phases are merged by name", func(s *server, f object) response { return s.patch(nameOf(f), strategicPatch, f) }},
		"ClientSideApply": {"the annotation holds no manifests", func(s *server, f object) response { return s.patch(nameOf(f), strategicPatch, applied(f)) }},
		"ServerSideApply": {"the same manager again", func(s *server, f object) response { return s.apply("alice", f) }},
		"PutReadBack": {"kubectl edit sends digests", func(s *server, f object) response {
			return s.put(nameOf(f), s.get(nameOf(f)))
		}},
		"ApplyReadBackTrimmed": {"digests without sizes and status", func(s *server, f object) response {
			live := s.get(nameOf(f))
			for i := range entries {
				delete(entry(live, i).(object), "size")
			}
			return s.apply("alice", with(with(live, object{"name": nameOf(f)}, "metadata"), object{}, "status"))
		}},
		"ApplyAsYAML": {"a file as it was written", func(s *server, f object) response {
			text, err := yaml.Marshal(f)
			if err != nil {
				s.t.Fatal(err)
			}
			return s.patch(nameOf(f)+"?fieldManager=alice", applyPatch, string(text))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := shared.subtest(t)
			f := file(strings.ToLower(name)+"-1", entries)
			s.create(f).want(t, http.StatusCreated)
			// The first request may add a manager or an annotation.
			first := tc.again(s, f).want(t, http.StatusOK)
			s.unchanged(func() {
				second := tc.again(s, f).want(t, http.StatusOK)
				if diff := cmp.Diff(first.body, second.body); diff != "" {
					t.Errorf("%s: the second time (-first +second):\n%s", tc.reason, diff)
				}
			})
			if got := at(s.get(nameOf(f)), "metadata", "generation"); got != float64(1) {
				t.Errorf("%s: generation %v, want 1", tc.reason, got)
			}
		})
	}
}

func nameOf(revision object) string { return at(revision, "metadata", "name").(string) }

// TestPutsAndMergesDoNotStealOwnership: equal content from another manager changes nothing, not
// even managed fields.
func TestPutsAndMergesDoNotStealOwnership(t *testing.T) {
	s := newServer(t, settings{})
	f := file("e-1", inline(configMap("a", "1"), secret("b", "x")))
	s.apply("gitops", f).want(t, http.StatusCreated)
	s.unchanged(func() {
		s.put("e-1", f).want(t, http.StatusOK)
		s.patch("e-1", mergePatch, f).want(t, http.StatusOK)
		s.put("e-1", s.get("e-1")).want(t, http.StatusOK)
	})
}

// TestSecondManager: a manager that applies the same content becomes a co-owner, without force. A
// repeated apply changes nothing.
func TestSecondManager(t *testing.T) {
	s := newServer(t, settings{})
	f := file("e-1", inline(configMap("a", "1")))
	created := s.create(f).want(t, http.StatusCreated)
	second := s.apply("kubectl", f).want(t, http.StatusOK)
	if resourceVersion(created.body) == resourceVersion(second.body) {
		t.Error("the second manager left no trace in managed fields")
	}
	s.apply("other", f).want(t, http.StatusOK)
	s.unchanged(func() {
		s.apply("kubectl", f).want(t, http.StatusOK)
		s.apply("other", f).want(t, http.StatusOK)
	})
	readBack := s.get("e-1")
	entry(readBack, 0).(object)["size"] = 7
	trimmed := with(with(readBack, object{"name": "e-1"}, "metadata"), object{}, "status")
	s.apply("third", trimmed).want(t, http.StatusOK)
	if got := at(entry(s.get("e-1"), 0), "size"); got == float64(7) {
		t.Error("the size that a client sent was stored")
	}
}

// TestOtherContent: content never changes. The error names the place of the difference.
func TestOtherContent(t *testing.T) {
	s := newServer(t, settings{})
	f := file("e-1", inline(configMap("a", "1"), configMap("b", "1")))
	s.create(f).want(t, http.StatusCreated)
	other := file("e-1", inline(configMap("a", "1"), configMap("b", "2")))

	foreign := s.get("e-1")
	entry(foreign, 1).(object)["digest"] = "sha256:" + strings.Repeat("0", 64)

	for name, send := range map[string]func() response{
		"Put":             func() response { return s.put("e-1", other) },
		"Merge":           func() response { return s.patch("e-1", mergePatch, other) },
		"Strategic":       func() response { return s.patch("e-1", strategicPatch, other) },
		"ClientSideApply": func() response { return s.patch("e-1", strategicPatch, applied(other)) },
		"ServerSideApply": func() response { return s.apply("alice&force=true", other) },
		"JSONPatch": func() response {
			return s.patch("e-1", jsonPatch, []any{object{"op": "replace", "path": "/spec/phases/0/objects/1", "value": object{"object": configMap("b", "2")}}})
		},
		"Digest": func() response { return s.put("e-1", foreign) },
	} {
		t.Run(name, func(t *testing.T) {
			s.unchanged(func() {
				answer := send().want(t, http.StatusUnprocessableEntity)
				if diff := cmp.Diff([]string{"spec.phases[one]"}, causes(answer)); diff != "" {
					t.Errorf("fields (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestClientSideApplyRemembers: kubectl's annotation keeps enough to detect that a phase was
// removed from the file.
func TestClientSideApplyRemembers(t *testing.T) {
	s := newServer(t, settings{})
	s.create(applied(file("e-1", inline(configMap("a", "1"), secret("b", "hunter2"))))).want(t, http.StatusCreated)
	annotation := at(s.get("e-1"), "metadata", "annotations", corev1.LastAppliedConfigAnnotation).(string)
	var remembered object
	if err := yaml.Unmarshal([]byte(annotation), &remembered); err != nil {
		t.Fatal(err)
	}
	want := object{"phases": []any{object{"name": "one", "objects": []any{}}}, "revision": float64(1)}
	if diff := cmp.Diff(want, remembered["spec"]); diff != "" {
		t.Errorf("last-applied-configuration (-want +got):\n%s", diff)
	}
}

// TestJSONPatchWithManifest: manifests in values of a JSON patch bypass the filter.
func TestJSONPatchWithManifest(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	before := s.get("e-1")
	after := s.patch("e-1", jsonPatch, []any{
		object{"op": "replace", "path": "/spec/phases/0/objects/0", "value": object{"object": configMap("a", "1")}},
	}).want(t, http.StatusOK)
	if diff := cmp.Diff(before["spec"], after.body["spec"]); diff != "" {
		t.Errorf("spec (-before +after):\n%s", diff)
	}
	if got := at(after.body, "metadata", "generation"); got != float64(1) {
		t.Errorf("generation %v, want 1", got)
	}
}
