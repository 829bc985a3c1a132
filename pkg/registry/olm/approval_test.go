package olm_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/penstock-project/penstock/pkg/admission/request"
)

// asPenstock returns a client that sends requests as Penstock's own controllers.
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

// TestApproval: Penstock creates a proposal without a requester. A user approves it by the digest
// of its diff, and the revision records the user and the time.
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
	// No user can approve an unread diff, remove the proposal's mark, or forge the approver.
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
	// The rolled-out revision changes: the diff that the user read is outdated.
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
	// An approved proposal is an ordinary revision.
	for _, state := range []string{"Paused", "Active"} {
		s.patch("e-3", "application/merge-patch+json", object{"spec": object{"lifecycleState": state}}).want(t, http.StatusOK)
	}
}

// TestApprovalOfTheFirst: the first installation is approved by the diff with nothing.
func TestApprovalOfTheFirst(t *testing.T) {
	s := newServer(t, settings{})
	revision := with(with(file("f-1", inline(configMap("a", "1"))), "Paused", "spec", "lifecycleState"), object{"penstock.dev/proposed": "true"}, "metadata", "annotations")
	s.asPenstock().create(revision).want(t, http.StatusCreated)
	digest, _ := at(s.do(call{path: revisions + "/f-1/diff"}).want(t, http.StatusOK).body, "summary", "approvalDigest").(string)
	s.patch("f-1", "application/merge-patch+json", object{
		"spec": object{"lifecycleState": "Active"}, "metadata": object{"annotations": object{"penstock.dev/approve": digest}},
	}).want(t, http.StatusOK)
}

// TestApprovalForLater: a user approves a proposal for a later time by the digest of its diff. The
// server records the approver, and no client can forge the record.
func TestApprovalForLater(t *testing.T) {
	const proposed, approve, notBefore, scheduled = "penstock.dev/proposed", "penstock.dev/approve", "penstock.dev/approve-not-before", "penstock.dev/scheduled-approval"
	s := newServer(t, settings{})
	own := s.asPenstock()
	propose := func(name, kind, content string) {
		t.Helper()
		revision := with(with(file(name, inline(configMap("a", content))), "Paused", "spec", "lifecycleState"), object{proposed: "true"}, "metadata", "annotations")
		own.create(with(revision, []any{object{"apiVersion": "olm.operatorframework.io/v1", "kind": kind, "name": "l", "uid": "u", "controller": true}}, "metadata", "ownerReferences")).want(t, http.StatusCreated)
	}
	s.create(file("l-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	propose("l-2", "ClusterExtension", "2")
	digest, _ := at(s.do(call{path: diffs + "/l-1..l-2"}).want(t, http.StatusOK).body, "summary", "approvalDigest").(string)
	annotate := func(on *server, name string, annotations object) response {
		return on.patch(name, "application/merge-patch+json", object{"metadata": object{"annotations": annotations}})
	}
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	kept := func(name string) object {
		t.Helper()
		found, _ := at(s.get(name), "metadata", "annotations").(object)
		return found
	}
	for reason, refused := range map[string]struct {
		answer response
		says   string
	}{
		"no digest":          {annotate(s, "l-2", object{notBefore: in(time.Hour)}), "l-2 is a proposal"},
		"another digest":     {annotate(s, "l-2", object{notBefore: in(time.Hour), approve: "0123456789abcdef"}), "must be summary.approvalDigest"},
		"no time":            {annotate(s, "l-2", object{notBefore: "later", approve: digest}), "must be a time such as"},
		"too far":            {annotate(s, "l-2", object{notBefore: in(32 * 24 * time.Hour), approve: digest}), "must be between now"},
		"no proposal":        {annotate(s, "l-1", object{notBefore: in(time.Hour), approve: digest}), "l-1 is no proposal that stays Paused"},
		"now and later":      {s.patch("l-2", "application/merge-patch+json", object{"spec": object{"lifecycleState": "Active"}, "metadata": object{"annotations": object{notBefore: in(time.Hour), approve: digest}}}), "is no proposal that stays Paused"},
		"when it is created": {s.create(with(file("m-1", inline(configMap("a", "1"))), object{notBefore: in(time.Hour)}, "metadata", "annotations")), "m-1 is no proposal that stays Paused"},
		"in the past":        {annotate(s, "l-2", object{notBefore: in(-time.Hour), approve: digest}), "must be between now"},
	} {
		if refused.answer.code != http.StatusUnprocessableEntity || !strings.Contains(refused.answer.raw, refused.says) {
			t.Errorf("%s: answered %d %s", reason, refused.answer.code, refused.answer.raw)
		}
	}
	annotate(s, "l-2", object{scheduled: `{"user":"admin","digest":"` + digest + `","notBefore":"2026-01-01T00:00:00Z"}`}).want(t, http.StatusOK)
	if found := kept("l-2"); found[scheduled] != nil || found[notBefore] != nil {
		t.Fatalf("a forged approval is kept: %v", found)
	}
	time1 := in(2 * time.Hour)
	annotate(s, "l-2", object{notBefore: time1, approve: digest}).want(t, http.StatusOK)
	if found, _ := kept("l-2")[scheduled].(string); !strings.Contains(found, `"user":"alice"`) || !strings.Contains(found, `"notBefore":"`+time1+`"`) || !strings.Contains(found, `"digest":"`+digest+`"`) {
		t.Errorf("it is approved by %s", found)
	}
	if state := at(s.get("l-2"), "spec", "lifecycleState"); state != "Paused" || kept("l-2")[proposed] != "true" {
		t.Errorf("it is %v already", state)
	}
	// A write of other fields approves nothing and forges nothing.
	annotate(s, "l-2", object{"note": "x", scheduled: "{}"}).want(t, http.StatusOK)
	if found, _ := kept("l-2")[scheduled].(string); !strings.Contains(found, `"user":"alice"`) {
		t.Errorf("after a write of something else it is %s", found)
	}
	annotate(s, "l-2", object{notBefore: nil}).want(t, http.StatusOK)
	if found := kept("l-2"); found[scheduled] != nil || found[approve] != nil || found[proposed] != "true" {
		t.Errorf("withdrawn, it is %v", found)
	}
	// The record of an ended approval stays until the next approval, or until the revision is
	// rolled out.
	annotate(s, "l-2", object{notBefore: time1, approve: digest}).want(t, http.StatusOK)
	annotate(own, "l-2", object{notBefore: nil, approve: nil, scheduled: `{"user":"alice","ended":"2026-01-01T00:00:00Z","why":"x"}`}).want(t, http.StatusOK)
	annotate(s, "l-2", object{"note": nil}).want(t, http.StatusOK)
	if found, _ := kept("l-2")[scheduled].(string); !strings.Contains(found, `"why":"x"`) {
		t.Errorf("the record of what ended is %s", found)
	}
	annotate(s, "l-2", object{notBefore: time1, approve: digest}).want(t, http.StatusOK)
	s.patch("l-2", "application/merge-patch+json", object{"spec": object{"lifecycleState": "Active"}}).want(t, http.StatusOK)
	if found := kept("l-2"); found[scheduled] != nil || found[notBefore] != nil || found[proposed] != nil || found["penstock.dev/approved-by"] != "alice" {
		t.Errorf("approved now, it is %v", found)
	}
	// Windows apply only to ClusterExtensions. A declined proposal is no longer approved.
	propose("l-3", "Lamp", "3")
	digest, _ = at(s.do(call{path: diffs + "/l-2..l-3"}).want(t, http.StatusOK).body, "summary", "approvalDigest").(string)
	if refused := annotate(s, "l-3", object{notBefore: time1, approve: digest}); refused.code != http.StatusUnprocessableEntity || !strings.Contains(refused.raw, "no proposal of a ClusterExtension") {
		t.Errorf("one of a chart: answered %d %s", refused.code, refused.raw)
	}
	propose("l-4", "ClusterExtension", "4")
	digest, _ = at(s.do(call{path: diffs + "/l-2..l-4"}).want(t, http.StatusOK).body, "summary", "approvalDigest").(string)
	annotate(s, "l-4", object{notBefore: time1, approve: digest}).want(t, http.StatusOK)
	s.patch("l-4", "application/merge-patch+json", object{"spec": object{"lifecycleState": "Archived"}}).want(t, http.StatusOK)
	if found := kept("l-4"); found[scheduled] != nil {
		t.Errorf("declined, it is %v", found)
	}
}
