package chain

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// head returns a chain's head at a number.
func head(highest int64, uid types.UID, confirmed bool) Head {
	return Head{Name: "argocd", Highest: highest, HighestUID: uid, Confirmed: confirmed}
}

func importing(h Head) Head { h.Importing = "sha256:0"; return h }
func succeeded(h Head) Head { h.Succeeded, h.Rows = true, []Row{{Revision: 1}}; return h }
func ptr(h Head) *Head      { return &h }

func TestAdvance(t *testing.T) {
	cases := map[string]struct {
		reason string
		head   Head
		number int64
		want   Head
		// seen is the head that the caller read; nil means the current head.
		seen *Head
		// next is the free number in the error; 0 means no error.
		next int64
		// open is the open number in the error; -1 means an import, 0 no error.
		open      int64
		overtaken bool
		// gap is the highest allowed number in the error; 0 means no error.
		gap int64
	}{
		"First":          {reason: "a chain begins anywhere from 1", head: Head{Name: "argocd"}, number: 1, want: head(1, "new", false)},
		"FirstHigh":      {reason: "a chain begins anywhere from 1", head: Head{Name: "argocd"}, number: 7, want: head(7, "new", false)},
		"Higher":         {reason: "numbers grow", head: head(7, "old", true), number: 8, want: head(8, "new", false)},
		"Gap":            {reason: "numbers may be left out", head: head(7, "old", true), number: 70, want: head(70, "new", false)},
		"Used":           {reason: "a confirmed number is used for ever", head: head(7, "old", true), number: 7, next: 8},
		"UsedBySelf":     {reason: "a confirmed number is used, also by the same uid", head: head(7, "new", true), number: 7, next: 8},
		"Lower":          {reason: "numbers never fall, used or not", head: head(7, "old", true), number: 3, next: 8},
		"TakeOver":       {reason: "a create was refused or died: its number is free", head: head(7, "old", false), number: 7, want: head(7, "new", false)},
		"Again":          {reason: "the same create retried", head: head(7, "new", false), number: 7, want: head(7, "new", false)},
		"BelowUnused":    {reason: "an unused number still keeps lower ones out", head: head(7, "old", false), number: 6, next: 7},
		"AboveUnused":    {reason: "its revision may be written at any moment, and nobody has seen it", head: head(7, "old", false), number: 8, open: 7},
		"Importing":      {reason: "more revisions come, and nobody has seen them", head: importing(head(7, "old", true)), number: 8, open: -1},
		"Overtaken":      {reason: "another one came since the chain was looked at", head: head(7, "old", true), seen: ptr(head(6, "older", true)), number: 8, overtaken: true},
		"OvertakenSame":  {reason: "also where it has the same number, if more may have come", head: head(7, "old", false), seen: ptr(head(5, "older", true)), number: 7, overtaken: true},
		"NotOvertaken":   {reason: "history and success make no difference to what is deleted", head: head(7, "old", true), seen: ptr(succeeded(head(7, "old", true))), number: 8, want: head(8, "new", false)},
		"LargestIsThere": {reason: "no number overflows", head: head(MaxNumber, "old", true), number: MaxNumber, next: -1},
		"Largest":        {reason: "ten digits", head: head(MaxNumber-1, "old", true), number: MaxNumber, want: head(MaxNumber, "new", false)},
		"FirstTooHigh":   {reason: "a user who begins a chain cannot use up its numbers", head: Head{Name: "argocd"}, number: 1001, gap: 1000},
		"FirstHighest":   {reason: "up to a bound", head: Head{Name: "argocd"}, number: 1000, want: head(1000, "new", false)},
		"GapTooLarge":    {reason: "nor who goes on with it", head: head(7, "old", true), number: 1009, gap: 1008},
		"GapLargest":     {reason: "a thousand are left out", head: head(7, "old", true), number: 1008, want: head(1008, "new", false)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, seen := tc.head, tc.head
			if tc.seen != nil {
				seen = *tc.seen
			}
			err := got.advance(seen, tc.number, "new")
			var used *NumberUsedError
			var open *OpenError
			var overtaken *OvertakenError
			if errors.As(err, &used) != (tc.next != 0) || errors.As(err, &open) != (tc.open != 0) || errors.As(err, &overtaken) != tc.overtaken {
				t.Fatalf("%s: got error %v", tc.reason, err)
			}
			if open != nil && open.Open != max(0, tc.open) {
				t.Errorf("%s: got error %v", tc.reason, err)
			}
			var gap *GapError
			if errors.As(err, &gap) != (tc.gap != 0) || gap != nil && (gap.Highest != tc.gap || gap.Lowest != tc.head.Next()) {
				t.Fatalf("%s: got error %v", tc.reason, err)
			}
			if open != nil || overtaken != nil || gap != nil {
				tc.want = tc.head
			}
			if used != nil {
				want := &NumberUsedError{Chain: "argocd", Number: tc.number, Highest: tc.head.Highest, Next: max(0, tc.next)}
				if diff := cmp.Diff(want, used); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
				}
				tc.want = tc.head
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestAdvanceRefusesNonsense(t *testing.T) {
	for _, number := range []int64{0, -1} {
		if err := (&Head{}).advance(Head{}, number, "uid"); err == nil {
			t.Errorf("number %d was taken", number)
		}
	}
	if err := (&Head{}).advance(Head{}, 1, ""); err == nil {
		t.Error("a revision without uid took a number")
	}
}

func TestConfirm(t *testing.T) {
	row := func(number int64, uid types.UID) []Row { return []Row{{Revision: number, UID: uid}} }
	with := func(h Head, rows []Row) Head { h.Rows = rows; return h }
	cases := map[string]struct {
		reason string
		head   Head
		number int64
		want   Head
		used   bool
	}{
		"Taken":     {reason: "the revision that took the number was written", head: head(7, "new", false), number: 7, want: with(head(7, "new", true), row(7, "new"))},
		"TakenOver": {reason: "another create took the number over, and its write failed because we were there", head: head(7, "loser", false), number: 7, want: with(head(7, "new", true), row(7, "new"))},
		"Again":     {reason: "confirming is idempotent", head: with(head(7, "new", true), row(7, "new")), number: 7, want: with(head(7, "new", true), row(7, "new"))},
		"Late":      {reason: "a higher number was taken meanwhile", head: head(8, "next", false), number: 7, want: with(head(8, "next", false), row(7, "new"))},
		"NoHead":    {reason: "the head was lost: what exists counts", head: Head{Name: "argocd"}, number: 7, want: with(head(7, "new", true), row(7, "new"))},
		"Behind":    {reason: "the head is from an older backup", head: head(5, "old", true), number: 7, want: with(head(7, "new", true), row(7, "new"))},
		"Other":     {reason: "two revisions of one number cannot both exist", head: head(7, "old", true), number: 7, used: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.head
			err := got.confirm(Row{Revision: tc.number, UID: "new"})
			var used *NumberUsedError
			if errors.As(err, &used) != tc.used || err != nil != tc.used {
				t.Fatalf("%s: got error %v", tc.reason, err)
			}
			if tc.used {
				tc.want = tc.head
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRecordMerges(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 678, time.FixedZone("CET", 3600))
	h := Head{}
	h.record(Row{Revision: 2, UID: "b", CreatedAt: created, RequestedBy: "jane"})
	h.record(Row{Revision: 1, UID: "a"})
	h.record(Row{Revision: 2, UID: "b", Result: "Succeeded", Cause: strings.Repeat("ä", maxTextBytes)})
	h.record(Row{Revision: 2, UID: "b", DeletedAt: created.Add(time.Hour)})
	h.record(Row{Revision: 2, UID: "b", Version: "v1", CompletedAt: created, RollbackOf: 1, Counts: &Counts{Objects: 3, Added: 2}})
	h.record(Row{Revision: 2, UID: "b", Counts: &Counts{Objects: 3, Added: 3}})
	if cause := h.Rows[1].Cause; len(cause) > maxTextBytes || !utf8.ValidString(cause) {
		t.Errorf("the cause has %d bytes, or was cut inside of a character", len(cause))
	}
	h.Rows[1].Cause = ""
	want := []Row{{Revision: 1, UID: "a"}, {
		Revision: 2, UID: "b", RequestedBy: "jane", Result: "Succeeded",
		// The first counts stay, because the previous revision may be deleted later.
		Version: "v1", RollbackOf: 1, Counts: &Counts{Objects: 3, Added: 2},
		CompletedAt: time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC),
		CreatedAt:   time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC),
		DeletedAt:   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}}
	if diff := cmp.Diff(want, h.Rows); diff != "" {
		t.Errorf("rows are merged by uid, sorted by number, in UTC to the second (-want +got):\n%s", diff)
	}
}

// TestHold: a rollback holds the owner exactly since its revision exists. Events between its create
// and its confirmation do not change this.
func TestHold(t *testing.T) {
	take := func(number int64, uid types.UID) func(*Head) error {
		return func(h *Head) error { return h.advance(*h, number, uid) }
	}
	rollBack := func(number int64, uid types.UID, generation int64) func(*Head) error {
		return func(h *Head) error { return h.advanceHolding(*h, number, uid, generation) }
	}
	written := func(number int64, uid types.UID) func(*Head) error {
		return func(h *Head) error { return h.confirm(Row{Revision: number, UID: uid}) }
	}
	cases := map[string]struct {
		reason string
		steps  []func(*Head) error
		want   *Hold
	}{
		"Written":      {"the revision exists", []func(*Head) error{rollBack(2, "r", 7), written(2, "r")}, &Hold{2, "r", 7}},
		"NotWritten":   {"the create died: nobody is held", []func(*Head) error{rollBack(2, "r", 7)}, nil},
		"TakenOver":    {"another create took the number of one that died", []func(*Head) error{rollBack(2, "r", 7), take(2, "x"), written(2, "x")}, nil},
		"NextTaken":    {"a create behind it takes nothing away", []func(*Head) error{rollBack(2, "r", 7), written(2, "r"), take(3, "x")}, &Hold{2, "r", 7}},
		"NextWritten":  {"a person's next revision does not release", []func(*Head) error{rollBack(2, "r", 7), written(2, "r"), take(3, "x"), written(3, "x")}, &Hold{2, "r", 7}},
		"EarlierStays": {"a rollback that died leaves the hold of the one before", []func(*Head) error{rollBack(2, "r", 7), written(2, "r"), rollBack(3, "s", 8), take(3, "x"), written(3, "x")}, &Hold{2, "r", 7}},
		"Later":        {"the later rollback holds", []func(*Head) error{rollBack(2, "r", 7), written(2, "r"), rollBack(3, "s", 8), written(3, "s")}, &Hold{3, "s", 8}},
		"Again":        {"confirming again does not bring a hold back", []func(*Head) error{rollBack(2, "r", 7), written(2, "r"), func(h *Head) error { h.Hold = nil; return nil }, written(2, "r")}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := head(1, "old", true)
			for i, step := range tc.steps {
				if err := step(&h); err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
			}
			if diff := cmp.Diff(tc.want, h.Hold); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRecordIsBounded(t *testing.T) {
	h := Head{}
	for n := int64(1); n <= 3*MaxRows; n++ {
		h.record(Row{Revision: n, UID: types.UID(fmt.Sprint(n))})
	}
	if len(h.Rows) != MaxRows || h.Rows[0].Revision != 2*MaxRows+1 {
		t.Fatalf("%d rows from number %d are left, want the %d highest", len(h.Rows), h.Rows[0].Revision, MaxRows)
	}
	before := h
	h.record(Row{Revision: 1, UID: "1", Result: "Succeeded"})
	if diff := cmp.Diff(before, h); diff != "" {
		t.Errorf("a row that has no place any more changes nothing (-before +after):\n%s", diff)
	}
}

// TestWithdrawnRows: withdrawn rows are removed before rows of rolled-out revisions.
func TestWithdrawnRows(t *testing.T) {
	h := Head{}
	number := int64(0)
	record := func(row Row) {
		if row.Revision == 0 {
			number++
			row.Revision, row.UID = number, types.UID(fmt.Sprint(number))
		}
		h.record(row)
	}
	for range MaxRows - 1 {
		record(Row{Result: "Succeeded", CompletedAt: time.Unix(1, 0)})
	}
	for range 3 * MaxRows {
		record(Row{Cause: "proposed"})
		record(Row{Revision: number, UID: types.UID(fmt.Sprint(number)), DeletedAt: time.Unix(2, 0)})
	}
	if len(h.Rows) != MaxRows || h.Rows[0].Revision != 1 || h.Rows[MaxRows-2].Revision != MaxRows-1 || h.Rows[MaxRows-1].Revision != number {
		t.Fatalf("%d rows from number %d to %d are left, want all that were rolled out, and the last of the others", len(h.Rows), h.Rows[0].Revision, h.Rows[len(h.Rows)-1].Revision)
	}
	// A revision that failed, or was deleted during its rollout, was not withdrawn.
	for _, row := range []Row{{Result: "Failing", DeletedAt: time.Unix(2, 0)}, {Result: "Progressing", DeletedAt: time.Unix(2, 0)}, {}} {
		if row.withdrawn() {
			t.Errorf("%+v was withdrawn", row)
		}
	}
}

// TestNumbersOnlyGrow: for creates and confirmations in any order, the highest number and Succeeded
// never revert. The number of an existing revision is never used again.
func TestNumbersOnlyGrow(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := Head{Name: "argocd"}
		exists := map[int64]types.UID{}
		for i := range rapid.IntRange(1, 40).Draw(r, "steps") {
			number, before := rapid.Int64Range(1, 6).Draw(r, "number"), h
			uid := types.UID(fmt.Sprint("uid-", i))
			if rapid.Bool().Draw(r, "create") {
				err := h.advance(h, number, uid)
				_, taken := exists[number]
				if err == nil && taken && before.Confirmed && before.Highest == number {
					r.Fatalf("number %d was given out again", number)
				}
				// The write of the record fails if a record with its name exists.
				if err == nil && !taken && rapid.Bool().Draw(r, "written") {
					exists[number] = uid
				}
			} else if uid, ok := exists[number]; ok {
				if err := h.confirm(Row{Revision: number, UID: uid}); err != nil {
					r.Fatalf("a revision that exists could not be confirmed: %v", err)
				}
				if h.advance(h, number, "another") == nil {
					r.Fatalf("number %d was given out after it was confirmed", number)
				}
			}
			if h.Highest < before.Highest {
				r.Fatalf("the highest number fell from %d to %d", before.Highest, h.Highest)
			}
		}
	})
}

func FuzzDecodeHead(f *testing.F) {
	f.Add([]byte(`PKH` + "\x03" + `{"name":"argocd","highest":3,"rows":[{"revision":3,"uid":"x"}]}`))
	f.Add([]byte("PKH\x02{}"))
	f.Fuzz(func(t *testing.T, record []byte) {
		h, err := DecodeHead("/key", record)
		if err == nil {
			_ = h.advance(h, h.Highest, "uid")
			h.record(Row{Revision: 1, UID: "uid"})
		}
	})
}
