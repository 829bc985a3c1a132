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

// The operations on fields. Reorder is of the items of a list which are known
// by key and of which the order changed: Old and New are then the keys of all
// items, in order (the value of the key, or an object of several keys).
const (
	Add     Op = "add"
	Remove  Op = "remove"
	Replace Op = "replace"
	Reorder Op = "reorder"
)

// Change is the change of one object.
type Change struct {
	manifest.ID
	// OldVersion and NewVersion are the API versions the manifests are written
	// in, such as "v1"; empty where the object does not exist.
	OldVersion, NewVersion string

	Kind Kind
	// Fields are the differences, in the order of their paths in the document;
	// only an object that is Changed has any. Applied to the old manifest they
	// give the new one, if nothing is redacted or truncated.
	Fields []FieldChange
	// Unified is the difference as a unified diff of YAML, with three lines of
	// context; empty when nothing changed.
	Unified string
	// AddedLines and RemovedLines count the lines of the unified diff before
	// its truncation.
	AddedLines, RemovedLines int
	// Notes are remarks for the reviewer, the most severe first.
	Notes []review.Note

	// OnlyLabels says which labels of the version change, when nothing else of the object does, such
	// as "app.kubernetes.io/version 1.18.4 → 1.20.3". It is empty when a selector names the label.
	// Renderers may show the objects that share it in one line.
	OnlyLabels string

	// NotCompared says why there are no fields, lines and notes although the
	// manifests differ: time ran out, or one of them cannot be read.
	NotCompared string
	// Truncated counts what Limits left out.
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
	// Items of lists that have keys are known by them, those of sets by their
	// value, others by their index, from 0: in the old list where Op is Remove
	// and the item itself is removed, otherwise in the new one. A quoted part
	// is quoted as in JSON, with everything escaped that does not print.
	Path string
	Op   Op
	// Old and New are JSON values, nil where there is none, or where it is
	// redacted or was too large (see Truncated). Characters that do not print
	// are escaped.
	Old, New json.RawMessage
	// Index is the place, from 0, at which an added item stands in its new
	// list, for a list whose items are known by key.
	Index *int
	// Redacted is true if values are hidden: all of Old and New (then they are nil), or the strings
	// "***" in them.
	Redacted bool
	// Truncated is the number of bytes of Old and New that were left out
	// because they are too large.
	Truncated int
}

// Summary counts objects.
type Summary struct {
	Added, Removed, Changed, Unchanged int
	// OldBytes and NewBytes are the sizes of the manifests. Secrets are not
	// counted: their size would tell of their content.
	OldBytes, NewBytes int64
}

// String is the summary in a table's column: "+3 ~5 -1".
func (s Summary) String() string {
	return fmt.Sprintf("+%d ~%d -%d", s.Added, s.Changed, s.Removed)
}

// Report has the changes between two sets of objects.
type Report struct {
	Summary Summary
	// Notes are the notes of all changes, the most severe first.
	Notes []review.Note
	// Changes are the objects that change: those of new in their order, then
	// those that are removed.
	Changes []Change
	// Truncated adds up what was left out of all changes. Its Notes are counted
	// against the notes of the report.
	Truncated Truncation
}

// Truncation counts the omitted parts of a diff.
type Truncation struct {
	// Fields are field changes of which nothing is shown.
	Fields int
	// Values counts the field changes of which the old or the new value was left out, because of a
	// limit of size or depth.
	Values int
	// Lines are lines of the unified diff.
	Lines int
	// Notes are notes.
	Notes int
	// Objects that were not compared.
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

// Limits bound the size of a result. Zero is the default.
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
	// LineBytes is the length of one line of a unified diff, by default 4 KiB.
	// A longer line is cut around what differs.
	LineBytes int
	// Notes is the number of notes of one object, by default 50.
	Notes int
	// TotalNotes is the number of notes of a report, by default 500.
	TotalNotes int
}

// ForOne returns the limits for the diff of a single object, which may use the space that all objects
// otherwise share. A manifest that exceeds even these limits cannot be reviewed by reading.
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
