package olm_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUpdate(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)

	for _, tc := range []struct {
		reason     string
		patch      object
		code       int
		generation any
		causes     []string
	}{
		{"labels are no change of spec", object{"metadata": object{"labels": object{"team": "x"}}}, http.StatusOK, float64(1), nil},
		{"status is not for the main resource", object{"status": object{"observedGeneration": 1}}, http.StatusOK, float64(1), nil},
		{"nobody chooses a generation", object{"metadata": object{"generation": 7}}, http.StatusOK, float64(1), nil},
		{"the chain's label comes back", object{"metadata": object{"labels": object{"penstock.dev/chain": nil}}}, http.StatusOK, float64(1), nil},
		{"and cannot be another", object{"metadata": object{"labels": object{"penstock.dev/chain": "x"}}}, http.StatusUnprocessableEntity, float64(1), []string{"metadata.labels[penstock.dev/chain]"}},
		{"pausing is a change of spec", object{"spec": object{"lifecycleState": "Paused"}}, http.StatusOK, float64(2), nil},
		{"pausing again is none", object{"spec": object{"lifecycleState": "Paused"}}, http.StatusOK, float64(2), nil},
		{"the number is content", object{"spec": object{"revision": 2}}, http.StatusUnprocessableEntity, float64(2), []string{"spec.revision"}},
		{"so are the phases", object{"spec": object{"phases": []any{}}}, http.StatusUnprocessableEntity, float64(2), []string{"spec.phases[one]"}},
		{"archiving", object{"spec": object{"lifecycleState": "Archived"}}, http.StatusOK, float64(3), nil},
		{"is final", object{"spec": object{"lifecycleState": "Active"}}, http.StatusUnprocessableEntity, float64(3), []string{"spec.lifecycleState"}},
	} {
		answer := s.patch("e-1", mergePatch, tc.patch).want(t, tc.code)
		if diff := cmp.Diff(tc.causes, causes(answer)); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", tc.reason, diff)
		}
		if got := at(s.get("e-1"), "metadata", "generation"); got != tc.generation {
			t.Errorf("%s: generation %v, want %v", tc.reason, got, tc.generation)
		}
	}
	if status := at(s.get("e-1"), "status", "observedGeneration"); status != nil {
		t.Errorf("status was written through the main resource: %v", status)
	}
}

func TestStatus(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	before := s.get("e-1")
	status := object{
		"observedGeneration": float64(1),
		"requestedBy":        object{"username": "mallory"},
		"conditions":         []any{object{"type": "Available", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}},
	}
	body := object{
		"status":   status,
		"spec":     object{"lifecycleState": "Archived", "revision": 77},
		"metadata": object{"labels": object{"x": "y"}, "annotations": object{"x": "y"}, "finalizers": []any{}},
	}
	s.patch("e-1/status", mergePatch, body).want(t, http.StatusOK)
	after := s.get("e-1")
	if diff := cmp.Diff(before["spec"], after["spec"]); diff != "" {
		t.Errorf("spec (-before +after):\n%s", diff)
	}
	for _, field := range []string{"labels", "finalizers", "generation"} {
		if diff := cmp.Diff(at(before, "metadata", field), at(after, "metadata", field)); diff != "" {
			t.Errorf("metadata.%s (-before +after):\n%s", field, diff)
		}
	}
	summary := object{"penstock.dev/summary": "R: m"}
	if diff := cmp.Diff(summary, at(after, "metadata", "annotations")); diff != "" {
		t.Errorf("the server's line and nothing else belongs into the annotations (-want +got):\n%s", diff)
	}
	s.patch("e-1", mergePatch, object{"metadata": object{"annotations": object{"penstock.dev/summary": "all is well"}}}).want(t, http.StatusOK)
	if diff := cmp.Diff(summary, at(s.get("e-1"), "metadata", "annotations")); diff != "" {
		t.Errorf("a client changed the server's line (-want +got):\n%s", diff)
	}
	if got := at(after, "status", "requestedBy", "username"); got != "alice" {
		t.Errorf("requestedBy is %v, want alice", got)
	}
	if got := at(after, "status", "conditions", 0, "type"); got != "Available" {
		t.Errorf("condition %v was not written", got)
	}

	apply := object{"apiVersion": before["apiVersion"], "kind": before["kind"], "metadata": object{"name": "e-1"},
		"spec": object{"lifecycleState": "Archived"}, "status": object{"observedGeneration": 1}}
	owned := s.patch("e-1/status?fieldManager=controller&force=true", applyPatch, apply).want(t, http.StatusOK)
	for _, manager := range at(owned.body, "metadata", "managedFields").([]any) {
		if at(manager, "manager") == "controller" && strings.Contains(toText(at(manager, "fieldsV1")), "f:spec") {
			t.Error("a manager of status owns fields of spec")
		}
	}
	s.do(call{method: http.MethodPut, path: revisions + "/e-9/status", body: with(after, "e-9", "metadata", "name")}).want(t, http.StatusNotFound)
}

// TestConcurrentUpdates: all concurrent label patches succeed.
func TestConcurrentUpdates(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	var all sync.WaitGroup
	codes := make([]int, 20)
	for i := range codes {
		all.Go(func() {
			label := object{"metadata": object{"labels": object{"l" + string(rune('a'+i)): "1"}}}
			codes[i] = s.patch("e-1", mergePatch, label).code
		})
	}
	all.Wait()
	labels := at(s.get("e-1"), "metadata", "labels").(object)
	if len(labels) != len(codes)+1 {
		t.Errorf("%d labels, want %d; answers %v", len(labels), len(codes)+1, codes)
	}
}

// TestConcurrentCreates: one of two creates with the same name succeeds.
func TestConcurrentCreates(t *testing.T) {
	s := newServer(t, settings{})
	var all sync.WaitGroup
	codes := make([]int, 8)
	for i := range codes {
		all.Go(func() { codes[i] = s.create(file("e-1", inline(configMap("a", string(rune('a'+i)))))).code })
	}
	all.Wait()
	created := 0
	for _, code := range codes {
		switch code {
		case http.StatusCreated:
			created++
		case http.StatusConflict:
		default:
			t.Errorf("status %d, want 201 or 409", code)
		}
	}
	if created != 1 {
		t.Errorf("%d were created, want 1", created)
	}
	s.do(call{method: http.MethodGet, path: revisions + "/e-1/manifests"}).want(t, http.StatusOK)
}

// TestUnknownFieldInPatch: the error names the field, and does not contain the whole object.
func TestUnknownFieldInPatch(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", strings.Repeat("long ", 2000))))).want(t, http.StatusCreated)
	for name, tc := range map[string]struct {
		reason      string
		contentType string
		body        any
		begins      string
		causes      []string
	}{
		"Unknown": {"all of them are named", mergePatch, object{"spec": object{"lifeCycleState": "Paused", "colour": "red"}}, `unknown field "spec.`, []string{"spec.colour", "spec.lifeCycleState"}},
		"Type":    {"a value of another type", mergePatch, object{"spec": object{"lifecycleState": 7}}, `spec.lifecycleState: `, []string{"spec.lifecycleState"}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := s.do(call{
				method: http.MethodPatch, path: revisions + "/e-1?fieldValidation=Strict", contentType: tc.contentType, body: tc.body,
			}).want(t, http.StatusUnprocessableEntity)
			if message := at(answer.body, "message").(string); !strings.HasPrefix(message, tc.begins) || len(message) > 250 {
				t.Errorf("%s: it says %s", tc.reason, message)
			}
			if diff := cmp.Diff(tc.causes, causes(answer)); diff != "" {
				t.Errorf("%s: fields (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
