package tree

import "slices"

// Pair matches item Old of one sequence with item New of another.
type Pair struct{ Old, New int }

// AlignLines returns the longest sequence of equal lines of two texts (see align for the limits).
func AlignLines(old, new []string, stop func() bool) []Pair {
	known := make(map[string]int)
	return align(lineIDs(known, old), lineIDs(known, new), stop)
}

// lineIDs assigns equal numbers to equal lines.
func lineIDs(known map[string]int, lines []string) []int {
	ids := make([]int, 0, len(lines))
	for _, line := range lines {
		id, ok := known[line]
		if !ok {
			id = len(known)
			known[line] = id
		}
		ids = append(ids, id)
	}
	return ids
}

// alignEffort is the largest number of differences that align finds. Its time is alignEffort times
// the length, its memory the square of alignEffort.
const alignEffort = 1024

// align returns a longest common subsequence of two sequences (Myers' algorithm). If they have more
// than alignEffort differences, or stop returns true, it returns only the common parts at both
// ends.
func align(old, new []int, stop func() bool) []Pair {
	var head, tail []Pair
	for len(old) > len(head) && len(new) > len(head) && old[len(head)] == new[len(head)] {
		head = append(head, Pair{len(head), len(head)})
	}
	for i, j := len(old)-1, len(new)-1; i >= len(head) && j >= len(head) && old[i] == new[j]; i, j = i-1, j-1 {
		tail = append(tail, Pair{i, j})
	}
	slices.Reverse(tail)
	start := len(head)
	for _, p := range alignMiddle(old[start:len(old)-len(tail)], new[start:len(new)-len(tail)], stop) {
		head = append(head, Pair{p.Old + start, p.New + start})
	}
	return append(head, tail...)
}

func alignMiddle(old, new []int, stop func() bool) []Pair {
	if len(old) == 0 || len(new) == 0 {
		return nil
	}
	effort := min(len(old)+len(new), alignEffort)
	// furthest[k+effort+1] is the furthest position in old on diagonal k.
	furthest := make([]int32, 2*effort+3)
	var trace [][]int32
	for d := 0; d <= effort; d++ {
		if stop() {
			return nil
		}
		for k := -d; k <= d; k += 2 {
			at := k + effort + 1
			var x int
			if k == -d || k != d && furthest[at-1] < furthest[at+1] {
				x = int(furthest[at+1])
			} else {
				x = int(furthest[at-1]) + 1
			}
			for x < len(old) && x-k >= 0 && x-k < len(new) && old[x] == new[x-k] {
				x++
			}
			furthest[at] = int32(x)
			if x >= len(old) && x-k >= len(new) {
				return backtrack(old, new, append(trace, slices.Clone(furthest[effort+1-d:effort+2+d])))
			}
		}
		trace = append(trace, slices.Clone(furthest[effort+1-d:effort+2+d]))
	}
	return nil
}

// backtrack follows the path from its end. trace[d][k+d] is the furthest position in old on
// diagonal k with d differences.
func backtrack(old, new []int, trace [][]int32) []Pair {
	var pairs []Pair
	x, y := len(old), len(new)
	for d := len(trace) - 1; d > 0; d-- {
		before := trace[d-1]
		get := func(k int) int {
			if k < -(d-1) || k > d-1 {
				return -1
			}
			return int(before[k+d-1])
		}
		k := x - y
		previous := k - 1
		if k == -d || k != d && get(k-1) < get(k+1) {
			previous = k + 1
		}
		startX := get(previous)
		startY := startX - previous
		for x > startX && y > startY && x > 0 && y > 0 && old[x-1] == new[y-1] {
			x, y = x-1, y-1
			pairs = append(pairs, Pair{x, y})
		}
		x, y = startX, startY
	}
	for x > 0 && y > 0 && old[x-1] == new[y-1] {
		x, y = x-1, y-1
		pairs = append(pairs, Pair{x, y})
	}
	slices.Reverse(pairs)
	return pairs
}

func ascending(numbers []int) []int {
	var tops []int // tops[l] is the index of the smallest end of a run of length l+1
	previous := make([]int, len(numbers))
	for i, n := range numbers {
		l, _ := slices.BinarySearchFunc(tops, n, func(top, n int) int { return numbers[top] - n })
		previous[i] = -1
		if l > 0 {
			previous[i] = tops[l-1]
		}
		if l == len(tops) {
			tops = append(tops, i)
		} else {
			tops[l] = i
		}
	}
	if len(tops) == 0 {
		return nil
	}
	run := make([]int, 0, len(tops))
	for i := tops[len(tops)-1]; i >= 0; i = previous[i] {
		run = append(run, i)
	}
	slices.Reverse(run)
	return run
}
