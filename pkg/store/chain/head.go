// Package chain stores the data of a chain that outlives its revisions: the head, with the used
// numbers and the history, and the inventory of the chain's objects in the target cluster. Both
// change only by compare-and-swap.
package chain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// MaxRows bounds the rows of history in a head. Rows of the highest numbers are kept; rows of
	// withdrawn revisions only as far as there is room.
	MaxRows = 50
	// maxTextBytes bounds each text in a row.
	maxTextBytes = 1024
	// MaxNumber is the highest number of a revision.
	MaxNumber = 1<<31 - 1
	// MaxGap bounds the numbers that a revision may skip. Without the bound a single revision could
	// use up all numbers of a name.
	MaxGap = 1000
)

// Head is the record of a chain: its used numbers and the history of its revisions. A zero value
// with a name is a chain without revisions.
type Head struct {
	// Name of the chain.
	Name string `json:"name"`
	// OwnerUID is the uid of the chain's ClusterExtension, or empty.
	OwnerUID types.UID `json:"ownerUID,omitempty"`
	// Highest number that was ever taken, 0 for none. It only grows.
	Highest int64 `json:"highest,omitempty"`
	// HighestUID is the uid of the revision that took the number.
	HighestUID types.UID `json:"highestUID,omitempty"`
	// Confirmed is true if the revision with the highest number was written: the number is used for
	// ever. Until then its create may have failed, and another revision may take the number over.
	Confirmed bool `json:"confirmed,omitempty"`
	// Succeeded is true if a revision of the chain succeeded once. It stays.
	Succeeded bool `json:"succeeded,omitempty"`
	// Rows are the history, by rising number. At most MaxRows are kept.
	Rows []Row `json:"rows,omitempty"`
	// Hold prevents the chain's owner from creating revisions; nil for none. The field came with
	// format 2.
	Hold *Hold `json:"hold,omitempty"`
	// PendingHold becomes Hold when its revision is confirmed, so that a rollback whose revision
	// was never written holds nothing. The field came with format 2.
	PendingHold *Hold `json:"pendingHold,omitempty"`
	// Importing identifies an import in progress: the digest of its archive, and its mode. It is
	// empty when all revisions are written. The field came with format 3.
	Importing string `json:"importing,omitempty"`
	// ImportedFrom is the digest of the chain's archive after the import is complete. The field
	// came with format 3.
	ImportedFrom string `json:"importedFrom,omitempty"`
}

// Hold is left behind by a rollback: the owner that creates revisions of the chain creates none,
// because it would undo the rollback at once.
type Hold struct {
	// Revision is the number of the revision that the rollback created, and UID
	// its uid.
	Revision int64     `json:"revision"`
	UID      types.UID `json:"uid"`
	// OwnerGeneration is the generation that the chain's owner must exceed for the hold to end; 0
	// holds the owner until it is released.
	OwnerGeneration int64 `json:"ownerGeneration,omitempty"`
}

// Row is one revision in a chain's history. It stays when the revision is deleted.
type Row struct {
	Revision int64     `json:"revision"`
	UID      types.UID `json:"uid"`
	// PackRoot names the pack with the revision's manifests.
	PackRoot string `json:"packRoot,omitempty"`
	// CreatedAt and DeletedAt are kept to the second, in UTC. DeletedAt is zero
	// while the revision exists.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	DeletedAt time.Time `json:"deletedAt,omitzero"`
	// RequestedBy is the name of the user who created the revision.
	RequestedBy string `json:"requestedBy,omitempty"`
	// Result in one word, such as Succeeded.
	Result string `json:"result,omitempty"`
	// Cause is the user's reason for the revision.
	Cause string `json:"cause,omitempty"`
	// The fields below came with format 2.

	// Version of the extension that it installs.
	Version string `json:"version,omitempty"`
	// CompletedAt is the time at which the rollout first completed, in UTC, to the second.
	CompletedAt time.Time `json:"completedAt,omitzero"`
	// RollbackOf is the number of the revision whose content was restored; 0 for none.
	RollbackOf int64 `json:"rollbackOf,omitempty"`
	// Counts are the object counts, nil if unknown. Known counts never change, because the previous
	// revision may be deleted later.
	Counts *Counts `json:"counts,omitempty"`
}

// Counts are of the objects of a revision.
type Counts struct {
	// Objects is the number of objects.
	Objects int `json:"objects"`
	// Added, Changed and Removed are against the revision before it in the
	// chain.
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
}

// NumberUsedError reports that a number is not free in a chain.
type NumberUsedError struct {
	Chain           string
	Number, Highest int64
	// Next is the lowest number that is free, 0 when none is.
	Next int64
}

func (e *NumberUsedError) Error() string {
	if e.Next == 0 {
		return fmt.Sprintf("revision number %d of extension %q is not free: %d was used, and there is none above it", e.Number, e.Chain, e.Highest)
	}
	return fmt.Sprintf("revision number %d of extension %q is not free: %d is the highest number that was used; numbers only grow, the next one is %d",
		e.Number, e.Chain, e.Highest, e.Next)
}

// GapError reports that a number skips too many numbers.
type GapError struct {
	Chain  string
	Number int64
	// Lowest and Highest are the first and the last number that can be taken.
	Lowest, Highest int64
}

func (e *GapError) Error() string {
	return fmt.Sprintf("revision number %d of extension %q leaves out too many: from %d to %d can be taken", e.Number, e.Chain, e.Lowest, e.Highest)
}

// OpenError reports that no higher number can be taken yet, because a revision with a lower number
// may still be written.
type OpenError struct {
	Chain  string
	Number int64
	// Open is the number whose revision may still be written; 0 during an import of the chain.
	Open int64
}

func (e *OpenError) Error() string {
	if e.Open == 0 {
		return fmt.Sprintf("revision number %d of extension %q: its import is not finished", e.Number, e.Chain)
	}
	return fmt.Sprintf("revision number %d of extension %q: number %d was taken, and its revision is not known to be written", e.Number, e.Chain, e.Open)
}

// OvertakenError reports that a number of the chain was taken after its revisions were read.
type OvertakenError struct {
	Chain           string
	Number, Highest int64
}

func (e *OvertakenError) Error() string {
	return fmt.Sprintf("revision number %d of extension %q: number %d was taken meanwhile", e.Number, e.Chain, e.Highest)
}

// Open returns the taken number whose revision may still be written; 0 for none.
func (h Head) Open() int64 {
	if h.Confirmed {
		return 0
	}
	return h.Highest
}

// Next returns the lowest number that a new revision may take, 0 when none is
// left.
func (h Head) Next() int64 {
	switch {
	case h.Highest > 0 && !h.Confirmed:
		return h.Highest
	case h.Highest >= MaxNumber:
		return 0
	}
	return h.Highest + 1
}

// Last returns the highest number that a new revision may take, 0 if none is left. The first
// revision of a chain may have a number up to MaxGap; later ones may skip up to MaxGap numbers.
func (h Head) Last() int64 {
	switch {
	case h.Next() == 0:
		return 0
	case h.Highest == 0:
		return MaxGap
	}
	return min(h.Next()+MaxGap, MaxNumber)
}

// Admits returns nil if a number can be taken, and otherwise a *NumberUsedError, *GapError or
// *OpenError.
//
// While the revision of the highest number may still be written, no higher number can be taken: its
// creator could not have seen that revision. The open number itself can be taken, because only one
// revision with a name can be written.
func (h Head) Admits(number int64) error {
	switch {
	case number < h.Highest || number == h.Highest && h.Confirmed:
		return &NumberUsedError{Chain: h.Name, Number: number, Highest: h.Highest, Next: h.Next()}
	case h.Importing != "":
		return &OpenError{Chain: h.Name, Number: number}
	case h.Open() != 0 && number > h.Open():
		return &OpenError{Chain: h.Name, Number: number, Open: h.Open()}
	case number > h.Last():
		return &GapError{Chain: h.Name, Number: number, Lowest: h.Next(), Highest: h.Last()}
	}
	return nil
}

// overtaken reports whether a number was taken, or an import began or ended, since a head was read.
func (h Head) overtaken(seen Head) bool {
	return h.Highest != seen.Highest || h.HighestUID != seen.HighestUID || h.Confirmed != seen.Confirmed || h.Importing != seen.Importing
}

// advance takes a number for a revision that is about to be written, by somebody who
// has looked at the chain when its head was as seen.
func (h *Head) advance(seen Head, number int64, uid types.UID) error {
	if err := validate(number, uid); err != nil {
		return err
	}
	if err := h.Admits(number); err != nil {
		return err
	}
	if h.overtaken(seen) {
		return &OvertakenError{Chain: h.Name, Number: number, Highest: h.Highest}
	}
	h.Highest, h.HighestUID, h.Confirmed = number, uid, false
	if h.PendingHold != nil && h.PendingHold.Revision == number {
		// The revision that was to hold the owner was never written.
		h.PendingHold = nil
	}
	return nil
}

// advanceHolding is advance for a revision that holds the owner once it exists.
func (h *Head) advanceHolding(seen Head, number int64, uid types.UID, ownerGeneration int64) error {
	if err := h.advance(seen, number, uid); err != nil {
		return err
	}
	h.PendingHold = &Hold{Revision: number, UID: uid, OwnerGeneration: ownerGeneration}
	return nil
}

// confirm notes that a revision exists, whatever the head knew of it. The name
// of a revision holds its number, so of two that took the same number one could
// be written only, and it is the one that is confirmed.
func (h *Head) confirm(row Row) error {
	if err := validate(row.Revision, row.UID); err != nil {
		return err
	}
	if row.Revision == h.Highest && h.Confirmed && h.HighestUID != row.UID {
		return &NumberUsedError{Chain: h.Name, Number: row.Revision, Highest: h.Highest, Next: h.Next()}
	}
	if row.Revision >= h.Highest {
		h.Highest, h.HighestUID, h.Confirmed = row.Revision, row.UID, true
	}
	if h.PendingHold != nil && h.PendingHold.UID == row.UID {
		h.Hold, h.PendingHold = h.PendingHold, nil
	}
	h.record(row)
	return nil
}

// record merges a row into the one of the same revision, or adds it.
func (h *Head) record(row Row) {
	rows := slices.Clone(h.Rows)
	if i := slices.IndexFunc(rows, func(r Row) bool { return r.UID == row.UID }); i >= 0 {
		rows[i] = rows[i].merged(row)
	} else {
		rows = append(rows, Row{}.merged(row))
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Revision, b.Revision) })
	for len(rows) > MaxRows {
		goes := max(0, slices.IndexFunc(rows, Row.withdrawn))
		rows = slices.Delete(rows, goes, goes+1)
	}
	h.Rows = rows
}

// withdrawn tells that a revision is gone of which nothing was ever rolled out, such as a
// proposal that a newer one replaced. A catalog may bring many of them.
func (r Row) withdrawn() bool {
	return !r.DeletedAt.IsZero() && r.CompletedAt.IsZero() && r.Result == ""
}

// merged returns the row with what the other one has filled in.
func (r Row) merged(other Row) Row {
	r.Revision, r.UID = other.Revision, other.UID
	overwrite(&r.PackRoot, other.PackRoot)
	overwrite(&r.RequestedBy, text.Cut(other.RequestedBy, maxTextBytes))
	overwrite(&r.Result, text.Cut(other.Result, maxTextBytes))
	overwrite(&r.Cause, text.Cut(other.Cause, maxTextBytes))
	overwrite(&r.Version, text.Cut(other.Version, maxTextBytes))
	overwriteTime(&r.CreatedAt, other.CreatedAt)
	overwriteTime(&r.DeletedAt, other.DeletedAt)
	if r.CompletedAt.IsZero() {
		// The first time stays the first time, also when an imported revision is
		// rolled out once more.
		overwriteTime(&r.CompletedAt, other.CompletedAt)
	}
	if other.RollbackOf != 0 {
		r.RollbackOf = other.RollbackOf
	}
	if r.Counts == nil {
		r.Counts = other.Counts
	}
	return r
}

func overwrite(to *string, from string) {
	if from != "" {
		*to = from
	}
}

func overwriteTime(to *time.Time, from time.Time) {
	if !from.IsZero() {
		*to = from.UTC().Truncate(time.Second)
	}
}

func validate(number int64, uid types.UID) error {
	if number < 1 {
		return fmt.Errorf("revision number %d: numbers begin at 1", number)
	}
	if uid == "" {
		return fmt.Errorf("revision number %d: the revision has no uid", number)
	}
	return nil
}
