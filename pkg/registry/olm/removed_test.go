package olm_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestRemovedDigest: a user who resumes a revision may acknowledge in the same update the deletions
// in its diff, and nothing else.
func TestRemovedDigest(t *testing.T) {
	const annotation = "penstock.dev/acknowledge-deletion"
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1"), configMap("b", "1"), configMap("c", "1"), configMap("d", "1")))).want(t, http.StatusCreated)
	s.create(with(file("e-2", inline(configMap("a", "1"), configMap("b", "1"))), "Paused", "spec", "lifecycleState")).want(t, http.StatusCreated)
	s.create(with(file("e-3", inline(configMap("a", "1"), configMap("b", "1"), configMap("c", "1"))), "Paused", "spec", "lifecycleState")).want(t, http.StatusCreated)
	diff := s.do(call{path: diffs + "/e-1..e-2"}).want(t, http.StatusOK)
	digest, _ := at(diff.body, "summary", "removedDigest").(string)
	if !strings.HasPrefix(digest, "2-") || !strings.Contains(notes(diff), annotation+"="+digest) {
		t.Fatalf("the diff of a truncated revision has the digest %q and the notes\n%s", digest, notes(diff))
	}
	harmless := s.do(call{path: diffs + "/e-1..e-3"}).want(t, http.StatusOK)
	other, _ := at(harmless.body, "summary", "removedDigest").(string)
	if !strings.HasPrefix(other, "1-") || strings.Contains(notes(harmless), annotation) {
		t.Errorf("one of four may go: %q\n%s", other, notes(harmless))
	}
	for _, path := range []string{diffs + "/e-2..e-1", diffs + "/e-3..e-2?objectName=a", diffs + "/..e-1"} {
		if found := at(s.do(call{path: path}).want(t, http.StatusOK).body, "summary", "removedDigest"); found != nil {
			t.Errorf("%s names %v", path, found)
		}
	}
	goOn := func(name, state, answer string) response {
		return s.patch(name, "application/merge-patch+json", object{
			"spec": object{"lifecycleState": state}, "metadata": object{"annotations": object{annotation: answer}},
		})
	}
	for reason, refused := range map[string]response{
		"of another revision": goOn("e-2", "Active", other),
		"of nothing":          goOn("e-2", "Active", "2-0000000000"),
		"still paused":        goOn("e-2", "Paused", digest),
		"and one more":        goOn("e-2", "Active", digest+",1-a"),
	} {
		if refused.code != http.StatusUnprocessableEntity {
			t.Errorf("%s: answered %d", reason, refused.code)
		}
	}
	goOn("e-2", "Active", digest).want(t, http.StatusOK)
	if again := goOn("e-2", "Active", other); again.code != http.StatusUnprocessableEntity {
		t.Errorf("once it has gone on, nothing more is acknowledged by a diff: %d", again.code)
	}
}
