package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Results of a revision, in its extension's history.
const (
	// ResultSucceeded is for revisions whose rollout was complete once.
	ResultSucceeded = "Succeeded"
	// ResultFailing is for those whose condition Failing was True.
	ResultFailing = "Failing"
	// ResultStalled is for those beyond their progress deadline.
	ResultStalled = "Stalled"
	// ResultProgressing is for those that are rolled out now.
	ResultProgressing = "Progressing"
	// ResultIncomplete is for revisions that ended before they were complete.
	ResultIncomplete = "Incomplete"
)

// States of a revision in its extension's history, besides lifecycle states.
const (
	// StateDeleting is for revisions on their way out.
	StateDeleting = "Deleting"
	// StateDeleted is for those that are gone.
	StateDeleted = "Deleted"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get,list
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionHistory is the history of an extension, deleted revisions included. It
// is computed when it is read. Its name is that of the extension.
type RevisionHistory struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the extension, and nothing else.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// revisions are the rows, by rising number. Of very long histories only the
	// newest are kept.
	// +listType=map
	// +listMapKey=name
	Revisions []RevisionRecord `json:"revisions"`
	// hold is set after a rollback: the owner of the extension creates no revision
	// until the hold ends.
	// +optional
	Hold *RevisionHold `json:"hold,omitempty"`
	// repairs are the newest changes by others that Penstock reverted, at most 50, the last
	// one last. Repairs of the same change are one.
	// +optional
	// +listType=atomic
	Repairs []RepairRecord `json:"repairs,omitempty"`
}

// RepairRecord is a change by others to an object that Penstock reverted, once or several times.
type RepairRecord struct {
	// object that was repaired.
	Object ObjectName `json:"object"`
	// revision whose manifest the object was brought back to.
	Revision string `json:"revision"`
	// manager is the field manager that changed the object; empty when nobody can be
	// named, as after a deletion.
	// +optional
	Manager string `json:"manager,omitempty"`
	// message says which fields were changed, and by whom.
	Message string `json:"message"`
	// count of repairs.
	Count int32 `json:"count"`
	// firstAt and lastAt are the times of the first and of the last repair.
	FirstAt metav1.Time `json:"firstAt"`
	LastAt  metav1.Time `json:"lastAt"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionHistoryList are the histories of all extensions that have revisions.
type RevisionHistoryList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the histories, by the names of the extensions.
	Items []RevisionHistory `json:"items"`
}

// RevisionRecord is the history's row about one revision.
type RevisionRecord struct {
	// name of the revision.
	Name string `json:"name"`
	// revision is its number.
	Revision int64 `json:"revision"`
	// version of the extension that it installs, when known.
	// +optional
	Version string `json:"version,omitempty"`
	// state is Active, Paused, Archived, Deleting or Deleted.
	State string `json:"state"`
	// result is Succeeded, Failing, Stalled, Progressing or Incomplete; empty
	// when it is not known yet.
	// +optional
	Result string `json:"result,omitempty"`
	// changes counts objects against the revision before, as that was when this
	// one was created; absent when it is not known.
	// +optional
	Changes *ChangeCounts `json:"changes,omitempty"`
	// objects is the number of its objects; absent when it is unknown.
	// +optional
	Objects *int32 `json:"objects,omitempty"`
	// createdAt is the time at which it was created.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// completedAt is the time at which its rollout was complete for the first time.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// approvedAt is the time at which requestedBy approved a proposal. It is absent for deleted
	// revisions, and for revisions that were not proposed.
	// +optional
	ApprovedAt *metav1.Time `json:"approvedAt,omitempty"`
	// deletedAt is the time at which its deletion was requested.
	// +optional
	DeletedAt *metav1.Time `json:"deletedAt,omitempty"`
	// requestedBy is the user who created the revision; for a proposal, the user who
	// approved it.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
	// rollbackOf is the revision whose content it brought back.
	// +optional
	RollbackOf string `json:"rollbackOf,omitempty"`
	// cause is the reason of its creation, in words.
	// +optional
	Cause string `json:"cause,omitempty"`
}

// ChangeCounts counts objects that one revision changes against another, by
// their digests.
type ChangeCounts struct {
	// added is the number of new objects.
	Added int32 `json:"added"`
	// changed is the number of objects with another content.
	Changed int32 `json:"changed"`
	// removed is the number of deleted objects.
	Removed int32 `json:"removed"`
}

// RevisionHold keeps the owner of an extension from creating a new revision right
// after a rollback.
type RevisionHold struct {
	// revision is the name of the revision that the rollback created.
	Revision string `json:"revision"`
	// ownerGeneration is the generation that the extension's owner must exceed before it
	// creates revisions again. 0 holds the owner until the hold is released.
	// +optional
	OwnerGeneration int64 `json:"ownerGeneration,omitempty"`
}
