package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionRollback asks for the content of a revision to be rolled out again: POST
// it to the revision's subresource rollback. The answer is the same, with status.
type RevisionRollback struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may be left out.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the request; it may be left out.
	// +optional
	Spec RevisionRollbackSpec `json:"spec,omitempty"`
	// status is the result.
	// +optional
	Status RevisionRollbackStatus `json:"status,omitempty"`
}

// RevisionRollbackSpec has the options of a rollback.
type RevisionRollbackSpec struct {
	// cause is the reason in words, at most 1024 bytes. It becomes the annotation
	// kubernetes.io/change-cause of the new revision.
	// +optional
	Cause string `json:"cause,omitempty"`
	// from is the revision that is to be rolled back. When it is given and not
	// the newest of the extension, nothing is done: 409 Conflict.
	// +optional
	From string `json:"from,omitempty"`
}

// RevisionRollbackStatus is the result of a rollback.
type RevisionRollbackStatus struct {
	// revision is the name of the revision that was created, or would be.
	// +optional
	Revision string `json:"revision,omitempty"`
	// revisionUID is its uid; absent on dry-run.
	// +optional
	RevisionUID string `json:"revisionUID,omitempty"`
	// from is the newest revision, which the new one takes over from.
	// +optional
	From string `json:"from,omitempty"`
	// diff is the change by the rollback. Only a dry-run has it, for users who may get the diffs
	// of both revisions.
	// +optional
	Diff *RevisionDiff `json:"diff,omitempty"`
}
