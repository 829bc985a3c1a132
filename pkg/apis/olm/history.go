package olm

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionHistory is the history of an extension, deleted revisions included. It
// is computed when it is read. Its name is that of the extension.
type RevisionHistory struct {
	metav1.TypeMeta
	// ObjectMeta has the name of the extension, and nothing else.
	metav1.ObjectMeta
	// Revisions are the rows, by rising number. Of very long histories only the
	// newest are kept.
	Revisions []RevisionRecord
	// Hold is set after a rollback: the owner of the extension creates no revision
	// until the hold ends.
	Hold *RevisionHold
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionHistoryList are the histories of all extensions that have revisions.
type RevisionHistoryList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// Items are the histories, by the names of the extensions.
	Items []RevisionHistory
}

// RevisionRecord is what history keeps of one revision.
type RevisionRecord struct {
	// Name of the revision.
	Name string
	// Revision is its number.
	Revision int64
	// Version of the extension that it installs, when known.
	Version string
	// State is Active, Paused, Archived, Deleting or Deleted.
	State string
	// Result is Succeeded, Failing, Stalled, Progressing or Incomplete; empty
	// when it is not known yet.
	Result string
	// Changes counts objects against the revision before, as that was when this
	// one was created; absent when it is not known.
	Changes *ChangeCounts
	// Objects is how many it has; absent when it is not known.
	Objects *int32
	// CreatedAt is when it was created.
	CreatedAt *metav1.Time
	// CompletedAt is when its rollout was complete for the first time.
	CompletedAt *metav1.Time
	// ApprovedAt is when a proposal was approved, by RequestedBy.
	ApprovedAt *metav1.Time
	// DeletedAt is when its deletion was asked for.
	DeletedAt *metav1.Time
	// RequestedBy is the user who created it; of a proposal, who approved it.
	RequestedBy string
	// RollbackOf is the revision whose content it brought back.
	RollbackOf string
	// Cause is why it was created, in words.
	Cause string
}

// ChangeCounts counts objects that one revision changes against another, by
// their digests.
type ChangeCounts struct {
	// Added is how many objects are new.
	Added int32
	// Changed is how many have another content.
	Changed int32
	// Removed is how many are deleted.
	Removed int32
}

// RevisionHold keeps the owner of an extension from creating a new revision right
// after a rollback.
type RevisionHold struct {
	// Revision is the name of the one that the rollback created.
	Revision string
	// OwnerGeneration is the generation that the extension's owner must exceed before it
	// creates revisions again. 0 holds the owner until the hold is released.
	OwnerGeneration int64
}
