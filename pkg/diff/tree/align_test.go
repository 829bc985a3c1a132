package tree

import (
	"testing"

	"pgregory.net/rapid"
)

// TestAlign compares align with the textbook algorithm.
func TestAlign(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sequence := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 20)
		old, new := sequence.Draw(rt, "old"), sequence.Draw(rt, "new")
		pairs := align(old, new, func() bool { return false })
		last := Pair{-1, -1}
		for _, p := range pairs {
			if p.Old <= last.Old || p.New <= last.New || old[p.Old] != new[p.New] {
				rt.Fatalf("%v is no common subsequence", pairs)
			}
			last = p
		}
		table := make([][]int, len(old)+1)
		for i := range table {
			table[i] = make([]int, len(new)+1)
		}
		for i := len(old) - 1; i >= 0; i-- {
			for j := len(new) - 1; j >= 0; j-- {
				table[i][j] = max(table[i+1][j], table[i][j+1])
				if old[i] == new[j] {
					table[i][j] = table[i+1][j+1] + 1
				}
			}
		}
		if len(pairs) != table[0][0] {
			rt.Fatalf("%d in common, want %d", len(pairs), table[0][0])
		}
	})
}

// TestAlignIsBounded: two very long sequences without a common element.
func TestAlignIsBounded(t *testing.T) {
	old, new := make([]int, 100_000), make([]int, 100_000)
	for i := range old {
		old[i], new[i] = i, -i-1
	}
	old[0], new[0] = 7, 7
	if pairs := align(old, new, func() bool { return false }); len(pairs) != 1 {
		t.Errorf("got %d pairs, want that at the start", len(pairs))
	}
}
