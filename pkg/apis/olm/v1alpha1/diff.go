package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Live is the cluster as it is, in place of a revision in the name of a
// RevisionDiff: argocd-2..live.
const Live = "live"

// ChangeType says what happens to an object.
// +enum
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
// +enum
type NoteSeverity string

const (
	// NoteCritical is the severity of notes that no reviewer should overlook.
	NoteCritical NoteSeverity = "Critical"
	// NoteWarning deserves a look.
	NoteWarning NoteSeverity = "Warning"
	// NoteInfo is good to know.
	NoteInfo NoteSeverity = "Info"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionDiff compares two revisions. It is computed when it is read, and not stored. Its name
// is the comparison: a..b, or a.. for a and the revision after it, ..b for the one before b and
// b, a..live for the cluster as it is and a.
//
// The content of Secrets is never in it, only whether it changes. Secrets that
// the reader cannot get are left out and counted in summary.withheld.
type RevisionDiff struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name <from>..<to>, and nothing else.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// from is the revision to compare with, or "live". It is empty when no earlier
	// revision of the extension is stored: everything is added then.
	// +optional
	From string `json:"from,omitempty"`
	// to is the revision whose changes these are.
	To string `json:"to"`
	// notes say in words what matters, the most severe first.
	// +optional
	// +listType=atomic
	Notes []DiffNote `json:"notes,omitempty"`
	// summary counts objects.
	Summary DiffSummary `json:"summary"`
	// changes are the objects that change: those of the revision in its order,
	// then those that are removed.
	// +optional
	// +listType=atomic
	Changes []ObjectChange `json:"changes,omitempty"`
	// truncated counts what was left out because there is too much of it.
	// +optional
	Truncated *DiffTruncation `json:"truncated,omitempty"`
}

// DiffNote is one thing that matters, in words.
type DiffNote struct {
	// severity is Critical, Warning or Info.
	Severity NoteSeverity `json:"severity"`
	// reason in one CamelCase word.
	Reason string `json:"reason"`
	// group of the object that the note is about; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// kind of the object; empty when the note is about the whole.
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace of the object; empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// message is one line for a person.
	Message string `json:"message"`
}

// DiffSummary counts objects.
type DiffSummary struct {
	// added is the number of new objects.
	Added int32 `json:"added"`
	// removed is the number of deleted objects.
	Removed int32 `json:"removed"`
	// changed is the number of objects with another content.
	Changed int32 `json:"changed"`
	// unchanged is the number of objects that stay the same.
	Unchanged int32 `json:"unchanged"`
	// withheld is the number of objects that the reader cannot see, changed or not. No other
	// number includes them.
	// +optional
	Withheld int32 `json:"withheld,omitempty"`
	// fromBytes is the size of the manifests of from, in bytes. Manifests of Secrets
	// are not counted.
	// +optional
	FromBytes int64 `json:"fromBytes,omitempty"`
	// toBytes is the size of the revision's own manifests.
	// +optional
	ToBytes int64 `json:"toBytes,omitempty"`
	// removedDigest identifies the set of the removed objects: how many, and a digest.
	// To acknowledge the deletion of these objects, and of no others, set the
	// annotation penstock.dev/acknowledge-deletion to it in the update that resumes a
	// paused revision. It is absent when the revision is not paused, when nothing is
	// removed, and when the answer does not show all removed objects.
	// +optional
	RemovedDigest string `json:"removedDigest,omitempty"`
	// approvalDigest identifies this diff, when it is between the revision that is
	// rolled out now and a proposed revision. To approve the proposal, set the
	// annotation penstock.dev/approve to it when you set lifecycleState to Active, so
	// that you approve what you have read.
	// +optional
	ApprovalDigest string `json:"approvalDigest,omitempty"`
}

// ObjectChange is the change of one object.
type ObjectChange struct {
	// change is Added, Removed or Changed.
	Change ChangeType `json:"change"`
	// apiVersion of the object: the new one where there is one.
	APIVersion string `json:"apiVersion"`
	// fromAPIVersion is the apiVersion before, when it was another one.
	// +optional
	FromAPIVersion string `json:"fromAPIVersion,omitempty"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object; empty for cluster-scoped ones.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
	// fields are the differences, in the order of their paths. Only an object
	// that is Changed has any.
	// +optional
	// +listType=atomic
	Fields []FieldChange `json:"fields,omitempty"`
	// fieldCount is the number of fields that differ, with those left out.
	// +optional
	FieldCount int32 `json:"fieldCount,omitempty"`
	// linesAdded is the number of lines that the unified diff adds, with those left out.
	// +optional
	LinesAdded int32 `json:"linesAdded,omitempty"`
	// linesRemoved is the number of lines that the unified diff removes.
	// +optional
	LinesRemoved int32 `json:"linesRemoved,omitempty"`
	// unified is the difference as a unified diff of YAML, with three lines of
	// context.
	// +optional
	Unified string `json:"unified,omitempty"`
	// onlyLabels says which labels of the version change, when nothing else of the object does, such as
	// "app.kubernetes.io/version 1.18.4 → 1.20.3". It is about the labels app.kubernetes.io/version and
	// helm.sh/chart in the metadata of the object and of its pod template, as long as no selector of the
	// revision names them. Clients may show the objects that share it in one line.
	// +optional
	OnlyLabels string `json:"onlyLabels,omitempty"`
	// notCompared says why the fields above are empty although the object changes.
	// +optional
	NotCompared string `json:"notCompared,omitempty"`
	// truncated counts what was left out of this object because there is too much of it. A diff
	// that names kind and name of the object (objectKind, objectName) has all of it.
	// +optional
	Truncated *DiffTruncation `json:"truncated,omitempty"`
}

// FieldChange is one difference between two manifests.
type FieldChange struct {
	// path leads to the field, such as
	// .spec.template.spec.containers[name="manager"].image
	Path string `json:"path"`
	// op is add, remove, replace, or reorder for items that have keys and are in
	// another order; old and new are then their keys.
	Op string `json:"op"`
	// old is the value before; absent where there was none, or it is hidden or
	// left out.
	// +optional
	Old *AnyValue `json:"old,omitempty"`
	// new is the value after.
	// +optional
	New *AnyValue `json:"new,omitempty"`
	// index is the position of an added item in its list, from 0, for lists whose
	// items have keys.
	// +optional
	Index *int32 `json:"index,omitempty"`
	// redacted tells that values are hidden.
	// +optional
	Redacted bool `json:"redacted,omitempty"`
	// truncatedBytes is the size of values that were left out because they are
	// too large.
	// +optional
	TruncatedBytes int32 `json:"truncatedBytes,omitempty"`
}

// DiffTruncation counts what was left out of a diff.
type DiffTruncation struct {
	// objects that were not compared.
	// +optional
	Objects int32 `json:"objects,omitempty"`
	// fields of which nothing is shown.
	// +optional
	Fields int32 `json:"fields,omitempty"`
	// values of fields that are shown without their values.
	// +optional
	Values int32 `json:"values,omitempty"`
	// lines of unified diffs.
	// +optional
	Lines int32 `json:"lines,omitempty"`
	// notes in words.
	// +optional
	Notes int32 `json:"notes,omitempty"`
}

// +k8s:conversion-gen:explicit-from=net/url.Values
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionDiffOptions are the query parameters of a diff. Each of the first three
// that is given narrows what is returned, notes and counts included.
type RevisionDiffOptions struct {
	metav1.TypeMeta `json:",inline"`
	// objectKind returns only objects of this kind: "Deployment", or
	// "Deployment.apps" with its group.
	// +optional
	ObjectKind string `json:"objectKind,omitempty"`
	// objectNamespace returns only objects of this namespace.
	// +optional
	ObjectNamespace string `json:"objectNamespace,omitempty"`
	// objectName returns only objects of this name.
	// +optional
	ObjectName string `json:"objectName,omitempty"`
	// unified says whether the answer has unified diffs; true when it is not
	// given.
	// +optional
	Unified *bool `json:"unified,omitempty"`
}
