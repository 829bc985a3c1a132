package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ManifestListKind is the kind of PlanManifestList on the wire: kubectl knows the
// kind List in every group.
const ManifestListKind = "List"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanManifestList holds the desired state of a plan's items, in their order, as
// its subresource manifests returns them. Its kind is List.
type PlanManifestList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata; it is empty.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the manifests.
	Items []runtime.RawExtension `json:"items"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanApprovalRequest approves a plan: POST it to the subresource approve. The
// answer is the same, with status.
type PlanApprovalRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may be left out.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec names the plan that is approved.
	Spec PlanApprovalRequestSpec `json:"spec"`
	// status is the approval as it was recorded.
	// +optional
	Status *PlanApproval `json:"status,omitempty"`
}

// PlanApprovalRequestSpec names the plan that is approved.
type PlanApprovalRequestSpec struct {
	// planHash is status.planHash of the plan that was read. When the plan has another
	// hash by now, nothing is approved: 409 Conflict.
	PlanHash string `json:"planHash"`
	// comment is the reason of the approval, at most 1024 bytes.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanRetryRequest asks for a plan to be computed anew: POST it to the subresource
// retry. An approval that was used does not apply to the new plan.
type PlanRetryRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may be left out.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanHistory lists the runs of a plan, the newest first. It outlives the plan.
type PlanHistory struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the plan's name.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// runs are the executions, the newest first.
	// +listType=atomic
	Runs []PlanRun `json:"runs"`
}

// PlanRun is one execution of a plan.
type PlanRun struct {
	// plan is the uid of the plan: a name may be used again.
	Plan string `json:"plan"`
	// run is the number of the execution.
	Run int64 `json:"run"`
	// profile that was executed.
	Profile ProfileName `json:"profile"`
	// planHash is the hash of the executed plan.
	PlanHash string `json:"planHash"`
	// manifests is the name of the pack with the desired state.
	// +optional
	Manifests string `json:"manifests,omitempty"`
	// captured is the name of the pack with the targets as they were before the run.
	// +optional
	Captured string `json:"captured,omitempty"`
	// restoreRun is the run whose earlier state this run restored; absent when this
	// run applied the profile.
	// +optional
	RestoreRun int64 `json:"restoreRun,omitempty"`
	// approval names the users who approved it.
	Approval PlanApproval `json:"approval"`
	// startedAt is the time at which the execution began.
	StartedAt metav1.Time `json:"startedAt"`
	// endedAt is the time at which it ended; absent while it runs.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
	// outcome is the phase in which it ended; absent while it runs.
	// +optional
	Outcome Phase `json:"outcome,omitempty"`
	// items are the results of the items.
	// +optional
	// +listType=atomic
	Items []PlanRunItem `json:"items,omitempty"`
}

// PlanRunItem is the result of one item.
type PlanRunItem struct {
	// name of the item.
	Name string `json:"name"`
	// targetRef is the object that was configured.
	TargetRef TargetRef `json:"targetRef"`
	// action is the action on the target.
	// +optional
	Action ItemAction `json:"action,omitempty"`
	// digest of the desired state.
	// +optional
	Digest string `json:"digest,omitempty"`
	// state is the last state of the item.
	State ItemState `json:"state"`
	// message says more.
	// +optional
	Message string `json:"message,omitempty"`
	// startedAt is the time at which the item began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// applied is true when the run has written the target: only then does a rollback
	// restore it. Runs of versions of Penstock that did not record it lack it; for
	// those, every item that was started counts.
	// +optional
	Applied *bool `json:"applied,omitempty"`
	// endedAt is the time of the last change of its state.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanRollbackRequest asks for a plan that restores what the targets had before a
// run: POST it to the subresource rollback. The plan is reviewed and approved like
// any other; nothing is undone silently.
type PlanRollbackRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may be left out.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec names the run to go back to; it may be left out.
	// +optional
	Spec PlanRollbackRequestSpec `json:"spec,omitempty"`
}

// PlanRollbackRequestSpec names the run to go back to.
type PlanRollbackRequestSpec struct {
	// run is the execution to undo; the last one when it is left out.
	// +optional
	Run int64 `json:"run,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanDiff has the changes that a plan would make now.
type PlanDiff struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the plan's name.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// planHash names the plan.
	PlanHash string `json:"planHash"`
	// items are the changes by item. Targets that you cannot read and change yourself are left
	// out.
	// +listType=atomic
	Items []PlanDiffItem `json:"items"`
}

// PlanDiffItem is the change that one item would make now.
type PlanDiffItem struct {
	// name of the item.
	Name string `json:"name"`
	// targetRef is the object.
	TargetRef TargetRef `json:"targetRef"`
	// stale tells that the target is not as it was reviewed.
	// +optional
	Stale bool `json:"stale,omitempty"`
	// diff of the target as it is and as it would be, redacted.
	// +optional
	Diff string `json:"diff,omitempty"`
	// message says why there is no diff.
	// +optional
	Message string `json:"message,omitempty"`
}
