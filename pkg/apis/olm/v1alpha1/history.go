package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Results of a revision in its extension's history.
const (
	// ResultSucceeded means that the rollout was complete once.
	ResultSucceeded = "Succeeded"
	// ResultFailing means that the condition Failing was True.
	ResultFailing = "Failing"
	// ResultStalled means that the rollout missed its progress deadline.
	ResultStalled = "Stalled"
	// ResultProgressing means that the rollout continues.
	ResultProgressing = "Progressing"
	// ResultIncomplete means that the revision ended before the rollout was complete.
	ResultIncomplete = "Incomplete"
)

// States of a revision in its extension's history, in addition to the lifecycle states.
const (
	// StateDeleting means that the revision is being deleted.
	StateDeleting = "Deleting"
	// StateDeleted means that the revision does not exist any more.
	StateDeleted = "Deleted"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get,list
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionHistory is the history of an extension, including deleted revisions. The server computes
// it for each read. Its name is the name of the extension.
type RevisionHistory struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name of the extension, and nothing else.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// revisions are the revisions by ascending number. A very long history has only the newest.
	// +listType=map
	// +listMapKey=name
	Revisions []RevisionRecord `json:"revisions"`
	// hold is set after a rollback. Until the hold ends, the owner of the extension creates no
	// revision.
	// +optional
	Hold *RevisionHold `json:"hold,omitempty"`
	// repairs are the newest changes by other writers that Penstock reverted, at most 50, the
	// newest last. Repeated repairs of the same change are one entry.
	// +optional
	// +listType=atomic
	Repairs []RepairRecord `json:"repairs,omitempty"`
}

// RepairRecord is a change of an object by another writer that Penstock reverted, once or several
// times.
type RepairRecord struct {
	// object that was repaired.
	Object ObjectName `json:"object"`
	// revision whose manifest Penstock restored.
	Revision string `json:"revision"`
	// manager is the field manager that changed the object; empty if it is unknown, as after a
	// deletion.
	// +optional
	Manager string `json:"manager,omitempty"`
	// message describes the changed fields and names their writer.
	Message string `json:"message"`
	// count of repairs.
	Count int32 `json:"count"`
	// firstAt is the time of the first repair.
	FirstAt metav1.Time `json:"firstAt"`
	// lastAt is the time of the last repair.
	LastAt metav1.Time `json:"lastAt"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionHistoryList is the list of the histories of all extensions that have revisions.
type RevisionHistoryList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the histories, ordered by extension name.
	Items []RevisionHistory `json:"items"`
}

// RevisionRecord is the entry of one revision in the history.
type RevisionRecord struct {
	// name of the revision.
	Name string `json:"name"`
	// revision is the number of the revision.
	Revision int64 `json:"revision"`
	// version of the extension that the revision installs, if it is known.
	// +optional
	Version string `json:"version,omitempty"`
	// state is Active, Paused, Archived, Deleting or Deleted.
	State string `json:"state"`
	// result is Succeeded, Failing, Stalled, Progressing or Incomplete; empty while it is unknown.
	// +optional
	Result string `json:"result,omitempty"`
	// changes counts the objects that differ from the previous revision, as it was when this
	// revision was created. It is absent if it is unknown.
	// +optional
	Changes *ChangeCounts `json:"changes,omitempty"`
	// objects is the number of objects of the revision; absent if it is unknown.
	// +optional
	Objects *int32 `json:"objects,omitempty"`
	// createdAt is the time at which the revision was created.
	// +optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// completedAt is the time at which the rollout was complete for the first time.
	// +optional
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
	// approvedAt is the time at which requestedBy approved the proposal. It is absent for deleted
	// revisions and for revisions that were not proposed.
	// +optional
	ApprovedAt *metav1.Time `json:"approvedAt,omitempty"`
	// deletedAt is the time at which the deletion of the revision was requested.
	// +optional
	DeletedAt *metav1.Time `json:"deletedAt,omitempty"`
	// requestedBy is the user who created the revision. For a proposal, it is the user who approved
	// it.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
	// rollbackOf is the revision whose content this rollback restored.
	// +optional
	RollbackOf string `json:"rollbackOf,omitempty"`
	// cause is the reason of the revision's creation, in words.
	// +optional
	Cause string `json:"cause,omitempty"`
}

// ChangeCounts counts the objects that differ between two revisions, by their digests.
type ChangeCounts struct {
	// added is the number of new objects.
	Added int32 `json:"added"`
	// changed is the number of objects with other content.
	Changed int32 `json:"changed"`
	// removed is the number of deleted objects.
	Removed int32 `json:"removed"`
}

// RevisionHold keeps the owner of an extension from creating a new revision right
// after a rollback.
type RevisionHold struct {
	// revision is the name of the revision that the rollback created.
	Revision string `json:"revision"`
	// ownerGeneration is the generation of the extension's owner that ends the hold when it is
	// exceeded. 0 keeps the hold until a user releases it.
	// +optional
	OwnerGeneration int64 `json:"ownerGeneration,omitempty"`
}
