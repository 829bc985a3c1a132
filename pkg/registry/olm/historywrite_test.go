package olm_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// TestNoted: the history of a revision is written in the same transaction as the revision.
func TestNoted(t *testing.T) {
	s := newServer(t, settings{})
	penstock := s.asPenstock()
	heads := chain.NewHeads(s.etcd, prefix)
	head := func() chain.Head {
		t.Helper()
		head, _, err := heads.Get(t.Context(), "e")
		if err != nil {
			t.Fatal(err)
		}
		return head
	}
	status := func(name string, conditions ...any) func() {
		return func() {
			penstock.patch(name+"/status", mergePatch, object{"status": object{"conditions": conditions}}).want(t, http.StatusOK)
		}
	}
	for _, step := range []struct {
		name   string
		do     func()
		writes int64
		// row is the number of the revision. result and gone are its result and deletion in the
		// history after the write.
		row    int64
		result string
		gone   bool
	}{
		{name: "created: the manifests and the revision", writes: 2, row: 1, do: func() {
			s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
		}},
		{name: "applied: the same", writes: 2, row: 2, do: func() {
			s.apply("kubectl", file("e-2", inline(configMap("a", "2"), configMap("b", "1")))).want(t, http.StatusCreated)
		}},
		{name: "rolled back to: the manifests are there", writes: 1, row: 3, do: func() {
			s.do(call{method: http.MethodPost, path: revisions + "/e-1/rollback", body: object{}}).want(t, http.StatusCreated)
		}},
		{name: "under way", writes: 1, row: 2, result: "Progressing", do: status("e-2", condition("Progressing", "True"))},
		{name: "the same status", row: 2, result: "Progressing", do: status("e-2", condition("Progressing", "True"))},
		{name: "another status of the same result", writes: 1, row: 2, result: "Progressing", do: status("e-2", condition("Progressing", "True"), condition("Available", "False"))},
		{name: "succeeded", writes: 1, row: 2, result: "Succeeded", do: status("e-2", condition("Succeeded", "True"))},
		{name: "deleted", writes: 1, row: 2, result: "Succeeded", do: func() {
			s.do(call{method: http.MethodDelete, path: revisions + "/e-2"}).want(t, http.StatusOK)
		}},
		// Removing the finalizer updates or deletes the record, in one write.
		{name: "gone", writes: 1, row: 2, result: "Succeeded", gone: true, do: func() {
			s.patch("e-2", mergePatch, object{"metadata": object{"finalizers": nil}}).want(t, http.StatusOK)
		}},
	} {
		before := storetest.Revision(t, s.etcd)
		step.do()
		if writes := storetest.Revision(t, s.etcd) - before; writes != step.writes {
			t.Errorf("%s: %d writes, want %d", step.name, writes, step.writes)
		}
		now := head()
		var row chain.Row
		for _, one := range now.Rows {
			if one.Revision == step.row {
				row = one
			}
		}
		if row.Result != step.result || row.DeletedAt.IsZero() == step.gone || row.Counts == nil || row.RequestedBy != "alice" || row.PackRoot == "" || row.CreatedAt.IsZero() {
			t.Errorf("%s: history has %+v", step.name, row)
		}
		if !now.Confirmed || now.Open() != 0 || now.Succeeded != (row.Result == "Succeeded") && step.row == 2 {
			t.Errorf("%s: the head is %+v", step.name, now)
		}
	}
	row := head().Rows[1]
	if want := (chain.Counts{Objects: 2, Added: 1, Changed: 1}); *row.Counts != want {
		t.Errorf("counts are %+v, want %+v", *row.Counts, want)
	}
	if want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC); !row.CompletedAt.Equal(want) {
		t.Errorf("completed at %s, want %s", row.CompletedAt, want)
	}
}

// TestNotedOrNotWritten: while the history cannot be written, Penstock neither creates revisions
// nor removes finalizers. It still writes status, so that an administrator sees the reason and can
// remove the finalizer.
func TestNotedOrNotWritten(t *testing.T) {
	s := newServer(t, settings{})
	s.create(file("e-1", inline(configMap("a", "1")))).want(t, http.StatusCreated)
	s.do(call{method: http.MethodDelete, path: revisions + "/e-1"}).want(t, http.StatusOK)
	key := store.NewKeys(prefix).Head("e")
	if _, err := s.etcd.Put(t.Context(), key, "no head"); err != nil {
		t.Fatal(err)
	}
	s.unchanged(func() {
		s.asPenstock().patch("e-1", mergePatch, object{"metadata": object{"finalizers": nil}}).want(t, http.StatusInternalServerError)
		s.create(file("e-2", nil)).want(t, http.StatusInternalServerError)
	})
	s.asPenstock().patch("e-1/status", mergePatch, object{"status": object{"conditions": []any{condition("Failing", "True")}}}).want(t, http.StatusOK)
	if got := at(s.get("e-1"), "status", "conditions", 0, "type"); got != "Failing" {
		t.Errorf("status says %v", got)
	}
	s.patch("e-1", mergePatch, object{"metadata": object{"finalizers": nil}}).want(t, http.StatusOK)
	s.do(call{method: http.MethodGet, path: revisions + "/e-1"}).want(t, http.StatusNotFound)
	if head, err := store.Get(t.Context(), s.etcd, key); err != nil || string(head.Bytes) != "no head" {
		t.Errorf("the head became %q, error %v", head.Bytes, err)
	}
}
