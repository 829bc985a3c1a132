package chain

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

// storedInventory is a fake store of one inventory with compare-and-swap.
type storedInventory struct {
	inventory store.Inventory
	version   int64
	saves     int
	broken    error
}

func (s *storedInventory) Load(context.Context, string) (store.Inventory, int64, error) {
	return s.inventory, s.version, s.broken
}

func (s *storedInventory) Save(_ context.Context, _ string, inventory store.Inventory, version int64) (int64, error) {
	if s.broken != nil {
		return 0, s.broken
	}
	if version != s.version {
		return 0, errors.New("somebody else was faster")
	}
	s.inventory, s.version, s.saves = inventory, version+1, s.saves+1
	return s.version, nil
}

func objectID(name string) manifest.ID {
	return manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "argocd", Name: name}
}

func TestLedgerNoticesAnotherWriter(t *testing.T) {
	inventories := &storedInventory{version: 5}
	l, err := openLedger(t.Context(), inventories, "argocd")
	if err != nil {
		t.Fatal(err)
	}
	next := rollout.Inventory{Reached: map[string]int{"a": 1}}
	for range 2 { // the second save builds on the first
		if err := l.save(t.Context(), next); err != nil {
			t.Fatal(err)
		}
	}
	inventories.version++
	if err := l.save(t.Context(), rollout.Inventory{}); err == nil {
		t.Error("it overwrote what another writer stored")
	}
	if diff := cmp.Diff(next, l.inventory); diff != "" {
		t.Errorf("a save that failed changed what is known to be stored:\n%s", diff)
	}
}

func TestForget(t *testing.T) {
	revisions := []olmv1alpha1.ClusterExtensionRevision{*numbered(2), *numbered(1)}
	cases := map[string]struct {
		reason  string
		entries map[string]int64
		reached []string
		left    []string
		given   []string
		latches []string
		out     bool
	}{
		"all there": {
			"every entry and latch has its revision",
			map[string]int64{"a": 1, "b": 2}, []string{"uid-of-1", "uid-of-2"},
			[]string{"a", "b"}, nil, []string{"uid-of-1", "uid-of-2"}, false,
		},
		"revision gone": {
			"its finalizer was removed by hand: the objects are nobody's now",
			map[string]int64{"a": 1, "b": 3, "c": 3}, nil,
			[]string{"a"}, []string{"b", "c"}, nil, true,
		},
		"latch alone": {
			"the revision went with nothing left",
			map[string]int64{"a": 1}, []string{"uid-of-1", "uid-of-3"},
			[]string{"a"}, nil, []string{"uid-of-1"}, true,
		},
		"number used again": {
			"a latch is the revision's own, not its number's",
			map[string]int64{"a": 2}, []string{"another-uid-of-2"},
			[]string{"a"}, nil, nil, true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := &ledger{inventory: rollout.Inventory{Entries: map[manifest.ID]rollout.Entry{}, Reached: map[string]int{}}}
			for name, number := range tc.entries {
				l.inventory.Entries[objectID(name)] = rollout.Entry{Revision: number}
			}
			for _, key := range tc.reached {
				l.inventory.Reached[key] = 1
			}
			if got := l.outlived(revisions); got != tc.out {
				t.Errorf("%s: outlived %t, want %t", tc.reason, got, tc.out)
			}
			kept, given := l.forget(revisions)
			var left, latches, gone []string
			for id := range kept.Entries {
				left = append(left, id.Name)
			}
			for key := range kept.Reached {
				latches = append(latches, key)
			}
			for _, id := range given {
				gone = append(gone, id.Name)
			}
			sorted := cmpopts.SortSlices(func(a, b string) bool { return a < b })
			for what, pair := range map[string][2][]string{"left": {tc.left, left}, "latches": {tc.latches, latches}, "given up": {tc.given, gone}} {
				if diff := cmp.Diff(pair[0], pair[1], sorted); diff != "" {
					t.Errorf("%s, %s (-want +got):\n%s", tc.reason, what, diff)
				}
			}
			if len(l.inventory.Entries) != len(tc.entries) || len(l.inventory.Reached) != len(tc.reached) {
				t.Error("what is stored was changed by asking")
			}
		})
	}
}

func TestHolder(t *testing.T) {
	l := &ledger{inventory: rollout.Inventory{Entries: map[manifest.ID]rollout.Entry{
		objectID("b"): {Revision: 1}, objectID("a"): {Revision: 1}, objectID("c"): {Revision: 2},
	}}}
	for range 20 {
		if got := l.holder(1); got == nil || got.Name != "a" {
			t.Fatalf("got %v, want always the first one", got)
		}
	}
	if got := l.holder(3); got != nil {
		t.Errorf("nothing carries revision 3, got %v", got)
	}
}

func numbered(number int64, change ...func(*olmv1alpha1.ClusterExtensionRevision)) *olmv1alpha1.ClusterExtensionRevision {
	return revision(append([]func(*olmv1alpha1.ClusterExtensionRevision){func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Name, r.UID, r.Spec.Revision = nameOf(number), uidOf(number), number
		r.Labels = map[string]string{olmv1alpha1.ChainLabel: "argocd"}
	}}, change...)...)
}
