package olm_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// propose returns the diff of a revision that is not stored.
func (s *server) propose(name, user string, body any) response {
	s.t.Helper()
	return s.do(call{method: http.MethodPost, path: revisions + "/" + name + "/proposal", user: user, body: body})
}

// TestProposal: a proposed revision is compared like a stored revision with the rolled-out
// revision. Nothing is stored.
func TestProposal(t *testing.T) {
	s := diffServer(t)
	paused := func(revision object) object { return with(revision, "Paused", "spec", "lifecycleState") }
	third := paused(file("e-5", inline(configMap("same", "1"), configMap("new", "1"))))
	var got response
	s.unchanged(func() { got = s.propose("e-5", "bob", third).want(t, http.StatusCreated) })
	if diff := cmp.Diff([]any{"RevisionDiff", "e-4", "e-5"}, []any{got.body["kind"], got.body["from"], got.body["to"]}); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Added ConfigMap new"}, changes(got)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	for _, tc := range map[string]struct {
		reason   string
		revision object
		from     any
		want     []string
	}{
		"first":     {"everything is new", file("new-1", inline(configMap("a", "1"))), nil, []string{"Added ConfigMap a"}},
		"the same":  {"nothing changes", file("e-5", inline(configMap("same", "1"))), "e-4", nil},
		"by digest": {"manifests of the extension need not be sent", file("e-5", []any{entry(s.get("e-3"), 1)}), "e-4", []string{"Added ConfigMap new", "Removed ConfigMap same"}},
		"an object that goes": {"without a digest: it is made of the UID of what is stored", paused(file("e-5", inline(configMap("new", "1")))), "e-4",
			[]string{"Added ConfigMap new", "Removed ConfigMap same"}},
	} {
		name := at(tc.revision, "metadata", "name").(string)
		var got response
		s.unchanged(func() { got = s.propose(name, "", tc.revision).want(t, http.StatusCreated) })
		if diff := cmp.Diff(append([]string{}, tc.want...), append([]string{}, changes(got)...)); diff != "" || got.body["from"] != tc.from {
			t.Errorf("%s: from %v, changes (-want +got):\n%s", tc.reason, got.body["from"], diff)
		}
		if digest := at(got.body, "summary", "removedDigest"); digest != nil {
			t.Errorf("%s: a digest to acknowledge: %v", tc.reason, digest)
		}
	}
	// The created revision has the same diff as its proposal.
	s.create(third).want(t, http.StatusCreated)
	stored := s.do(call{method: http.MethodGet, path: diffs + "/e-4..e-5"}).want(t, http.StatusOK)
	if diff := cmp.Diff(got.body["changes"], stored.body["changes"]); diff != "" {
		t.Errorf("proposed, and stored (-want +got):\n%s", diff)
	}
}

// TestProposalRefused: a proposal is refused like a create, and without the right to the diff.
func TestProposalRefused(t *testing.T) {
	s := diffServer(t)
	s.rules.deny("carol", "create clusterextensionrevisions")
	s.rules.deny("dave", "get clusterextensionrevisions/diff e-4")
	s.rules.deny("erin", "create clusterextensionrevisions/proposal e-5")
	next := file("e-5", inline(configMap("same", "2")))
	for _, tc := range []struct {
		name, user, says string
		code             int
		body             object
	}{
		{"e-5", "carol", "clusterextensionrevisions", http.StatusForbidden, next},
		{"e-5", "dave", "diff", http.StatusForbidden, next},
		{"e-5", "erin", "proposal", http.StatusForbidden, next},
		{"e-6", "", "does not match the name on the URL", http.StatusBadRequest, next},
		{"e-4", "", "already exists", http.StatusConflict, file("e-4", inline(configMap("same", "2")))},
		{"e-2", "", "e-2", http.StatusUnprocessableEntity, file("e-2", inline(configMap("same", "2")))},
		{"e-5", "", "spec.phases[0].objects[0]", http.StatusUnprocessableEntity, file("e-5", inline(object{"kind": "ConfigMap"}))},
	} {
		got := s.propose(tc.name, tc.user, tc.body).want(t, tc.code)
		if message, _ := got.body["message"].(string); !strings.Contains(message, tc.says) {
			t.Errorf("%s: %s", tc.user, message)
		}
	}
	// The answer does not mention a Secret that the caller cannot get.
	s.rules.set("frank", nil)
	got := s.propose("e-5", "frank", file("e-5", inline(configMap("same", "1")))).want(t, http.StatusCreated)
	if got := len(changes(got)); got != 0 {
		t.Errorf("%d changes", got)
	}
	s.policy.mu.Lock()
	s.policy.deny = true
	s.policy.mu.Unlock()
	s.propose("e-5", "", next).want(t, http.StatusForbidden)
}
