// Package chain stores the data of a chain that outlives its revisions. The head has the used
// numbers and the history. The inventory lists the chain's objects in the target cluster. Both
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
	// MaxRows bounds the history rows of a head. The head keeps the rows with the highest numbers.
	// It first removes rows of withdrawn revisions.
	MaxRows = 50
	// maxTextBytes bounds each text in a row.
	maxTextBytes = 1024
	// MaxNumber is the highest number of a revision.
	MaxNumber = 1<<31 - 1
	// MaxGap bounds the numbers that a revision may skip. Without this limit, a single revision
	// could use up all numbers of a name.
	MaxGap = 1000
)

// Head is the record of a chain: its used numbers and the history of its revisions. A zero value
// with a name is a chain without revisions.
type Head struct {
	// Name is the name of the chain.
	Name string `json:"name"`
	// OwnerUID is the uid of the chain's ClusterExtension, or empty.
	OwnerUID types.UID `json:"ownerUID,omitempty"`
	// Highest is the highest number that was ever taken, or 0. It never decreases.
	Highest int64 `json:"highest,omitempty"`
	// HighestUID is the uid of the revision that took the number.
	HighestUID types.UID `json:"highestUID,omitempty"`
	// Confirmed is true if the revision with the highest number was written: the number is used for
	// ever. Before that, its create may have failed, and another revision may take the number.
	Confirmed bool `json:"confirmed,omitempty"`
	// Succeeded is true if a revision of the chain ever succeeded.
	Succeeded bool `json:"succeeded,omitempty"`
	// Rows are the history, lowest number first. At most MaxRows are kept.
	Rows []Row `json:"rows,omitempty"`
	// Hold prevents the chain's owner from creating revisions; nil for no hold. The field was added
	// in format 2.
	Hold *Hold `json:"hold,omitempty"`
	// PendingHold becomes Hold when its revision is confirmed. So a rollback whose revision was
	// never written holds nothing. The field was added in format 2.
	PendingHold *Hold `json:"pendingHold,omitempty"`
	// Importing identifies an import in progress: the digest of its archive, and its mode. It is
	// empty when all revisions are written. The field was added in format 3.
	Importing string `json:"importing,omitempty"`
	// ImportedFrom is the digest of the chain's archive after the import is complete. The field was
	// added in format 3.
	ImportedFrom string `json:"importedFrom,omitempty"`
}

// Hold is the effect of a rollback on the owner of the chain. The owner must not create revisions,
// because it would undo the rollback at once.
type Hold struct {
	// Revision is the number of the revision that the rollback created. UID is its uid.
	Revision int64     `json:"revision"`
	UID      types.UID `json:"uid"`
	// OwnerGeneration is the generation that the chain's owner must exceed for the hold to end; 0
	// holds the owner until it is released.
	OwnerGeneration int64 `json:"ownerGeneration,omitempty"`
}

// Row is one revision in a chain's history. It stays after the revision is deleted.
type Row struct {
	Revision int64     `json:"revision"`
	UID      types.UID `json:"uid"`
	// PackRoot names the pack with the revision's manifests.
	PackRoot string `json:"packRoot,omitempty"`
	// CreatedAt and DeletedAt are in UTC, to the second. DeletedAt is zero while the revision
	// exists.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	DeletedAt time.Time `json:"deletedAt,omitzero"`
	// RequestedBy is the name of the user who created the revision.
	RequestedBy string `json:"requestedBy,omitempty"`
	// Result is one word, such as Succeeded.
	Result string `json:"result,omitempty"`
	// Cause is the user's reason for the revision.
	Cause string `json:"cause,omitempty"`
	// The following fields were added in format 2.

	// Version is the version of the extension that the revision installs.
	Version string `json:"version,omitempty"`
	// CompletedAt is the time at which the rollout first completed, in UTC, to the second.
	CompletedAt time.Time `json:"completedAt,omitzero"`
	// RollbackOf is the number of the revision whose content was restored; 0 for none.
	RollbackOf int64 `json:"rollbackOf,omitempty"`
	// Counts are the object counts, or nil if unknown. Known counts never change, because the
	// previous revision may be deleted later.
	Counts *Counts `json:"counts,omitempty"`
}

// Counts are the object counts of a revision.
type Counts struct {
	// Objects is the number of objects.
	Objects int `json:"objects"`
	// Added, Changed and Removed are relative to the previous revision of the chain.
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
}

// NumberUsedError reports that a number is not free in a chain.
type NumberUsedError struct {
	Chain           string
	Number, Highest int64
	// Next is the lowest free number, or 0.
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
	// Lowest and Highest are the first and the last allowed number.
	Lowest, Highest int64
}

func (e *GapError) Error() string {
	return fmt.Sprintf("revision number %d of extension %q leaves out too many: from %d to %d can be taken", e.Number, e.Chain, e.Lowest, e.Highest)
}

// OpenError reports that no higher number can be taken yet: a revision with a lower number may
// still be written.
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

// Open returns the taken number whose revision may still be written, or 0.
func (h Head) Open() int64 {
	if h.Confirmed {
		return 0
	}
	return h.Highest
}

// Next returns the lowest number that a new revision may take, or 0.
func (h Head) Next() int64 {
	switch {
	case h.Highest > 0 && !h.Confirmed:
		return h.Highest
	case h.Highest >= MaxNumber:
		return 0
	}
	return h.Highest + 1
}

// Last returns the highest number that a new revision may take, or 0. The first revision of a chain
// may have a number up to MaxGap. Later revisions may skip up to MaxGap numbers.
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

// advance takes a number for a revision that is about to be written. seen is the head that the
// caller read before it read the chain.
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

// advanceHolding works like advance, for a revision that holds the owner after it is written.
func (h *Head) advanceHolding(seen Head, number int64, uid types.UID, ownerGeneration int64) error {
	if err := h.advance(seen, number, uid); err != nil {
		return err
	}
	h.PendingHold = &Hold{Revision: number, UID: uid, OwnerGeneration: ownerGeneration}
	return nil
}

// confirm records that a revision exists, independent of the head's content. The name of a revision
// contains its number. So of two revisions that took the same number, only one could be written,
// and this one is confirmed.
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

// record adds a row, or merges it into the row of the same revision.
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

// withdrawn reports whether a revision was deleted before it was rolled out, for example a proposal
// that a newer proposal replaced. A catalog may cause many of these.
func (r Row) withdrawn() bool {
	return !r.DeletedAt.IsZero() && r.CompletedAt.IsZero() && r.Result == ""
}

// merged returns the row with the set fields of another row.
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
		// The first completion is kept, even if an imported revision is rolled out again.
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
