package olm

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnyValue is a value of any type, as JSON.
type AnyValue struct {
	// Raw is the value in JSON.
	Raw []byte
}

// ChangeType says what happens to an object.
type ChangeType string

const (
	// ChangeAdded objects are new.
	ChangeAdded ChangeType = "Added"
	// ChangeRemoved objects are deleted.
	ChangeRemoved ChangeType = "Removed"
	// ChangeChanged objects have another content.
	ChangeChanged ChangeType = "Changed"
)

// NoteSeverity orders notes.
type NoteSeverity string

const (
	// NoteCritical is what nobody should overlook.
	NoteCritical NoteSeverity = "Critical"
	// NoteWarning deserves a look.
	NoteWarning NoteSeverity = "Warning"
	// NoteInfo is good to know.
	NoteInfo NoteSeverity = "Info"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionDiff is what one revision changes against another. It is computed when
// it is read and stored nowhere. Its name says what is compared: a..b, or a.. for
// a and the revision after it, ..b for the one before b and b, a..live for the
// cluster as it is and a.
//
// The content of Secrets is never in it, only whether it changes. Secrets that
// the reader may not get are left out and counted in summary.withheld.
type RevisionDiff struct {
	metav1.TypeMeta
	// ObjectMeta has the name <from>..<to>, and nothing else.
	metav1.ObjectMeta
	// From is the revision that is compared with, or "live". It is empty when no
	// earlier revision of the extension is stored: everything is added then.
	From string
	// To is the revision whose changes these are.
	To string
	// Notes say in words what matters, the most severe first.
	Notes []DiffNote
	// Summary counts objects.
	Summary DiffSummary
	// Changes are the objects that change: those of the revision in its order,
	// then those that are removed.
	Changes []ObjectChange
	// Truncated counts what was left out because there is too much of it.
	Truncated *DiffTruncation
}

// DiffNote is one thing that matters, in words.
type DiffNote struct {
	// Severity is Critical, Warning or Info.
	Severity NoteSeverity
	// Reason in one CamelCase word.
	Reason string
	// Group of the object that the note is about; empty for the core group.
	Group string
	// Kind of the object; empty when the note is about the whole.
	Kind string
	// Namespace of the object; empty for cluster-scoped ones.
	Namespace string
	// Name of the object.
	Name string
	// Message is one line for a person.
	Message string
}

// DiffSummary counts objects.
type DiffSummary struct {
	// Added is how many objects are new.
	Added int32
	// Removed is how many are deleted.
	Removed int32
	// Changed is how many have another content.
	Changed int32
	// Unchanged is how many are the same.
	Unchanged int32
	// Withheld is how many the reader may not see, changed or not. They are
	// counted nowhere else.
	Withheld int32
	// FromBytes is the size of the manifests compared with, in bytes. Those of
	// Secrets are not counted.
	FromBytes int64
	// ToBytes is the size of the revision's own manifests.
	ToBytes int64
	// RemovedDigest names the set of the objects that are removed, for whoever
	// acknowledges their deletion when they let the revision go on.
	RemovedDigest string
	// ApprovalDigest names this diff, for whoever approves the proposed revision.
	ApprovalDigest string
}

// ObjectChange is what happens to one object.
type ObjectChange struct {
	// Change is Added, Removed or Changed.
	Change ChangeType
	// APIVersion of the object: the new one where there is one.
	APIVersion string
	// FromAPIVersion is the one that it had, when that is another.
	FromAPIVersion string
	// Kind of the object.
	Kind string
	// Namespace of the object; empty for cluster-scoped ones.
	Namespace string
	// Name of the object.
	Name string
	// Fields are the differences, in the order of their paths. Only an object
	// that is Changed has any.
	Fields []FieldChange
	// FieldCount is how many fields differ, with those left out.
	FieldCount int32
	// LinesAdded is how many lines the unified diff adds, with those left out.
	LinesAdded int32
	// LinesRemoved is how many it removes.
	LinesRemoved int32
	// Unified is the difference as a unified diff of YAML, with three lines of
	// context.
	Unified string
	// OnlyLabels says which labels of the version change, when nothing else of the object does; empty
	// for any other change.
	OnlyLabels string
	// NotCompared says why there is nothing of the above although the object
	// changes.
	NotCompared string
	// Truncated counts what was left out of this object; nil is nothing.
	Truncated *DiffTruncation
}

// FieldChange is one difference between two manifests.
type FieldChange struct {
	// Path leads to the field, such as
	// .spec.template.spec.containers[name="manager"].image
	Path string
	// Op is add, remove, replace, or reorder for items that have keys and stand
	// in another order; old and new are then their keys.
	Op string
	// Old is the value before; absent where there was none, or it is hidden or
	// left out.
	Old *AnyValue
	// New is the value after.
	New *AnyValue
	// Index is where an added item stands in its list, from 0, for lists whose
	// items have keys.
	Index *int32
	// Redacted tells that values are hidden.
	Redacted bool
	// TruncatedBytes is the size of values that were left out because they are
	// too large.
	TruncatedBytes int32
}

// DiffTruncation counts what was left out of a diff.
type DiffTruncation struct {
	// Objects that were not compared.
	Objects int32
	// Fields of which nothing is shown.
	Fields int32
	// Values of fields that are shown without.
	Values int32
	// Lines of unified diffs.
	Lines int32
	// Notes in words.
	Notes int32
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionDiffOptions are the query parameters of a diff. Each of the first three
// that is given narrows what is returned, notes and counts included.
type RevisionDiffOptions struct {
	metav1.TypeMeta
	// ObjectKind returns only objects of this kind: "Deployment", or
	// "Deployment.apps" with its group.
	ObjectKind string
	// ObjectNamespace returns only objects of this namespace.
	ObjectNamespace string
	// ObjectName returns only objects of this name.
	ObjectName string
	// Unified says whether the answer has unified diffs; true when it is not
	// given.
	Unified *bool
}
