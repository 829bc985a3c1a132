package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionRollback is the request to roll out the content of a revision again. POST it to the
// revision's subresource rollback. The server returns it with status.
type RevisionRollback struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is optional.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the request. It is optional.
	// +optional
	Spec RevisionRollbackSpec `json:"spec,omitempty"`
	// status is the result.
	// +optional
	Status RevisionRollbackStatus `json:"status,omitempty"`
}

// RevisionRollbackSpec has the options of a rollback.
type RevisionRollbackSpec struct {
	// cause is the reason of the rollback in words, at most 1024 bytes. It is the annotation
	// kubernetes.io/change-cause of the new revision.
	// +optional
	Cause string `json:"cause,omitempty"`
	// from is the revision to roll back. If it is given and is not the newest of the extension, the
	// server does nothing and returns 409 Conflict.
	// +optional
	From string `json:"from,omitempty"`
}

// RevisionRollbackStatus is the result of a rollback.
type RevisionRollbackStatus struct {
	// revision is the name of the new revision. On dry-run, it is the name that it would have.
	// +optional
	Revision string `json:"revision,omitempty"`
	// revisionUID is the uid of the new revision; absent on dry-run.
	// +optional
	RevisionUID string `json:"revisionUID,omitempty"`
	// from is the revision that was newest before the rollback.
	// +optional
	From string `json:"from,omitempty"`
	// diff is the effect of the rollback. Only a dry-run returns it, to users who can get the diffs
	// of both revisions.
	// +optional
	Diff *RevisionDiff `json:"diff,omitempty"`
}
