package chain

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// TestHeadsImport: an import begins once, and an interrupted caller finds it again. It uses its
// numbers from the beginning.
func TestHeadsImport(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewHeads(client, "/p")
	done := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	head := Head{
		Name: "argocd", Importing: "sha256:a", Highest: 3, HighestUID: "c", Succeeded: true,
		Rows: []Row{{Revision: 1, UID: "a", DeletedAt: done}, {Revision: 3, UID: "c", CompletedAt: done}},
		Hold: &Hold{Revision: 3, UID: "c"},
	}
	want := head
	want.Confirmed = true
	got, err := s.Import(ctx, head)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("imported (-want +got):\n%s", diff)
	}

	other := head
	other.Importing, other.HighestUID, other.Rows = "sha256:b", "x", []Row{{Revision: 3, UID: "x"}}
	if got, err = s.Import(ctx, other); err != nil || !cmp.Equal(want, got) {
		t.Errorf("a second import got %+v, error %v; want the first one's", got, err)
	}

	var used *NumberUsedError
	if err := s.Advance(ctx, got, 3, "d"); !errors.As(err, &used) || used.Next != 4 {
		t.Errorf("taking an imported number: %v", err)
	}
	// The revision is rolled out in this store, but its first completion was earlier.
	if err := s.Record(ctx, "argocd", Row{Revision: 3, UID: "c", CompletedAt: done.Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	for _, archive := range []string{"sha256:b", "sha256:a"} {
		if got := mustHead(t, s, "argocd").Importing; got != "sha256:a" {
			t.Errorf("before %s is finished: %q", archive, got)
		}
		if err := s.Imported(ctx, "argocd", archive, archive); err != nil {
			t.Fatal(err)
		}
	}
	want.Importing, want.ImportedFrom = "", "sha256:a"
	if diff := cmp.Diff(want, mustHead(t, s, "argocd")); diff != "" {
		t.Errorf("finished (-want +got):\n%s", diff)
	}
}

func TestHeadsImportRefuses(t *testing.T) {
	s, ctx := NewHeads(storetest.Client(t), "/p"), t.Context()
	for name, head := range map[string]Head{
		"NoArchive": {Name: "a", Highest: 1, HighestUID: "a"},
		"NoNumber":  {Name: "a", Importing: "x", HighestUID: "a"},
		"NoUID":     {Name: "a", Importing: "x", Highest: 1},
		"RowNoUID":  {Name: "a", Importing: "x", Highest: 1, HighestUID: "a", Rows: []Row{{Revision: 1}}},
	} {
		if _, err := s.Import(ctx, head); err == nil {
			t.Errorf("%s: got no error", name)
		}
		if _, found, err := s.Get(ctx, "a"); found || err != nil {
			t.Errorf("%s: it was written, error %v", name, err)
		}
	}
}
