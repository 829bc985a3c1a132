package hco

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanManifestList has the desired state of a plan's items, in their order. The subresource
// manifests of a plan returns it. Its kind is List.
type PlanManifestList struct {
	metav1.TypeMeta
	// ListMeta is the standard list metadata; it is empty.
	metav1.ListMeta
	// Items are the manifests.
	Items []runtime.RawExtension
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanApprovalRequest approves a plan. POST it to the subresource approve. The server returns it
// with status.
type PlanApprovalRequest struct {
	metav1.TypeMeta
	// ObjectMeta is optional.
	metav1.ObjectMeta
	// Spec names the plan to approve.
	Spec PlanApprovalRequestSpec
	// Status is the recorded approval.
	Status *PlanApproval
}

// PlanApprovalRequestSpec names the plan to approve.
type PlanApprovalRequestSpec struct {
	// PlanHash is status.planHash of the reviewed plan. If the plan has another hash by then, the
	// server approves nothing and returns 409 Conflict.
	PlanHash string
	// Comment is the reason of the approval, at most 1024 bytes.
	Comment string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanRetryRequest makes Penstock compute a plan again. POST it to the subresource retry. An
// approval that was used does not apply to the new plan.
type PlanRetryRequest struct {
	metav1.TypeMeta
	// ObjectMeta is optional.
	metav1.ObjectMeta
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanRollbackRequest makes Penstock compute a plan that restores the state of the targets before a
// run. POST it to the subresource rollback. The plan needs a review and an approval, like every
// plan.
type PlanRollbackRequest struct {
	metav1.TypeMeta
	// ObjectMeta is optional.
	metav1.ObjectMeta
	// Spec names the run to undo. It is optional.
	Spec PlanRollbackRequestSpec
}

// PlanRollbackRequestSpec names the run to undo.
type PlanRollbackRequestSpec struct {
	// Run is the number of the run to undo. Default: the last run.
	Run int64
}
