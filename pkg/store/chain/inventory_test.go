package chain

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// entry returns an object of a chain, with a random uid and digest.
func entry(random *rand.ChaCha8, i int) Entry {
	bits := func(n int) string {
		data := make([]byte, n)
		_, _ = random.Read(data) // ChaCha8 never fails
		return hex.EncodeToString(data)
	}
	uid := bits(16)
	return Entry{
		Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding",
		Namespace:       "a-namespace-of-some-length",
		Name:            fmt.Sprintf("some-operator-%d-%s", i, bits(4)),
		UID:             types.UID(fmt.Sprintf("%s-%s-%s-%s-%s", uid[:8], uid[8:12], uid[12:16], uid[16:20], uid[20:])),
		Revision:        int64(1 + i%50),
		Digest:          manifest.Digest("sha256:" + bits(32)),
		ManagedEntry:    "sha256:" + bits(32),
		Generation:      int64(i % 7),
		ResourceVersion: fmt.Sprint(random.Uint64() % 1_000_000_000),
		Rank:            i / 40,
		Yielded:         []string{".spec.replicas"},
	}
}

func inventory(n int) Inventory {
	random := rand.NewChaCha8([32]byte{7})
	inv := Inventory{Reached: map[string]int{"uid-1": 3, "uid-2": 1}}
	for i := range n {
		inv.Entries = append(inv.Entries, entry(random, i))
	}
	return inv
}

var anyOrder = cmpopts.SortSlices(func(a, b Entry) bool { return a.ID().String() < b.ID().String() })

func TestInventoryRoundTrip(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		inv    Inventory
	}{
		"Empty":  {reason: "the zero value"},
		"Intent": {reason: "an object that is about to be created has an identity only", inv: Inventory{Entries: []Entry{{Kind: "Namespace", Name: "a"}}}},
		"Latch":  {reason: "a revision without objects has stages, too", inv: Inventory{Reached: map[string]int{"uid": 0}}},
		"Repairs": {reason: "they outlive their objects", inv: Inventory{Repairs: []Repair{
			{Group: "apps", Kind: "Deployment", Namespace: "n", Name: "a", Revision: 2, Manager: "mallory", Lost: ".spec.replicas was changed by mallory", Count: 3, First: noon, Last: noon.Add(time.Hour)},
			{Kind: "ConfigMap", Namespace: "n", Name: "a", Revision: 2, Lost: "someone had deleted it", Count: 1, First: noon, Last: noon},
		}}},
		"Many": {reason: "the most that a revision may have", inv: inventory(4000)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			record, err := encodeInventory("argocd", tc.inv)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			t.Logf("%d objects take %d bytes", len(tc.inv.Entries), len(record))
			if len(record) > 1400<<10 {
				t.Errorf("%s: %d bytes are too many for etcd", tc.reason, len(record))
			}
			got, err := DecodeInventory("/key", record)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.inv, got, anyOrder); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestInventoryIsDeterministic: the record depends only on the set of entries, and encoding does
// not change the caller's inventory.
func TestInventoryIsDeterministic(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		inv := inventory(rapid.IntRange(0, 30).Draw(r, "entries"))
		if len(inv.Entries) > 0 {
			inv.Entries[0].Yielded = []string{".b", ".a", ".b"}
		}
		want, err := encodeInventory("argocd", inv)
		if err != nil {
			r.Fatal(err)
		}
		shuffled := Inventory{Entries: rapid.Permutation(inv.Entries).Draw(r, "order"), Reached: map[string]int{}}
		for _, uid := range []string{"uid-2", "uid-1"} {
			shuffled.Reached[uid] = inv.Reached[uid]
		}
		before := slices.Clone(shuffled.Entries)
		got, err := encodeInventory("argocd", shuffled)
		if err != nil {
			r.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			r.Fatal("the order of entries shows in the record")
		}
		if diff := cmp.Diff(before, shuffled.Entries); diff != "" {
			r.Fatalf("encoding changed its argument:\n%s", diff)
		}
	})
}

func TestInventoryRefuses(t *testing.T) {
	object := Entry{Kind: "ConfigMap", Name: "a", Namespace: "n"}
	again := object
	again.UID, again.Version = "another", "v2"
	random := rand.NewChaCha8([32]byte{9})
	var many Inventory
	for i := range 20000 {
		many.Entries = append(many.Entries, entry(random, i))
	}
	cases := map[string]struct {
		reason string
		inv    Inventory
		large  bool
	}{
		"Twice":  {reason: "one object has one entry, whatever its uid and version", inv: Inventory{Entries: []Entry{object, again}}},
		"NoName": {reason: "an object needs a name", inv: Inventory{Entries: []Entry{{Kind: "ConfigMap"}}}},
		"NoKind": {reason: "an object needs a kind", inv: Inventory{Entries: []Entry{{Name: "a"}}}},
		"Large":  {reason: "etcd would refuse it, with an error that nobody understands", inv: many, large: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := encodeInventory("argocd", tc.inv)
			var large *InventoryTooLargeError
			if err == nil || errors.As(err, &large) != tc.large {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
		})
	}
}

func FuzzDecodeInventory(f *testing.F) {
	record, err := encodeInventory("argocd", inventory(3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(record)
	f.Add([]byte("PKI\x01"))
	f.Fuzz(func(t *testing.T, record []byte) {
		inv, err := DecodeInventory("/key", record)
		if err != nil {
			return
		}
		if _, err := encodeInventory("argocd", inv); err != nil {
			t.Errorf("what was read cannot be written: %v", err)
		}
	})
}
