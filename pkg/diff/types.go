package diff

import (
	"encoding/json"
	"fmt"

	"github.com/penstock-project/penstock/pkg/diff/review"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Kind is the kind of change of an object.
type Kind string

// The kinds of change.
const (
	Added     Kind = "Added"
	Removed   Kind = "Removed"
	Changed   Kind = "Changed"
	Unchanged Kind = "Unchanged"
)

// Op is the kind of change of a field.
type Op string

// The operations on fields. Reorder is for a keyed list whose order changed. Old and New are then
// the keys of all items, in order: the value of the key, or an object of several keys.
const (
	Add     Op = "add"
	Remove  Op = "remove"
	Replace Op = "replace"
	Reorder Op = "reorder"
)

// Change is the change of one object.
type Change struct {
	manifest.ID
	// OldVersion and NewVersion are the API versions of the manifests, such as "v1"; empty if the
	// object does not exist.
	OldVersion, NewVersion string

	Kind Kind
	// Fields are the differences, in the order of their paths in the document. Only a Changed
	// object has any. Applied to the old manifest, they give the new one, if nothing is redacted or
	// truncated.
	Fields []FieldChange
	// Unified is the difference as a unified diff of YAML, with three lines of context; empty if
	// nothing changed.
	Unified string
	// AddedLines and RemovedLines count the lines of the unified diff before
	// its truncation.
	AddedLines, RemovedLines int
	// Notes are remarks for the reviewer, the most severe first.
	Notes []review.Note

	// OnlyLabels describes the change of version labels if nothing else changes, such as
	// "app.kubernetes.io/version 1.18.4 → 1.20.3". It is empty if a selector names the label.
	// Renderers may show objects with the same change in one line.
	OnlyLabels string

	// NotCompared is the reason why there are no fields, lines and notes although the manifests
	// differ: the time was over, or a manifest cannot be read.
	NotCompared string
	// Truncated counts the parts that Limits omitted.
	Truncated Truncation
}

// FieldCount returns the number of differing fields, including the omitted ones.
func (c Change) FieldCount() int {
	return len(c.Fields) + c.Truncated.Fields
}

// FieldChange is one difference.
type FieldChange struct {
	// Path leads to the field, such as
	//
	//	.spec.template.spec.containers[name="manager"].image
	//	.metadata.labels["app.kubernetes.io/name"]
	//	.spec.ports[port=443,protocol="TCP"].name
	//	.metadata.finalizers[="example.com/cleanup"]
	//	.rules[3].verbs[0]
	//
	// Items of keyed lists are identified by their keys, items of sets by their value, and other
	// items by their index from 0. For a removed item, it is the index in the old list, otherwise
	// in the new list. Quoted parts are JSON strings with unprintable characters escaped.
	Path string
	Op   Op
	// Old and New are JSON values; nil if the value does not exist, is redacted, or is too large
	// (see Truncated). Unprintable characters are escaped.
	Old, New json.RawMessage
	// Index is set for an item that was added to a keyed list: its position in the new list, from
	// 0.
	Index *int
	// Redacted is true if values are hidden: all of Old and New (then they are nil), or the strings
	// "***" in them.
	Redacted bool
	// Truncated is the number of bytes of Old and New that were omitted because of a limit.
	Truncated int
}

// Summary counts objects.
type Summary struct {
	Added, Removed, Changed, Unchanged int
	// OldBytes and NewBytes are the sizes of the manifests without Secrets, whose size would reveal
	// something about their content.
	OldBytes, NewBytes int64
}

// String returns the summary for a table's column: "+3 ~5 -1".
func (s Summary) String() string {
	return fmt.Sprintf("+%d ~%d -%d", s.Added, s.Changed, s.Removed)
}

// Report holds the changes between two sets of objects.
type Report struct {
	Summary Summary
	// Notes are the notes of all changes, the most severe first.
	Notes []review.Note
	// Changes are the changed objects: the objects of new in their order, then the removed objects.
	Changes []Change
	// Truncated is the sum of the omitted parts of all changes. Its Notes are the notes that the
	// report omits.
	Truncated Truncation
}

// Truncation counts the omitted parts of a diff.
type Truncation struct {
	// Fields is the number of omitted field changes.
	Fields int
	// Values is the number of field changes whose old or new value was omitted, because of a limit
	// of size or depth.
	Values int
	// Lines is the number of omitted lines of the unified diff.
	Lines int
	// Notes is the number of omitted notes.
	Notes int
	// Objects is the number of objects that were not compared.
	Objects int
}

// IsZero reports whether nothing was omitted.
func (t Truncation) IsZero() bool { return t == Truncation{} }

// Add adds the counts of another truncation.
func (t *Truncation) Add(other Truncation) {
	t.Fields += other.Fields
	t.Values += other.Values
	t.Lines += other.Lines
	t.Notes += other.Notes
	t.Objects += other.Objects
}

// Limits are the largest sizes of a result. Zero means the default.
type Limits struct {
	// Fields is the number of field changes of one object, by default 200.
	Fields int
	// TotalFields is the number of fields of all objects, by default 10,000.
	TotalFields int
	// ValueBytes is the size of one value of a field change, as JSON, by
	// default 4 KiB.
	ValueBytes int
	// TotalValueBytes is the size of all values, by default 4 MiB.
	TotalValueBytes int
	// UnifiedBytes is the size of the unified diff of one object, by default
	// 256 KiB.
	UnifiedBytes int
	// TotalUnifiedBytes is the size of the unified diffs of all objects, by default 4 MiB.
	TotalUnifiedBytes int
	// LineBytes is the length of one line of a unified diff, by default 4 KiB. A longer line is
	// shortened to the part that differs.
	LineBytes int
	// Notes is the number of notes of one object, by default 50.
	Notes int
	// TotalNotes is the number of notes of a report, by default 500.
	TotalNotes int
}

// ForOne returns the limits for the diff of a single object, which may use the total limits alone.
func ForOne() Limits {
	const all = 32 << 20
	return Limits{
		Fields: 10_000, ValueBytes: all, TotalValueBytes: all, UnifiedBytes: all, TotalUnifiedBytes: all, LineBytes: all, Notes: 500,
	}
}

func (l Limits) withDefaults() Limits {
	for _, limit := range []struct {
		value    *int
		fallback int
	}{
		{&l.Fields, 200},
		{&l.TotalFields, 10_000},
		{&l.ValueBytes, 4 << 10},
		{&l.TotalValueBytes, 4 << 20},
		{&l.UnifiedBytes, 256 << 10},
		{&l.TotalUnifiedBytes, 4 << 20},
		{&l.LineBytes, 4 << 10},
		{&l.Notes, 50},
		{&l.TotalNotes, 500},
	} {
		if *limit.value <= 0 {
			*limit.value = limit.fallback
		}
	}
	return l
}
