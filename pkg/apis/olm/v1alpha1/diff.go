package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Live means the cluster in its current state, in place of a revision in the name of a
// RevisionDiff: argocd-2..live.
const Live = "live"

// ChangeType is the kind of change of an object.
// +enum
type ChangeType string

const (
	// ChangeAdded means that the object is new.
	ChangeAdded ChangeType = "Added"
	// ChangeRemoved means that the object is deleted.
	ChangeRemoved ChangeType = "Removed"
	// ChangeChanged means that the object has other content.
	ChangeChanged ChangeType = "Changed"
)

// NoteSeverity is the importance of a note.
// +enum
type NoteSeverity string

const (
	// NoteCritical means that no reviewer should overlook the note.
	NoteCritical NoteSeverity = "Critical"
	// NoteWarning means that a reviewer should check the change.
	NoteWarning NoteSeverity = "Warning"
	// NoteInfo means that the note is for information only.
	NoteInfo NoteSeverity = "Info"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionDiff compares two revisions. The server computes it for each read and does not store
// it. Its name is the comparison. a..b compares a with b. a.. compares a with the revision after
// it. ..b compares the revision before b with b. a..live compares the cluster in its current state
// with a.
//
// It never has the content of Secrets. It only reports whether that content changes. Secrets that
// the reader cannot get are left out and counted in summary.withheld.
type RevisionDiff struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name <from>..<to>, and nothing else.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// from is the revision to compare with, or "live". It is empty when no earlier revision of the
	// extension is stored. All objects are added then.
	// +optional
	From string `json:"from,omitempty"`
	// to is the revision that makes the changes.
	To string `json:"to"`
	// notes describe the important changes in words, the most severe first.
	// +optional
	// +listType=atomic
	Notes []DiffNote `json:"notes,omitempty"`
	// summary counts objects.
	Summary DiffSummary `json:"summary"`
	// changes are the objects that change: the objects of the revision in its order, then the
	// removed objects.
	// +optional
	// +listType=atomic
	Changes []ObjectChange `json:"changes,omitempty"`
	// truncated counts the parts that were left out because the diff is too large.
	// +optional
	Truncated *DiffTruncation `json:"truncated,omitempty"`
}

// DiffNote describes one important change in words.
type DiffNote struct {
	// severity is Critical, Warning or Info.
	Severity NoteSeverity `json:"severity"`
	// reason is one CamelCase word.
	Reason string `json:"reason"`
	// group of the object that the note is about; empty for the core group.
	// +optional
	Group string `json:"group,omitempty"`
	// kind of the object; empty when the note is about the whole diff.
	// +optional
	Kind string `json:"kind,omitempty"`
	// namespace of the object; empty for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	// +optional
	Name string `json:"name,omitempty"`
	// message explains the change to a person, in one line.
	Message string `json:"message"`
}

// DiffSummary counts objects.
type DiffSummary struct {
	// added is the number of new objects.
	Added int32 `json:"added"`
	// removed is the number of deleted objects.
	Removed int32 `json:"removed"`
	// changed is the number of objects with other content.
	Changed int32 `json:"changed"`
	// unchanged is the number of objects that stay the same.
	Unchanged int32 `json:"unchanged"`
	// withheld is the number of objects that the reader cannot see, changed or not. No other count
	// includes them.
	// +optional
	Withheld int32 `json:"withheld,omitempty"`
	// fromBytes is the size of the manifests of from, in bytes, without Secrets.
	// +optional
	FromBytes int64 `json:"fromBytes,omitempty"`
	// toBytes is the size of the manifests of to, in bytes, without Secrets.
	// +optional
	ToBytes int64 `json:"toBytes,omitempty"`
	// removedDigest is the number of removed objects and a digest of them. To acknowledge the
	// deletion of exactly these objects, set the annotation penstock.dev/acknowledge-deletion to
	// it, in the update that resumes a paused revision. It is absent if the revision is not paused,
	// if no object is removed, or if the answer does not show all removed objects.
	// +optional
	RemovedDigest string `json:"removedDigest,omitempty"`
	// approvalDigest identifies the diff between the active revision and a proposed revision. To
	// approve the proposal, set the annotation penstock.dev/approve to it, in the update that sets
	// lifecycleState to Active. You then approve exactly the diff that you read.
	// +optional
	ApprovalDigest string `json:"approvalDigest,omitempty"`
}

// ObjectChange is the change of one object.
type ObjectChange struct {
	// change is Added, Removed or Changed.
	Change ChangeType `json:"change"`
	// apiVersion of the object. If it changes, the new apiVersion.
	APIVersion string `json:"apiVersion"`
	// fromAPIVersion is the previous apiVersion, if it changes.
	// +optional
	FromAPIVersion string `json:"fromAPIVersion,omitempty"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object; empty for cluster-scoped objects.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
	// fields are the changed fields, ordered by path. Only an object that is Changed has fields.
	// +optional
	// +listType=atomic
	Fields []FieldChange `json:"fields,omitempty"`
	// fieldCount is the number of changed fields, including fields that the list omits.
	// +optional
	FieldCount int32 `json:"fieldCount,omitempty"`
	// linesAdded is the number of lines that the unified diff adds, including omitted lines.
	// +optional
	LinesAdded int32 `json:"linesAdded,omitempty"`
	// linesRemoved is the number of lines that the unified diff removes, including omitted lines.
	// +optional
	LinesRemoved int32 `json:"linesRemoved,omitempty"`
	// unified is the change as a unified diff of YAML, with three lines of context.
	// +optional
	Unified string `json:"unified,omitempty"`
	// onlyLabels describes the change when only version labels of the object change, such as
	// "app.kubernetes.io/version 1.18.4 → 1.20.3". Version labels are app.kubernetes.io/version and
	// helm.sh/chart, in the metadata of the object and of its pod template. A label that a selector
	// of the revision names does not count. Clients can show objects with the same value in one
	// line.
	// +optional
	OnlyLabels string `json:"onlyLabels,omitempty"`
	// notCompared is the reason why the fields above are empty although the object changes.
	// +optional
	NotCompared string `json:"notCompared,omitempty"`
	// truncated counts the parts of this object that were left out because it is too large. To read
	// them, request the diff with the object's kind and name (objectKind, objectName).
	// +optional
	Truncated *DiffTruncation `json:"truncated,omitempty"`
}

// FieldChange is one difference between two manifests.
type FieldChange struct {
	// path of the field, such as .spec.template.spec.containers[name="manager"].image
	Path string `json:"path"`
	// op is add, remove, replace or reorder. For reorder, the keyed items of a list have another
	// order, and old and new are the keys.
	Op string `json:"op"`
	// old is the previous value. It is absent if there was no value, or if the value is redacted or
	// too large.
	// +optional
	Old *AnyValue `json:"old,omitempty"`
	// new is the new value. It is absent in the same cases.
	// +optional
	New *AnyValue `json:"new,omitempty"`
	// index is the position of an added item in its list, counted from 0. Only lists with keyed
	// items have it.
	// +optional
	Index *int32 `json:"index,omitempty"`
	// redacted is true if the values are hidden.
	// +optional
	Redacted bool `json:"redacted,omitempty"`
	// truncatedBytes is the size of values that were left out because they are too large, in bytes.
	// +optional
	TruncatedBytes int32 `json:"truncatedBytes,omitempty"`
}

// DiffTruncation counts the parts that a diff omits.
type DiffTruncation struct {
	// objects is the number of objects that were not compared.
	// +optional
	Objects int32 `json:"objects,omitempty"`
	// fields is the number of changed fields that are not shown.
	// +optional
	Fields int32 `json:"fields,omitempty"`
	// values is the number of fields that are shown without their values.
	// +optional
	Values int32 `json:"values,omitempty"`
	// lines is the number of omitted lines of unified diffs.
	// +optional
	Lines int32 `json:"lines,omitempty"`
	// notes is the number of omitted notes.
	// +optional
	Notes int32 `json:"notes,omitempty"`
}

// +k8s:conversion-gen:explicit-from=net/url.Values
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionDiffOptions are the query parameters of a diff. objectKind, objectNamespace and
// objectName limit the answer, including its notes and counts, to objects that match all of them.
type RevisionDiffOptions struct {
	metav1.TypeMeta `json:",inline"`
	// objectKind limits the answer to objects of this kind: "Deployment", or "Deployment.apps" with
	// its group.
	// +optional
	ObjectKind string `json:"objectKind,omitempty"`
	// objectNamespace limits the answer to objects of this namespace.
	// +optional
	ObjectNamespace string `json:"objectNamespace,omitempty"`
	// objectName limits the answer to objects of this name.
	// +optional
	ObjectName string `json:"objectName,omitempty"`
	// unified is true (the default) if the answer has unified diffs.
	// +optional
	Unified *bool `json:"unified,omitempty"`
}
