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
	// Spec names the plan that is approved.
	Spec PlanApprovalRequestSpec
	// Status is the approval as it was recorded.
	Status *PlanApproval
}

// PlanApprovalRequestSpec names the plan that is approved.
type PlanApprovalRequestSpec struct {
	// PlanHash is status.planHash of the plan that was read. When the plan has
	// another one by now, nothing is approved: 409 Conflict.
	PlanHash string
	// Comment is the reason of the approval, at most 1024 bytes.
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

// PlanRollbackRequest asks for a plan that restores the targets as they were
// before a run: POST it to the subresource rollback. It is reviewed and
// approved as any other; nothing is undone silently.
type PlanRollbackRequest struct {
	metav1.TypeMeta
	// ObjectMeta may be left out.
	metav1.ObjectMeta
	// Spec names the run to go back to; it may be left out.
	Spec PlanRollbackRequestSpec
}

// PlanRollbackRequestSpec names the run to go back to.
type PlanRollbackRequestSpec struct {
	// Run is the execution to undo; the last one when it is left out.
	Run int64
}
