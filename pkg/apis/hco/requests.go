package hco

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanManifestList holds the desired state of a plan's items, in their order, as
// its subresource manifests returns them. Its kind is List.
type PlanManifestList struct {
	metav1.TypeMeta
	// ListMeta is the standard list metadata; it is empty.
	metav1.ListMeta
	// Items are the manifests.
	Items []runtime.RawExtension
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanApprovalRequest approves a plan: POST it to the subresource approve. The
// answer is the same, with status.
type PlanApprovalRequest struct {
	metav1.TypeMeta
	// ObjectMeta may be left out.
	metav1.ObjectMeta
	// Spec is what is approved.
	Spec PlanApprovalRequestSpec
	// Status is the approval as it was recorded.
	Status *PlanApproval
}

// PlanApprovalRequestSpec is what is approved.
type PlanApprovalRequestSpec struct {
	// PlanHash is status.planHash of the plan that was read. When the plan has
	// another one by now, nothing is approved: 409 Conflict.
	PlanHash string
	// Comment is why, at most 1024 bytes.
	Comment string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanRetryRequest has a plan computed anew: POST it to the subresource retry. An
// approval that was used is not one of what is computed then.
type PlanRetryRequest struct {
	metav1.TypeMeta
	// ObjectMeta may be left out.
	metav1.ObjectMeta
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanHistory lists the runs of a plan, the newest first. It outlives the plan.
type PlanHistory struct {
	metav1.TypeMeta
	// ObjectMeta has the plan's name.
	metav1.ObjectMeta
	// Runs are the executions, the newest first.
	Runs []PlanRun
}

// PlanRun is one execution of a plan.
type PlanRun struct {
	// Plan is the uid of the plan: a name may be used again.
	Plan string
	// Run is the number of the execution.
	Run int64
	// Profile that was executed.
	Profile ProfileName
	// PlanHash is the hash of the executed plan.
	PlanHash string
	// Manifests is the name of the pack with the desired state.
	Manifests string
	// Captured is the name of the pack with the targets as they were before the run.
	Captured string
	// RestoreRun is the run whose earlier state this run restored; 0 when this run applied
	// the profile.
	RestoreRun int64
	// Approval names the users who approved it.
	Approval PlanApproval
	// StartedAt is when the execution began.
	StartedAt metav1.Time
	// EndedAt is when it ended; absent while it runs.
	EndedAt *metav1.Time
	// Outcome is the phase in which it ended; absent while it runs.
	Outcome Phase
	// Items are the results of the items.
	Items []PlanRunItem
}

// PlanRunItem is the result of one item.
type PlanRunItem struct {
	// Name of the item.
	Name string
	// TargetRef is the object that was configured.
	TargetRef TargetRef
	// Action is what happened to it.
	Action ItemAction
	// Digest of the desired state.
	Digest string
	// State is how far the item came.
	State ItemState
	// Message says more.
	Message string
	// StartedAt is when the item's turn came.
	StartedAt *metav1.Time
	// Applied is true when the run has written the target: only then a rollback
	// restores it. Runs of versions that did not record it lack it; a rollback
	// of such a run restores every started item.
	Applied *bool
	// EndedAt is when its state changed last.
	EndedAt *metav1.Time
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanRollbackRequest asks for a plan that restores the targets as they were
// before a run: POST it to the subresource rollback. It is reviewed and
// approved as any other; nothing is undone silently.
type PlanRollbackRequest struct {
	metav1.TypeMeta
	// ObjectMeta may be left out.
	metav1.ObjectMeta
	// Spec is what to go back to; it may be left out.
	Spec PlanRollbackRequestSpec
}

// PlanRollbackRequestSpec is what to go back to.
type PlanRollbackRequestSpec struct {
	// Run is the execution to undo; the last one when it is left out.
	Run int64
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanDiff is what a plan would change now.
type PlanDiff struct {
	metav1.TypeMeta
	// ObjectMeta has the plan's name.
	metav1.ObjectMeta
	// PlanHash names the plan.
	PlanHash string
	// Items are what it would change, as far as you may read and change the
	// targets yourself.
	Items []PlanDiffItem
}

// PlanDiffItem is what one item would change now.
type PlanDiffItem struct {
	// Name of the item.
	Name string
	// TargetRef is the object.
	TargetRef TargetRef
	// Stale tells that the target is not as it was reviewed.
	Stale bool
	// Diff of the target as it is and as it would be, redacted.
	Diff string
	// Message says why there is no diff.
	Message string
}
