package olm_test

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/store/chain"
)

// TestForget: only an extension without remaining objects and revisions can be forgotten. It can
// then begin again.
func TestForget(t *testing.T) {
	s := newServer(t, settings{})
	forget := func(query string) response {
		return s.do(call{method: http.MethodDelete, path: histories + "/e" + query})
	}
	refused := func(code int, says string) {
		t.Helper()
		if got := forget("").want(t, code); !strings.Contains(got.raw, says) {
			t.Errorf("got %s, want %q", got.raw, says)
		}
	}
	refused(http.StatusNotFound, "not found")

	s.create(file("e-7", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	refused(http.StatusConflict, "it still has revisions (e-7 first)")
	s.remove("e-7")

	inventories := chain.NewInventories(s.etcd, prefix)
	entries := chain.Inventory{Entries: []chain.Entry{{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "a", UID: types.UID("a"), Revision: 7, Digest: "sha256:" + "00"}}}
	at, err := inventories.Save(t.Context(), "e", entries, 0)
	if err != nil {
		t.Fatal(err)
	}
	refused(http.StatusConflict, "it still has 1 object in the cluster")
	if _, err := inventories.Save(t.Context(), "e", chain.Inventory{}, at); err != nil {
		t.Fatal(err)
	}

	answer := s.create(file("e-2", nil)).want(t, http.StatusUnprocessableEntity)
	if !strings.Contains(answer.raw, "the next one is 8") {
		t.Errorf("before: %s", answer.raw)
	}
	s.unchanged(func() { forget("?dryRun=All").want(t, http.StatusOK) })
	forget("").want(t, http.StatusOK)
	refused(http.StatusNotFound, "not found")
	s.create(file("e-2", nil)).want(t, http.StatusCreated)
}

// TestForgetMeanwhile: a revision that is created during Forget keeps its number, and is checked
// against the current state.
func TestForgetMeanwhile(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", nil)).want(t, http.StatusCreated)
	s.remove("e-1")
	s.policy.pause(func() { s.do(call{method: http.MethodDelete, path: histories + "/e"}).want(t, http.StatusOK) })
	// The create was judged against the deleted head. So it is judged again, without a head.
	s.create(file("e-2", nil)).want(t, http.StatusCreated)
	head, found, err := s.heads.Get(t.Context(), "e")
	if err != nil || !found || head.Highest != 2 || !head.Confirmed {
		t.Errorf("the head is %+v (%v), error %v", head, found, err)
	}
}

// TestNumbersAreBounded: no client can use up the numbers of a name.
func TestNumbersAreBounded(t *testing.T) {
	s := newServer(t, settings{})
	for name, says := range map[string]string{
		"e-2147483647": "must be from 1 to 1000",
		"e-1001":       "must be from 1 to 1000",
	} {
		for _, query := range []string{"", "?dryRun=All"} {
			answer := s.do(call{method: http.MethodPost, path: revisions + query, body: file(name, nil)}).want(t, http.StatusUnprocessableEntity)
			if !strings.Contains(answer.raw, says) {
				t.Errorf("%s%s: got %s, want %q", name, query, answer.raw, says)
			}
		}
	}
	s.create(file("e-1000", nil)).want(t, http.StatusCreated)
	if answer := s.create(file("e-2002", nil)).want(t, http.StatusUnprocessableEntity); !strings.Contains(answer.raw, "must be from 1001 to 2001") {
		t.Errorf("got %s", answer.raw)
	}
	s.create(file("e-2001", nil)).want(t, http.StatusCreated)
	if err := s.heads.Confirm(t.Context(), "e", chain.MaxNumber, "uid", chain.Row{}); err != nil {
		t.Fatal(err)
	}
	if answer := s.create(file("e-2002", nil)).want(t, http.StatusUnprocessableEntity); !strings.Contains(answer.raw, "there is none above it") {
		t.Errorf("got %s", answer.raw)
	}
}

// TestDeleteCollectionByChain: the revisions of a chain are deleted in order, oldest first. A
// revision that cannot be deleted causes an error.
func TestDeleteCollectionByChain(t *testing.T) {
	s := newServer(t, settings{})
	for _, name := range []string{"e-1", "e-2", "e-3", "f-1"} {
		s.create(file(name, nil)).want(t, http.StatusCreated)
	}
	s.policy.refuse("e-2")
	got := s.do(call{method: http.MethodDelete, path: revisions}).want(t, http.StatusForbidden)
	if !strings.Contains(got.raw, "e-2") {
		t.Errorf("it says %s", got.raw)
	}
	for name, goes := range map[string]bool{"e-1": true, "e-2": false, "e-3": false, "f-1": true} {
		if deleted := at(s.get(name), "metadata", "deletionTimestamp") != nil; deleted != goes {
			t.Errorf("%s is being deleted: %v", name, deleted)
		}
	}
}
