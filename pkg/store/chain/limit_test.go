package chain

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/store"
)

// around draws a length: mostly short, sometimes near the limit, which takes longer.
func around(r *rapid.T, edge, below int) int {
	if rapid.IntRange(0, 15).Draw(r, "large") != 7 {
		return rapid.IntRange(0, 100).Draw(r, "length")
	}
	return rapid.IntRange(edge-below, edge+100).Draw(r, "length")
}

// TestHeadIsRead: any encoded head decodes to an equal head. The test covers sizes around the
// limit, and text that JSON writes six times as long.
func TestHeadIsRead(t *testing.T) {
	taken, refused := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.SampledFrom([]string{"x", "<", `"`, "é"}).Draw(r, "text")
		head := Head{Name: "argocd", Highest: 1, HighestUID: "uid", OwnerUID: types.UID(strings.Repeat(text, around(r, maxHeadJSON/6, 2000)))}
		for number := range rapid.Int64Range(0, MaxRows+5).Draw(r, "rows") {
			head.record(Row{Revision: number + 1, UID: types.UID(rapid.StringN(1, 3, 3).Draw(r, "uid")), Cause: strings.Repeat(text, 2000), Result: "Succeeded"})
		}
		record, err := encodeHead(head)
		if err != nil {
			refused++
			var large *store.TooLargeError
			if !errors.As(err, &large) {
				r.Fatalf("not refused for its size: %v", err)
			}
			return
		}
		taken++
		got, err := DecodeHead("/key", record)
		if err != nil {
			r.Fatalf("it was encoded and cannot be decoded: %v", err)
		}
		if diff := cmp.Diff(head, got, cmpopts.EquateEmpty()); diff != "" {
			r.Fatalf("it comes back changed:\n%.1000s", diff)
		}
	})
	if taken == 0 {
		t.Errorf("%d heads were taken, %d refused: the limit was not tried", taken, refused)
	}
}

// TestLargestHead: the largest possible head of a chain is far below the limit.
func TestLargestHead(t *testing.T) {
	head := Head{Name: strings.Repeat("a", 52), OwnerUID: types.UID(strings.Repeat("<", 128))}
	text := strings.Repeat("<", 2*maxTextBytes)
	for number := range int64(2 * MaxRows) {
		head.record(Row{Revision: number + 1, UID: types.UID(strings.Repeat("u", 36) + string(rune(number))), PackRoot: strings.Repeat("f", 71),
			RequestedBy: text, Result: text, Cause: text, Version: text, Counts: &Counts{Objects: 4000}})
	}
	record, err := encodeHead(head)
	if err != nil {
		t.Fatal(err)
	}
	content, err := headFormat().Open("/key", record)
	if err != nil || len(content) > maxHeadJSON/3 {
		t.Errorf("the largest head has %d bytes, error %v, want at most a third of %d", len(content), err, maxHeadJSON)
	}
	if _, err := encodeHead(Head{Name: "a", OwnerUID: types.UID(strings.Repeat("<", maxHeadJSON/6))}); !errors.As(err, new(*store.TooLargeError)) {
		t.Errorf("a head beyond the limit: error %v", err)
	}
}

// TestInventoryIsRead works like TestHeadIsRead, for inventories.
func TestInventoryIsRead(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.SampledFrom([]string{"x", "<", "é"}).Draw(r, "text")
		inv := Inventory{Entries: []Entry{
			{Kind: "ConfigMap", Name: "a", Yielded: []string{strings.Repeat(text, 1+around(r, maxInventoryJSON/6, 200))}},
			{Kind: "ConfigMap", Name: rapid.StringMatching(`[b-z<>"]{1,20}`).Draw(r, "name")},
		}, Reached: map[string]int{"uid": rapid.Int().Draw(r, "reached")}, Cluster: rapid.SampledFrom([]string{"", "uid"}).Draw(r, "cluster")}
		record, err := encodeInventory("argocd", inv)
		if err != nil {
			if !errors.As(err, new(*InventoryTooLargeError)) {
				r.Fatalf("not refused for its size: %v", err)
			}
			return
		}
		got, err := DecodeInventory("/key", record)
		if err != nil {
			r.Fatalf("it was encoded and cannot be decoded: %v", err)
		}
		if diff := cmp.Diff(inv, got, cmpopts.EquateEmpty(), anyOrder); diff != "" {
			r.Fatalf("it comes back changed:\n%.1000s", diff)
		}
	})
}
