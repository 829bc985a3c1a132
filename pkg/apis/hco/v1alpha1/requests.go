package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ManifestListKind is the kind of PlanManifestList on the wire. kubectl knows the kind List in
// every group.
const ManifestListKind = "List"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanManifestList has the desired state of a plan's items, in their order. The subresource
// manifests of a plan returns it. Its kind is List.
type PlanManifestList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata; it is empty.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the manifests.
	Items []runtime.RawExtension `json:"items"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanApprovalRequest approves a plan. POST it to the subresource approve. The server returns it
// with status.
type PlanApprovalRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is optional.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec names the plan to approve.
	Spec PlanApprovalRequestSpec `json:"spec"`
	// status is the recorded approval.
	// +optional
	Status *PlanApproval `json:"status,omitempty"`
}

// PlanApprovalRequestSpec names the plan to approve.
type PlanApprovalRequestSpec struct {
	// planHash is status.planHash of the reviewed plan. If the plan has another hash by then, the
	// server approves nothing and returns 409 Conflict.
	PlanHash string `json:"planHash"`
	// comment is the reason of the approval, at most 1024 bytes.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanRetryRequest makes Penstock compute a plan again. POST it to the subresource retry. An
// approval that was used does not apply to the new plan.
type PlanRetryRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is optional.
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
	// plan is the uid of the plan. A later plan can have the same name.
	Plan string `json:"plan"`
	// run is the number of the execution.
	Run int64 `json:"run"`
	// profile that was executed.
	Profile ProfileName `json:"profile"`
	// planHash is the hash of the executed plan.
	PlanHash string `json:"planHash"`
	// manifests is the name of the stored desired state.
	// +optional
	Manifests string `json:"manifests,omitempty"`
	// captured is the name of the stored copy of the targets before the run.
	// +optional
	Captured string `json:"captured,omitempty"`
	// restoreRun is the number of a run. This run restored the state before that run. It is absent
	// if this run applied the profile.
	// +optional
	RestoreRun int64 `json:"restoreRun,omitempty"`
	// approval names the users who approved the run.
	Approval PlanApproval `json:"approval"`
	// startedAt is the time at which the execution began.
	StartedAt metav1.Time `json:"startedAt"`
	// endedAt is the time at which the execution ended; absent while it runs.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
	// outcome is the last phase of the execution; absent while it runs.
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
	// message explains the state to a person.
	// +optional
	Message string `json:"message,omitempty"`
	// startedAt is the time at which the item began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// applied is true if the run has written the target. A rollback restores only such targets.
	// Runs of older Penstock versions do not record it; a rollback of such a run restores every
	// target whose item began.
	// +optional
	Applied *bool `json:"applied,omitempty"`
	// endedAt is the time of the last change of the item's state.
	// +optional
	EndedAt *metav1.Time `json:"endedAt,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// PlanRollbackRequest makes Penstock compute a plan that restores the state of the targets before a
// run. POST it to the subresource rollback. The plan needs a review and an approval, like every
// plan.
type PlanRollbackRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is optional.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec names the run to undo. It is optional.
	// +optional
	Spec PlanRollbackRequestSpec `json:"spec,omitempty"`
}

// PlanRollbackRequestSpec names the run to undo.
type PlanRollbackRequestSpec struct {
	// run is the number of the run to undo. Default: the last run.
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
	// planHash is the hash of the plan.
	PlanHash string `json:"planHash"`
	// items are the changes by item, without targets that you cannot get and patch.
	// +listType=atomic
	Items []PlanDiffItem `json:"items"`
}

// PlanDiffItem is the change that one item would make now.
type PlanDiffItem struct {
	// name of the item.
	Name string `json:"name"`
	// targetRef is the object to configure.
	TargetRef TargetRef `json:"targetRef"`
	// stale is true if the target changed since the review.
	// +optional
	Stale bool `json:"stale,omitempty"`
	// diff between the current and the desired state of the target, redacted.
	// +optional
	Diff string `json:"diff,omitempty"`
	// message is the reason why there is no diff.
	// +optional
	Message string `json:"message,omitempty"`
}
