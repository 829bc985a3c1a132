package olm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// says fails the test if an answer does not have exactly one warning with all texts. Without texts,
// the answer must have no warning.
func (r response) says(t *testing.T, texts ...string) {
	t.Helper()
	if (len(r.warnings) > 0) != (len(texts) > 0) {
		t.Fatalf("warnings are %q, want %q", r.warnings, texts)
	}
	for _, text := range texts {
		if !strings.Contains(strings.Join(r.warnings, "\n"), text) {
			t.Errorf("the warnings do not say %q: %q", text, r.warnings)
		}
	}
}

// TestSupersededIsAppliedAgain: a file in Git still contains Active after the revision was archived
// because a newer revision succeeded.
func TestSupersededIsAppliedAgain(t *testing.T) {
	s := newServer(t, settings{})
	one := with(file("e-1", inline(configMap("a", "1"))), "Active", "spec", "lifecycleState")
	two := file("e-2", inline(configMap("a", "2")))
	flux, kept := "flux&force=true", []string{"spec.lifecycleState", "e-1 stays Archived", "e-2 came after it", "leave the field out"}
	s.apply(flux, one).want(t, http.StatusCreated)
	archived := object{"spec": object{"lifecycleState": "Archived"}}

	t.Run("newest", func(t *testing.T) {
		s := s.subtest(t)
		alone := with(file("alone-1", inline(configMap("b", "1"))), "Active", "spec", "lifecycleState")
		s.apply(flux, alone).want(t, http.StatusCreated)
		s.patch("alone-1", mergePatch, archived).want(t, http.StatusOK)
		answer := s.apply(flux, alone).want(t, http.StatusUnprocessableEntity)
		if diff := cmp.Diff([]string{"spec.lifecycleState"}, causes(answer)); diff != "" {
			t.Errorf("nothing came after it, and what the file asks for cannot be had (-want +got):\n%s", diff)
		}
	})

	s.apply(flux, two).want(t, http.StatusCreated).says(t)
	s.patch("e-1", mergePatch, archived).want(t, http.StatusOK)
	for name, again := range map[string]func(s *server) response{
		"Apply":  func(s *server) response { return s.apply(flux, one) },
		"Helm":   func(s *server) response { return s.apply("flux", one) }, // without force
		"DryRun": func(s *server) response { return s.apply(flux+"&dryRun=All", one) },
		"Patch": func(s *server) response {
			return s.patch("e-1", mergePatch, object{"spec": object{"lifecycleState": "Active"}})
		},
		"Put":    func(s *server) response { return s.put("e-1", one) },
		"Paused": func(s *server) response { return s.apply(flux, with(one, "Paused", "spec", "lifecycleState")) },
	} {
		t.Run(name, func(t *testing.T) {
			s := s.subtest(t)
			before := s.get("e-1")
			s.unchanged(func() {
				answer := again(s).want(t, http.StatusOK)
				answer.says(t, kept...)
				if diff := cmp.Diff(before, answer.body); diff != "" {
					t.Errorf("the answer is another revision (-before +after):\n%s", diff)
				}
			})
		})
	}
	t.Run("Unnamed", func(t *testing.T) {
		s := s.subtest(t)
		s.apply(flux, file("e-1", inline(configMap("a", "1")))).want(t, http.StatusOK).says(t)
		if state := at(s.get("e-1"), "spec", "lifecycleState"); state != "Archived" {
			t.Errorf("a file that does not name the state made it %v", state)
		}
	})
	t.Run("OtherContent", func(t *testing.T) {
		s := s.subtest(t)
		s.apply(flux, with(file("e-1", inline(configMap("a", "3"))), "Active", "spec", "lifecycleState")).want(t, http.StatusUnprocessableEntity)
	})
	t.Run("Labelled", func(t *testing.T) {
		s := s.subtest(t)
		s.apply(flux, with(one, object{"team": "x"}, "metadata", "labels")).want(t, http.StatusOK).says(t, kept...)
		if got := s.get("e-1"); at(got, "metadata", "labels", "team") != "x" || at(got, "spec", "lifecycleState") != "Archived" {
			t.Errorf("what else the file says is not taken: %v", at(got, "metadata"))
		}
	})
}

// TestPausedInAFile: an applied file pauses the revision again, and a warning names the user who
// had resumed it. After the line is removed from the file, the revision is resumed.
func TestPausedInAFile(t *testing.T) {
	s := newServer(t, settings{})
	paused := with(file("e-1", inline(configMap("a", "1"))), "Paused", "spec", "lifecycleState")
	again := []string{"spec.lifecycleState", "e-1 is paused again", "kubectl-patch", "remove the field from the file"}
	state := func() any { return at(s.get("e-1"), "spec", "lifecycleState") }
	patchAs := func(manager, name string, patch object) response {
		return s.do(call{method: http.MethodPatch, path: revisions + "/" + name + "?fieldManager=" + manager, contentType: mergePatch, body: patch}).want(t, http.StatusOK)
	}
	resume := func() { patchAs("kubectl-patch", "e-1", object{"spec": object{"lifecycleState": "Active"}}).says(t) }
	s.apply("flux&force=true", paused).want(t, http.StatusCreated).says(t)
	s.apply("flux&force=true", paused).want(t, http.StatusOK).says(t)
	resume()
	s.apply("flux&force=true", paused).want(t, http.StatusOK).says(t, again...)
	if got := state(); got != "Paused" {
		t.Errorf("the file says Paused, and it is %v", got)
	}
	s.apply("flux&force=true", file("e-1", inline(configMap("a", "1")))).want(t, http.StatusOK).says(t)
	if got := state(); got != "Active" {
		t.Errorf("the file does not say Paused any more, and it is %v", got)
	}
	// A user who pauses it by hand gets no warning.
	resume()
	patchAs("kubectl-edit", "e-1", object{"spec": object{"lifecycleState": "Paused"}}).says(t)
	// A three-way patch contains the file in an annotation.
	byHand := applied(with(paused, "e-2", "metadata", "name"))
	byHand = with(byHand, 2, "spec", "revision")
	s.create(byHand).want(t, http.StatusCreated)
	patchAs("kubectl-patch", "e-2", object{"spec": object{"lifecycleState": "Active"}}).says(t)
	patchAs("kubectl-client-side-apply", "e-2", object{
		"spec": object{"lifecycleState": "Paused"}, "metadata": object{"annotations": at(byHand, "metadata", "annotations")},
	}).says(t, "spec.lifecycleState", "e-2 is paused again")
}
