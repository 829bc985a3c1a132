package chain

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// TestEach: every chain is read with its own inventory. The chains need many pages, and the name of
// one chain is a prefix of another name.
func TestEach(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	heads, inventories := NewHeads(client, "/p"), NewInventories(client, "/p")
	type both struct {
		Head      Head
		Inventory Inventory
	}
	want := map[string]both{}
	names := []string{"a", "a-b", "a.b", "a/b", "a0"}
	for n := range 2 * chainPage {
		names = append(names, fmt.Sprintf("chain-%03d", n))
	}
	for n, name := range names {
		if err := heads.Confirm(ctx, name, 1, "uid", Row{RequestedBy: "jane of " + name}); err != nil {
			t.Fatal(err)
		}
		one := both{Head: mustHead(t, heads, name)}
		if n%2 == 0 {
			one.Inventory = Inventory{Entries: []Entry{{Kind: "ConfigMap", Name: name}}}
			if _, err := inventories.Save(ctx, name, one.Inventory, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Put(ctx, store.NewKeys("/p").ChainVersion(name), store.ChainVersionRecord()); err != nil {
				t.Fatal(err)
			}
		}
		want[name] = one
	}
	// An inventory without a head, which a crash may leave, is no chain.
	if _, err := inventories.Save(ctx, "a-orphan", Inventory{Entries: []Entry{{Kind: "ConfigMap", Name: "x"}}}, 0); err != nil {
		t.Fatal(err)
	}
	got := map[string]both{}
	if err := heads.Each(ctx, func(head Head, inventory Inventory) error {
		if _, twice := got[head.Name]; twice {
			t.Errorf("%s is there twice", head.Name)
		}
		got[head.Name] = both{head, inventory}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	enough := errors.New("enough")
	calls := 0
	if err := heads.Each(ctx, func(Head, Inventory) error { calls++; return enough }); !errors.Is(err, enough) || calls != 1 {
		t.Errorf("after an error: %d calls, error %v", calls, err)
	}
	if _, err := client.Put(ctx, store.NewKeys("/p").Inventory("a"), "nonsense"); err != nil {
		t.Fatal(err)
	}
	if err := heads.Each(ctx, func(Head, Inventory) error { return nil }); err == nil || !strings.Contains(err.Error(), "/p/chains/a/inventory") {
		t.Errorf("with an inventory that cannot be read: error %v", err)
	}
}
