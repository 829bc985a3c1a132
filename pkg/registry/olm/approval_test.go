package olm_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/penstock-project/penstock/pkg/admission/request"
)

// asPenstock returns the server as its own controllers reach it.
func (s *server) asPenstock() *server {
	s.t.Helper()
	const token = "own"
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Test-User", user.APIServerUser)
		request.MarkInternal(s.handler, token).ServeHTTP(w, r)
	}))
	s.t.Cleanup(front.Close)
	own := *s
	own.url = front.URL
	return &own
}

// TestApproval: a proposal, which Penstock makes in nobody's name, is rolled out by whoever
// names its diff with what is rolled out; that they did, and when, is kept.
func TestApproval(t *testing.T) {
	const proposed, approve = "penstock.dev/proposed", "penstock.dev/approve"
	s := newServer(t, settings{})
	own := s.asPenstock()
	annotated := func(revision object, key, value string) object {
		return with(with(revision, "Paused", "spec", "lifecycleState"), object{key: value}, "metadata", "annotations")
	}
	digest := func(path string) string {
		found, _ := at(s.do(call{path: path}).want(t, http.StatusOK).body, "summary", "approvalDigest").(string)
		return found
	}
	goOn := func(name, answer string) response {
		return s.patch(name, "application/merge-patch+json", object{
			"spec": object{"lifecycleState": "Active"}, "metadata": object{"annotations": object{approve: answer}},
		})
	}
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	s.create(annotated(file("e-2", inline(configMap("a", "2"))), proposed, "true")).want(t, http.StatusCreated)
	if found := at(s.get("e-2"), "metadata", "annotations", proposed); found != nil {
		t.Errorf("a user proposes in the name of the server: %v", found)
	}
	if found := digest(diffs + "/e-1..e-2"); found != "" {
		t.Errorf("a revision that is no proposal is approved by %q", found)
	}
	own.create(annotated(file("e-3", inline(configMap("a", "3"))), proposed, "true")).want(t, http.StatusCreated)
	old := digest(diffs + "/e-1..e-3")
	if old == "" || digest(diffs+"/e-1..e-3?objectName=a") != old || digest(diffs+"/e-1..e-3?objectName=b") != "" {
		t.Errorf("the diff of a proposal has digest %q, of all objects %q, of none %q", old, digest(diffs+"/e-1..e-3?objectName=a"), digest(diffs+"/e-1..e-3?objectName=b"))
	}
	// Nobody approves what they have not read, takes the question away, or says who answered.
	for reason, refused := range map[string]response{
		"without a digest": s.patch("e-3", "application/merge-patch+json", object{"spec": object{"lifecycleState": "Active"}}),
		"another digest":   goOn("e-3", "0123456789abcdef"),
	} {
		if refused.code != http.StatusUnprocessableEntity || !strings.Contains(refused.raw, "e-1..e-3") {
			t.Errorf("%s: answered %d %s", reason, refused.code, refused.raw)
		}
	}
	s.patch("e-3", "application/merge-patch+json", object{"metadata": object{"annotations": object{
		proposed: nil, "penstock.dev/approved-by": "carol", "penstock.dev/approved-at": "2020-01-01T00:00:00Z",
	}}}).want(t, http.StatusOK)
	if left := at(s.get("e-3"), "metadata", "annotations").(object); left[proposed] != "true" || left["penstock.dev/approved-by"] != nil {
		t.Errorf("after a patch of what the server keeps: %v", left)
	}
	// The rolled-out revision changes: the diff that was read is not what would happen.
	s.patch("e-2", "application/merge-patch+json", object{"spec": object{"lifecycleState": "Active"}}).want(t, http.StatusOK)
	if stale := goOn("e-3", old); stale.code != http.StatusUnprocessableEntity || !strings.Contains(stale.raw, "belongs to the diff with e-1") || !strings.Contains(stale.raw, "e-2..e-3") {
		t.Errorf("a stale digest: answered %d %s", stale.code, stale.raw)
	}
	goOn("e-3", digest(diffs+"/e-2..e-3")).want(t, http.StatusOK)
	left := at(s.get("e-3"), "metadata", "annotations").(object)
	if left[proposed] != nil || left["penstock.dev/approved-by"] != "alice" || left["penstock.dev/approved-at"] == nil {
		t.Errorf("after the approval: %v", left)
	}
	row := at(s.do(call{path: "/apis/olm.operatorframework.io/v1alpha1/revisionhistories/e"}).want(t, http.StatusOK).body, "revisions").([]any)[2].(object)
	if row["requestedBy"] != "alice" || row["approvedAt"] == nil {
		t.Errorf("history has %v", row)
	}
	// Once it is approved it is a revision like others.
	for _, state := range []string{"Paused", "Active"} {
		s.patch("e-3", "application/merge-patch+json", object{"spec": object{"lifecycleState": state}}).want(t, http.StatusOK)
	}
}

// TestApprovalOfTheFirst: an installation is approved by the diff with nothing.
func TestApprovalOfTheFirst(t *testing.T) {
	s := newServer(t, settings{})
	revision := with(with(file("f-1", inline(configMap("a", "1"))), "Paused", "spec", "lifecycleState"), object{"penstock.dev/proposed": "true"}, "metadata", "annotations")
	s.asPenstock().create(revision).want(t, http.StatusCreated)
	digest, _ := at(s.do(call{path: revisions + "/f-1/diff"}).want(t, http.StatusOK).body, "summary", "approvalDigest").(string)
	s.patch("f-1", "application/merge-patch+json", object{
		"spec": object{"lifecycleState": "Active"}, "metadata": object{"annotations": object{"penstock.dev/approve": digest}},
	}).want(t, http.StatusOK)
}
