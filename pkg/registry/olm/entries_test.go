package olm_test

import (
	"net/http"
	"testing"
)

// What phases list is in memory once, however often a revision is read: by name,
// and from the watch cache.
func TestEntriesAreShared(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1"), configMap("b", "1")))).want(t, http.StatusCreated)
	byName, err := s.storage.Revision.Stored(t.Context(), "e-1")
	if err != nil {
		t.Fatal(err)
	}
	chain, err := s.storage.Revision.Chain(t.Context(), "e")
	if err != nil {
		t.Fatal(err)
	}
	if len(chain) != 1 {
		t.Fatalf("the chain has %d revisions, want 1", len(chain))
	}
	if &byName.Spec.Phases[0].Objects[0] != &chain[0].Spec.Phases[0].Objects[0] {
		t.Error("the revision that was read by name has entries of its own")
	}
}
