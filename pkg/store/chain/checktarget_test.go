package chain

import (
	"errors"
	"testing"

	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// TestCheckTarget: inventories belong to one cluster, and are not used for another cluster.
func TestCheckTarget(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewInventories(client, "/p")
	check := func(cluster string, forget, elsewhere bool) {
		t.Helper()
		err := s.CheckTarget(ctx, cluster, forget)
		var refused *OtherTargetError
		if errors.As(err, &refused) != elsewhere || err != nil && !elsewhere {
			t.Fatalf("aiming at %q: %v, want a refusal: %t", cluster, err, elsewhere)
		}
	}
	start := storetest.Revision(t, client)
	check("", false, false)
	if now := storetest.Revision(t, client); now != start {
		t.Errorf("that the host is the target is written down, at revision %d", now)
	}
	check("one", false, false)
	check("two", false, false) // no objects were rolled out
	first, err := s.Save(ctx, "argocd", objects("a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	check("two", false, false)
	check("one", false, true)
	check("", false, true)
	if _, err := s.Save(ctx, "argocd", Inventory{}, first); err != nil {
		t.Fatal(err)
	}
	check("", false, false) // all objects are deleted
	if _, err := s.Save(ctx, "other", objects("a"), 0); err != nil {
		t.Fatal(err)
	}
	check("one", false, true)
	check("one", true, false)
	if left, _, err := s.Load(ctx, "other"); err != nil || !left.Empty() {
		t.Errorf("what was to be forgotten is %v, error %v", left, err)
	}
	elsewhere := objects("a")
	elsewhere.Cluster = "three"
	if _, err := s.Save(ctx, "named", elsewhere, 0); err != nil {
		t.Fatal(err)
	}
	check("two", false, false) // the inventory names its own cluster
	if _, err := s.Save(ctx, "last", objects("a"), 0); err != nil {
		t.Fatal(err)
	}
	check("one", true, false)
	if left, _, err := s.Load(ctx, "named"); err != nil || left.Cluster != "three" || len(left.Entries) != 1 {
		t.Errorf("what is elsewhere was to be left, and is %v, error %v", left, err)
	}
}
