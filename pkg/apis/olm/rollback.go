package olm

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionRollback asks for the content of a revision to be rolled out again: POST
// it to the revision's subresource rollback. The answer is the same, with status.
type RevisionRollback struct {
	metav1.TypeMeta
	// ObjectMeta may be left out.
	metav1.ObjectMeta
	// Spec is what is asked for; it may be left out.
	Spec RevisionRollbackSpec
	// Status is what was done.
	Status RevisionRollbackStatus
}

// RevisionRollbackSpec is how to roll back.
type RevisionRollbackSpec struct {
	// Cause is why, in words, at most 1024 bytes. It becomes the annotation
	// kubernetes.io/change-cause of the new revision.
	Cause string
	// From is the revision that is to be rolled back. When it is given and not
	// the newest of the extension, nothing is done: 409 Conflict.
	From string
}

// RevisionRollbackStatus is what a rollback did.
type RevisionRollbackStatus struct {
	// Revision is the name of the revision that was created, or would be.
	Revision string
	// RevisionUID is its uid; absent on dry-run.
	RevisionUID string
	// From is the newest revision, which the new one takes over from.
	From string
	// Diff is what it would change; on dry-run only, and for those who may get
	// the diffs of both revisions.
	Diff *RevisionDiff
}
