package chain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

func objects(names ...string) Inventory {
	var inv Inventory
	for _, name := range names {
		inv.Entries = append(inv.Entries, Entry{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: name})
	}
	return inv
}

func mustInventory(t testing.TB, s *Inventories, want Inventory, wantRevision int64) {
	t.Helper()
	got, revision, err := s.Load(t.Context(), "argocd")
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" || revision != wantRevision {
		t.Errorf("at revision %d, want %d (-want +got):\n%s", revision, wantRevision, diff)
	}
}

func TestInventories(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewInventories(client, "/p")
	mustInventory(t, s, Inventory{}, 0)

	// An inventory that was always empty is not written.
	start := storetest.Revision(t, client)
	if revision, err := s.Save(ctx, "argocd", Inventory{}, 0); err != nil || revision != 0 {
		t.Errorf("saving nothing: revision %d, error %v", revision, err)
	}
	first, err := s.Save(ctx, "argocd", objects("a"), 0)
	if err != nil || first != start+1 {
		t.Fatalf("first save: revision %d, error %v", first, err)
	}
	mustInventory(t, s, objects("a"), first)
	if again, err := s.Save(ctx, "argocd", objects("a"), first); err != nil || again != first {
		t.Errorf("saving the same: revision %d, error %v", again, err)
	}
	second, err := s.Save(ctx, "argocd", objects("a", "b"), first)
	if err != nil || second != first+1 {
		t.Fatalf("second save: revision %d, error %v", second, err)
	}
	mustInventory(t, s, objects("a", "b"), second)

	// An inventory that becomes empty stays, so that its revision is never 0 again.
	third, err := s.Save(ctx, "argocd", Inventory{}, second)
	if err != nil || third != second+1 {
		t.Fatalf("emptying: revision %d, error %v", third, err)
	}
	mustInventory(t, s, Inventory{}, third)
	if _, err := s.Save(ctx, "", objects("a"), 0); err == nil {
		t.Error("a chain without name was saved")
	}
}

func TestSaveIsFenced(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	cases := map[string]struct {
		reason string
		// other lists the inventories that another writer saves meanwhile.
		other []Inventory
		// fresh is true if the save starts without a stored inventory.
		fresh bool
		ours  Inventory
		free  bool
	}{
		"Ahead":        {reason: "the other one was faster", other: []Inventory{objects("a", "x")}, ours: objects("a", "b")},
		"Empty":        {reason: "nothing is a state like others", other: []Inventory{objects("a", "x")}, ours: Inventory{}},
		"First":        {reason: "both began with a new chain", fresh: true, other: []Inventory{objects("x")}, ours: objects("a")},
		"FirstEmptied": {reason: "the other one has been through it already", fresh: true, other: []Inventory{objects("x"), {}}, ours: objects("a")},
		"Back":         {reason: "the content is ours again, but not the state", other: []Inventory{objects("x"), objects("a")}, ours: objects("b")},
		"Agreed":       {reason: "nobody's write is lost when both say the same", other: []Inventory{objects("a", "b")}, ours: objects("b", "a"), free: true},
		"Alone":        {reason: "there is no other", ours: objects("b"), free: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewInventories(client, "/"+name)
			var revision int64
			var err error
			if !tc.fresh {
				if revision, err = s.Save(ctx, "argocd", objects("a"), 0); err != nil {
					t.Fatal(err)
				}
			}
			theirs := revision
			for _, inv := range tc.other {
				if theirs, err = s.Save(ctx, "argocd", inv, theirs); err != nil {
					t.Fatal(err)
				}
			}
			before := storetest.Revision(t, client)
			got, err := s.Save(ctx, "argocd", tc.ours, revision)
			if tc.free {
				if err != nil || got == 0 {
					t.Errorf("%s: revision %d, error %v", tc.reason, got, err)
				}
				return
			}
			var fenced *FencedError
			if !errors.As(err, &fenced) {
				t.Fatalf("%s: got error %v", tc.reason, err)
			}
			if diff := cmp.Diff(&FencedError{Chain: "argocd", ModRevision: revision, Found: theirs}, fenced); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if storetest.Revision(t, client) != before {
				t.Errorf("%s: it was written all the same", tc.reason)
			}
		})
	}
}

// TestNoSaveIsLost: writers that load again after a FencedError do not lose entries of other
// writers.
func TestNoSaveIsLost(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	const writers, each = 4, 5
	var wait sync.WaitGroup
	for w := range writers {
		wait.Go(func() {
			s := NewInventories(client, "/p")
			for i := 0; i < each; {
				inv, revision, err := s.Load(ctx, "argocd")
				if err != nil {
					t.Errorf("load: %v", err)
					return
				}
				inv.Entries = append(inv.Entries, objects(fmt.Sprintf("w%d-%d", w, i)).Entries...)
				_, err = s.Save(ctx, "argocd", inv, revision)
				var fenced *FencedError
				switch {
				case err == nil:
					i++
				case !errors.As(err, &fenced):
					t.Errorf("save: %v", err)
					return
				}
			}
		})
	}
	wait.Wait()
	inv, _, err := NewInventories(client, "/p").Load(ctx, "argocd")
	if err != nil || len(inv.Entries) != writers*each {
		t.Errorf("%d entries are left of %d, error %v", len(inv.Entries), writers*each, err)
	}
}

// TestSaveCrash: a save is killed before or after etcd executes it. The stored inventory is the old
// or the new inventory, and repeating the save works in both cases.
func TestSaveCrash(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	states := []Inventory{{}, objects("a"), objects("a", "b"), objects("b")}
	for _, how := range []storetest.Crash{storetest.BeforeWrite, storetest.AfterWrite} {
		var writes int
		for ; ; writes++ {
			at := fmt.Sprintf("crash at write %d %s", writes, how)
			prefix := "/" + strings.ReplaceAll(at, " ", "-")
			kv := storetest.NewCrashingKV(client, writes, how)
			dying, after := NewInventories(kv, prefix), NewInventories(client, prefix)

			step, revision, err := 1, int64(0), error(nil)
			for ; step < len(states); step++ {
				var next int64
				if next, err = dying.Save(ctx, "argocd", states[step], revision); err != nil {
					break
				}
				revision = next
			}
			if !kv.Crashed() {
				break
			}
			if !errors.Is(err, storetest.ErrCrash) {
				t.Fatalf("%s: acknowledged, error %v", at, err)
			}
			found, _, err := after.Load(ctx, "argocd")
			if err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			if !slices.ContainsFunc(states[step-1:step+1], func(s Inventory) bool { return cmp.Equal(s, found, cmpopts.EquateEmpty()) }) {
				t.Errorf("%s: found neither the state before nor the one after: %+v", at, found)
			}
			for ; step < len(states); step++ {
				if revision, err = after.Save(ctx, "argocd", states[step], revision); err != nil {
					t.Fatalf("%s: saving state %d again: %v", at, step, err)
				}
			}
			mustInventory(t, after, states[len(states)-1], revision)
		}
		if writes != len(states)-1 {
			t.Errorf("%d states took %d writes", len(states)-1, writes)
		}
	}
}

// TestSaveLarge: etcd accepts an inventory of the largest size.
func TestSaveLarge(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewInventories(client, "/p")
	inv := inventory(4000)
	revision, err := s.Save(ctx, "argocd", inv, 0)
	if err != nil {
		t.Fatalf("save: %v", err)
	}
	inv.Entries[17].Generation++
	if revision, err = s.Save(ctx, "argocd", inv, revision); err != nil {
		t.Fatalf("save: %v", err)
	}
	got, loaded, err := s.Load(ctx, "argocd")
	if diff := cmp.Diff(inv, got, anyOrder); err != nil || loaded != revision || diff != "" {
		t.Errorf("loaded from revision %d, want %d, error %v:\n%s", loaded, revision, err, diff)
	}
}

func TestInventoryDamage(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s := NewInventories(client, "/p")
	whole, err := encodeInventory("argocd", objects("a"))
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(whole)
	flipped[len(flipped)-6] ^= 1
	cases := map[string]struct {
		reason string
		value  []byte
		newer  bool
	}{
		"Empty":   {reason: "an empty value is not an empty inventory: everything would be created again"},
		"Cut":     {reason: "half of it", value: whole[:len(whole)/2]},
		"Flipped": {reason: "one bit, which the checksum finds", value: flipped},
		"Other":   {reason: "the record of another kind", value: []byte("PKH\x03{}")},
		"Newer":   {reason: "a newer Penstock wrote it", value: []byte("PKI\x07"), newer: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := client.Put(ctx, s.keys.Inventory(name), string(tc.value)); err != nil {
				t.Fatal(err)
			}
			inv, _, err := s.Load(ctx, name)
			var damaged *store.DamagedError
			var newer *store.FormatError
			if errors.As(err, &damaged) == tc.newer || errors.As(err, &newer) != tc.newer || !inv.Empty() {
				t.Errorf("%s: got %+v, error %v", tc.reason, inv, err)
			}
		})
	}
}

// TestForgetAll: unreadable inventories are emptied too, and other records stay.
func TestForgetAll(t *testing.T) {
	client, ctx := storetest.Client(t), t.Context()
	s, heads := NewInventories(client, "/p"), NewHeads(client, "/p")
	if err := heads.Advance(ctx, Head{Name: "argocd"}, 1, "uid"); err != nil {
		t.Fatal(err)
	}
	head, _, err := heads.Get(ctx, "argocd")
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.Save(ctx, "argocd", objects("a", "b"), 0)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{
		s.keys.Inventory("damaged"):                       "x",
		NewInventories(client, "/p2").keys.Inventory("x"): "of another store",
	} {
		if _, err := client.Put(ctx, key, value); err != nil {
			t.Fatal(err)
		}
	}
	if forgotten, err := s.ForgetAll(ctx); err != nil || forgotten != 2 {
		t.Errorf("%d inventories were forgotten, error %v", forgotten, err)
	}
	for _, chain := range []string{"argocd", "damaged"} {
		if left, _, err := s.Load(ctx, chain); err != nil || !left.Empty() {
			t.Errorf("%s has %+v, error %v", chain, left, err)
		}
	}
	var fenced *FencedError
	if _, err := s.Save(ctx, "argocd", objects("a", "b"), before); !errors.As(err, &fenced) {
		t.Errorf("a writer of before got error %v, want that it is fenced", err)
	}
	if after, _, err := heads.Get(ctx, "argocd"); err != nil || !cmp.Equal(head, after) {
		t.Errorf("the head is %+v, error %v", after, err)
	}
	if other, err := client.Get(ctx, NewInventories(client, "/p2").keys.Inventory("x")); err != nil || string(other.Kvs[0].Value) != "of another store" {
		t.Errorf("another store's inventory is %v, error %v", other, err)
	}
	if forgotten, err := s.ForgetAll(ctx); err != nil || forgotten != 0 {
		t.Errorf("%d inventories were forgotten again, error %v", forgotten, err)
	}
}
