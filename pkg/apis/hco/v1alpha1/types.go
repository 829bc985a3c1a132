package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Limits of a plan's status, so that a record stays far below 1 MiB.
const (
	// MaxItemDiffBytes bounds the diff of one item.
	MaxItemDiffBytes = 8 << 10
	// MaxDiffBytes bounds the joined diff.
	MaxDiffBytes = 32 << 10
	// MaxMessageBytes bounds messages of items and conditions.
	MaxMessageBytes = 1024
	// MaxCommentBytes bounds the comment of an approval.
	MaxCommentBytes = 1024
)

// Names that are put on plans and on targets.
const (
	// OverrideAnnotation, on a plan, names another one that holds the profile: its
	// place is taken. Setting it needs the verb override.
	OverrideAnnotation = "hco.kubevirt.io/override"
	// GovernedByAnnotation, on a target, names the plan that configured it.
	GovernedByAnnotation = "hco.kubevirt.io/governed-by"
	// ExportedFromAnnotation, on a manifest that was exported, names the plan and its hash.
	ExportedFromAnnotation = "hco.kubevirt.io/exported-from"
	// AppliedHashAnnotation, on a target, is the digest of what was applied.
	AppliedHashAnnotation = "hco.kubevirt.io/applied-profile-hash"
	// FieldManagerPrefix begins the field manager that targets are written with;
	// the profile follows. Each profile has its own: a shared one would lose the
	// fields of one plan whenever another is applied.
	FieldManagerPrefix = "hco-governance/"
)

// +genclient
// +genclient:nonNamespaced
// +genclient:method=GetManifests,verb=get,subresource=manifests,result=github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1.PlanManifestList
// +genclient:method=GetExport,verb=get,subresource=export,result=github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1.PlanManifestList
// +genclient:method=GetDiff,verb=get,subresource=diff,result=github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1.PlanDiff
// +genclient:method=GetHistory,verb=get,subresource=history,result=github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1.PlanHistory
// +genclient:method=Approve,verb=create,subresource=approve,input=github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1.PlanApprovalRequest,result=github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1.PlanApprovalRequest
// +genclient:method=Retry,verb=create,subresource=retry,input=github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1.PlanRetryRequest,result=github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1.PlanRetryRequest
// +genclient:method=Rollback,verb=create,subresource=rollback,input=github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1.PlanRollbackRequest,result=github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1.PlanRollbackRequest
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationPlan is a change to the configuration of components that belong to
// others. It is computed, shown, approved and executed, in this order, and watched
// afterwards.
type ConfigurationPlan struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the request.
	Spec ConfigurationPlanSpec `json:"spec"`
	// status is the plan that was computed, and its progress.
	// +optional
	Status ConfigurationPlanStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationPlanList is a list of plans.
type ConfigurationPlanList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the plans.
	Items []ConfigurationPlan `json:"items"`
}

// ProfileName names a profile.
// +enum
type ProfileName string

const (
	// ProfileLoadAwareRebalancing makes the descheduler move virtual machines away
	// from nodes under pressure, and nodes report pressure (PSI).
	ProfileLoadAwareRebalancing ProfileName = "LoadAwareRebalancing"
	// ProfileHighDensitySwap gives worker nodes swap, and virtual machines more memory
	// than is requested for them.
	ProfileHighDensitySwap ProfileName = "HighDensitySwap"
	// ProfileNodeHealthRemediation has nodes that stay unhealthy remediated, and their
	// virtual machines started elsewhere.
	ProfileNodeHealthRemediation ProfileName = "NodeHealthRemediation"
)

// Action says whether Penstock computes, executes or ignores a plan.
// +enum
type Action string

const (
	// ActionDryRun computes the plan and waits.
	ActionDryRun Action = "DryRun"
	// ActionApply executes the plan. Setting it needs the verb approve.
	ActionApply Action = "Apply"
	// ActionIgnore does nothing: what was applied stays and is not watched.
	ActionIgnore Action = "Ignore"
)

// FailurePolicy decides about the rest of a plan after an item has failed.
// +enum
type FailurePolicy string

const (
	// FailurePolicyAbort leaves the rest Pending.
	FailurePolicyAbort FailurePolicy = "Abort"
	// FailurePolicyContinue executes the next item.
	FailurePolicyContinue FailurePolicy = "Continue"
)

// ConflictPolicy decides about fields that belong to other field managers.
// +enum
type ConflictPolicy string

const (
	// OnConflictBlock makes the plan wait; it names the fields and who has them.
	OnConflictBlock ConflictPolicy = "Block"
	// OnConflictTake takes the fields when the plan is executed.
	OnConflictTake ConflictPolicy = "Take"
)

// ConfigurationPlanSpec is the requested change.
type ConfigurationPlanSpec struct {
	// profile is the profile to configure. It is immutable. Valid values: "LoadAwareRebalancing",
	// "HighDensitySwap", "NodeHealthRemediation", and the name of any
	// ConfigurationProfileDefinition; kubectl get configprofile lists all profiles.
	Profile ProfileName `json:"profile"`
	// action decides about the plan: DryRun computes it and waits for an approval, Apply approves
	// and executes it, Ignore does nothing and watches nothing. Setting Apply, and any change of
	// spec while it is Apply, needs the verb approve. While a plan waits for approval, the write
	// that sets Apply must say which plan was reviewed: by approvedPlanHash, or by
	// metadata.resourceVersion.
	// +optional
	// +default="DryRun"
	Action Action `json:"action,omitempty"`
	// failurePolicy decides about the other items after one has failed: Abort leaves the rest
	// Pending, Continue goes on with the next.
	// +optional
	// +default="Abort"
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
	// onConflict decides about fields that belong to other field managers and would get other
	// values. Block shows the plan with the owners of the fields, and executes nothing. Take
	// takes the fields.
	// +optional
	// +default="Block"
	OnConflict ConflictPolicy `json:"onConflict,omitempty"`
	// options of the profile. Only the member of the plan's own profile may be set.
	// +optional
	Options *PlanOptions `json:"options,omitempty"`
	// waitTimeout bounds the time until an item is healthy, such as 2h30m. Without it there is no
	// limit. The time that a pool is paused does not count.
	// +optional
	WaitTimeout *metav1.Duration `json:"waitTimeout,omitempty"`
	// approvedPlanHash is the hash, as in status.planHash, of the only plan that may
	// be executed. Any other plan waits in ReviewRequired.
	// +optional
	ApprovedPlanHash string `json:"approvedPlanHash,omitempty"`
	// expiresAfter bounds the time between the computation and the approval of a plan. After it
	// the plan expires, and is computed again. Default: 24h.
	// +optional
	// +default="24h"
	ExpiresAfter *metav1.Duration `json:"expiresAfter,omitempty"`
	// window bounds the execution: no item begins outside the window, and an item that has begun
	// is not interrupted. It is part of the plan that is approved. Without it an approved plan
	// begins at once.
	// +optional
	Window *PlanWindow `json:"window,omitempty"`
	// expires is until when the plan may be executed: no item begins at or after that
	// time, and the plan has to be approved again, with a later time. It is part of the
	// plan that is approved. Without it an approval lasts until it is used or withdrawn.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// approvals is the number of people who must approve the plan, 1 to 5. Default: 1. Above 1,
	// users who created the plan, or changed more of spec than action and approvedPlanHash,
	// cannot approve it. It can be raised, but not lowered.
	// +optional
	Approvals int32 `json:"approvals,omitempty"`
	// requires are other profiles that have to be in effect: an item of this plan begins
	// only while a plan of each of them is Completed. At most 8. It is part of the plan
	// that is approved. A plan that restores the state before a run ignores it.
	// +optional
	// +listType=set
	Requires []ProfileName `json:"requires,omitempty"`
	// restoreRun makes the plan restore the fields that this run set to what the
	// targets had before the run, instead of applying the profile. The subresource
	// rollback sets it. It is unset when the plan is computed anew after the restore,
	// and by other options or action Ignore.
	// +optional
	RestoreRun int64 `json:"restoreRun,omitempty"`
}

// PlanWindow is a recurring time.
type PlanWindow struct {
	// schedule has the times at which the window opens, in the format of cron: minute, hour, day
	// of the month, month and day of the week, such as "0 22 * * Sat"; or @yearly, @monthly,
	// @weekly, @daily or @hourly.
	Schedule string `json:"schedule"`
	// timeZone is the time zone of the schedule: a name of the IANA database, such as
	// Europe/Berlin. Default: UTC.
	// +optional
	// +default="UTC"
	TimeZone string `json:"timeZone,omitempty"`
	// duration is the time for which the window is open, 1m to 744h, such as 6h. Windows that
	// touch or overlap are one window.
	Duration metav1.Duration `json:"duration"`
}

// PlanOptions are the options of the profiles, one member for each.
type PlanOptions struct {
	// loadAwareRebalancing are the options of the profile LoadAwareRebalancing.
	// +optional
	LoadAwareRebalancing *LoadAwareRebalancingOptions `json:"loadAwareRebalancing,omitempty"`
	// highDensitySwap are the options of the profile HighDensitySwap.
	// +optional
	HighDensitySwap *HighDensitySwapOptions `json:"highDensitySwap,omitempty"`
	// nodeHealthRemediation are the options of the profile NodeHealthRemediation.
	// +optional
	NodeHealthRemediation *NodeHealthRemediationOptions `json:"nodeHealthRemediation,omitempty"`
	// values are the options of a profile of your own, as its definition describes them:
	// kubectl get configprofile NAME -o yaml.
	// +optional
	Values *JSONObject `json:"values,omitempty"`
}

// NodeHealthRemediationOptions are the options of the profile NodeHealthRemediation.
type NodeHealthRemediationOptions struct {
	// remediator is the operator that remediates a node. SelfNode has the node reboot itself, and
	// FenceAgents power-cycles it. Automatic is FenceAgents if a template for it exists, and else
	// SelfNode. Default: Automatic.
	// +optional
	Remediator Remediator `json:"remediator,omitempty"`
	// template is the SelfNodeRemediationTemplate or FenceAgentsRemediationTemplate to
	// use. Without it, the only existing template is used, or the one that Self Node
	// Remediation made.
	// +optional
	Template *TemplateReference `json:"template,omitempty"`
	// nodeSelector selects the worker nodes that are checked, by their labels. Control
	// planes are never among them. Without it all worker nodes are.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// minHealthy is the number of these nodes that must be healthy before any of them is
	// remediated: a number, or a percentage such as 51%, which is rounded up. Default: 51%.
	// +optional
	MinHealthy *intstr.IntOrString `json:"minHealthy,omitempty"`
	// unhealthyConditions are the conditions of a node, any of which makes it unhealthy
	// when it lasts. At most 10. Default: Ready is False or Unknown for 5m.
	// +optional
	// +listType=atomic
	UnhealthyConditions []UnhealthyCondition `json:"unhealthyConditions,omitempty"`
	// includeControlPlane has control planes checked and remediated, too, one at a time.
	// Default: false.
	// +optional
	IncludeControlPlane *bool `json:"includeControlPlane,omitempty"`
}

// Remediator is the operator that remediates a node.
// +enum
type Remediator string

const (
	// RemediatorAutomatic is FenceAgents where there is a template for it, and SelfNode
	// elsewhere.
	RemediatorAutomatic Remediator = "Automatic"
	// RemediatorSelfNode has nodes reboot themselves.
	RemediatorSelfNode Remediator = "SelfNode"
	// RemediatorFenceAgents power-cycles nodes.
	RemediatorFenceAgents Remediator = "FenceAgents"
)

// TemplateReference names a template.
type TemplateReference struct {
	// namespace of the template.
	Namespace string `json:"namespace"`
	// name of the template.
	Name string `json:"name"`
}

// UnhealthyCondition is a condition of a node that makes it unhealthy when it lasts.
type UnhealthyCondition struct {
	// type of the condition, such as Ready.
	Type string `json:"type"`
	// status of the condition: True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`
	// duration is the least duration of the condition, 1s to 24h, such as 5m.
	Duration metav1.Duration `json:"duration"`
}

// HighDensitySwapOptions are the options of the profile HighDensitySwap.
type HighDensitySwapOptions struct {
	// enableSwap gives worker nodes swap, which reboots them. Default: true.
	// +optional
	EnableSwap *bool `json:"enableSwap,omitempty"`
	// swapSource is the place of the swap of worker nodes: an existing Partition, or a File that
	// is created. Default: Partition.
	// +optional
	SwapSource SwapSource `json:"swapSource,omitempty"`
	// partitionLabel is the label of the partition (of its entry in the partition table).
	// The partition has to be formatted as swap; otherwise it is left alone. Default:
	// CNV_SWAP.
	// +optional
	PartitionLabel string `json:"partitionLabel,omitempty"`
	// fileSizeMiB is the size of the file in MiB, 1024 to 1048576. It is required for swapSource
	// File. A node where it would leave less than a fifth of the file system free goes without
	// swap.
	// +optional
	FileSizeMiB *int32 `json:"fileSizeMiB,omitempty"`
	// memoryToRequestRatio is the memory of virtual machines in percent of their memory requests,
	// 100 to 300. Above 120 it needs enableSwap. Default: 150, and 100 without swap.
	// +optional
	MemoryToRequestRatio *int32 `json:"memoryToRequestRatio,omitempty"`
	// enableKSM has nodes merge equal pages of memory of virtual machines. Default: true.
	// +optional
	EnableKSM *bool `json:"enableKSM,omitempty"`
}

// SwapSource is the place of the swap of nodes.
// +enum
type SwapSource string

const (
	// SwapSourcePartition is an existing partition.
	SwapSourcePartition SwapSource = "Partition"
	// SwapSourceFile is a file that is created.
	SwapSourceFile SwapSource = "File"
)

// LoadAwareRebalancingOptions are the options of the profile LoadAwareRebalancing.
type LoadAwareRebalancingOptions struct {
	// enablePSIMetrics makes worker nodes report pressure (kernel argument psi=1),
	// which reboots those that do not yet. Default: true.
	// +optional
	EnablePSIMetrics *bool `json:"enablePSIMetrics,omitempty"`
	// deschedulingIntervalSeconds is the time between runs of the descheduler, 60
	// to 86400. Default: 60.
	// +optional
	DeschedulingIntervalSeconds *int32 `json:"deschedulingIntervalSeconds,omitempty"`
	// mode of the descheduler: Automatic evicts, Predictive only says what it would
	// evict. Default: Automatic.
	// +optional
	Mode DeschedulerMode `json:"mode,omitempty"`
	// deviationThresholds is the allowed distance of a node from the mean: Low, Medium, High,
	// AsymmetricLow, AsymmetricMedium or AsymmetricHigh. Default: AsymmetricLow.
	// +optional
	DeviationThresholds DeviationThresholds `json:"deviationThresholds,omitempty"`
	// evictionLimitTotal bounds evictions in the cluster at a time, 1 to 1000. Without
	// it, the limit that HyperConverged has for live migrations applies.
	// +optional
	EvictionLimitTotal *int32 `json:"evictionLimitTotal,omitempty"`
	// evictionLimitNode bounds evictions from a node at a time, 1 to 100. Without it,
	// the limit that HyperConverged has for live migrations applies.
	// +optional
	EvictionLimitNode *int32 `json:"evictionLimitNode,omitempty"`
}

// DeschedulerMode decides whether the descheduler evicts Pods.
// +enum
type DeschedulerMode string

const (
	// DeschedulerAutomatic evicts.
	DeschedulerAutomatic DeschedulerMode = "Automatic"
	// DeschedulerPredictive only says what it would evict.
	DeschedulerPredictive DeschedulerMode = "Predictive"
)

// DeviationThresholds is the allowed distance of a node from the mean.
// +enum
type DeviationThresholds string

const (
	// DeviationLow is 10 percent on both sides.
	DeviationLow DeviationThresholds = "Low"
	// DeviationMedium is 20 percent on both sides.
	DeviationMedium DeviationThresholds = "Medium"
	// DeviationHigh is 30 percent on both sides.
	DeviationHigh DeviationThresholds = "High"
	// DeviationAsymmetricLow is 0 percent below and 10 above.
	DeviationAsymmetricLow DeviationThresholds = "AsymmetricLow"
	// DeviationAsymmetricMedium is 0 percent below and 20 above.
	DeviationAsymmetricMedium DeviationThresholds = "AsymmetricMedium"
	// DeviationAsymmetricHigh is 0 percent below and 30 above.
	DeviationAsymmetricHigh DeviationThresholds = "AsymmetricHigh"
)

// Phase is the state of a plan.
// +enum
type Phase string

const (
	// PhasePending is a plan that nobody has looked at yet.
	PhasePending Phase = "Pending"
	// PhaseDrafting is a plan that is being computed.
	PhaseDrafting Phase = "Drafting"
	// PhasePrerequisiteFailed is a plan that lacks something in the cluster.
	PhasePrerequisiteFailed Phase = "PrerequisiteFailed"
	// PhaseReviewRequired is a computed plan that waits for its approval.
	PhaseReviewRequired Phase = "ReviewRequired"
	// PhaseScheduled is an approved plan that waits for its window, or for what it
	// requires.
	PhaseScheduled Phase = "Scheduled"
	// PhaseInProgress is a plan that is being executed.
	PhaseInProgress Phase = "InProgress"
	// PhaseCompleted is a plan that is in effect.
	PhaseCompleted Phase = "Completed"
	// PhaseCompletedWithErrors is an executed plan of which items failed.
	PhaseCompletedWithErrors Phase = "CompletedWithErrors"
	// PhaseFailed is a plan that was not computed, or stopped in the middle.
	PhaseFailed Phase = "Failed"
	// PhaseDrifted is a plan that was in effect until somebody changed a target.
	PhaseDrifted Phase = "Drifted"
	// PhaseExpired is a plan that waited too long for its approval.
	PhaseExpired Phase = "Expired"
	// PhaseIgnored is a plan that is not looked at.
	PhaseIgnored Phase = "Ignored"
)

// Types of a plan's conditions. Their reasons are in docs/reference/reasons.md.
const (
	// ConditionPrerequisitesMet tells whether the cluster has what the profile needs.
	ConditionPrerequisitesMet = "PrerequisitesMet"
	// ConditionProfileActive tells whether the targets are as the plan says.
	ConditionProfileActive = "ProfileActive"
	// ConditionUpgradeAvailable tells that another version of Penstock, or other
	// facts of the cluster, would give another plan.
	ConditionUpgradeAvailable = "UpgradeAvailable"
	// ConditionDrifted tells that somebody changed a target.
	ConditionDrifted = "Drifted"
	// ConditionHealthy says whether the operators of the targets report no
	// problem, once the plan is in effect.
	ConditionHealthy = "Healthy"
	// ConditionReady says that the plan needs no action.
	ConditionReady = "Ready"
	// ConditionStalled says that a person must act.
	ConditionStalled = "Stalled"
)

// ConfigurationPlanStatus is the plan that was computed, and its progress.
type ConfigurationPlanStatus struct {
	// phase is the state of the plan.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// observedGeneration is the generation of spec that status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// planHash identifies the plan: it covers the desired state of all items, the
	// targets as they were found, the impact, and spec.window, spec.expires,
	// spec.approvals and spec.requires.
	// +optional
	PlanHash string `json:"planHash,omitempty"`
	// sourceSnapshotHash covers the targets as they were found.
	// +optional
	SourceSnapshotHash string `json:"sourceSnapshotHash,omitempty"`
	// inputsHash covers the parts of spec that the plan was computed from.
	// +optional
	InputsHash string `json:"inputsHash,omitempty"`
	// operatorVersion is the version of Penstock that computed the plan.
	// +optional
	OperatorVersion string `json:"operatorVersion,omitempty"`
	// draftedAt is the time at which the plan was computed.
	// +optional
	DraftedAt *metav1.Time `json:"draftedAt,omitempty"`
	// manifests names where the desired state of the items is stored; it is read
	// at the subresource manifests.
	// +optional
	Manifests string `json:"manifests,omitempty"`
	// captured names where the targets are stored as they were found.
	// +optional
	Captured string `json:"captured,omitempty"`
	// impactSeverity is the highest severity of the items.
	// +optional
	ImpactSeverity ImpactSeverity `json:"impactSeverity,omitempty"`
	// diff has the changes of all items, bounded: fields, and the values that the plan sets and
	// the targets do not have.
	// +optional
	Diff string `json:"diff,omitempty"`
	// items are the steps of the plan, in their order.
	// +optional
	// +listType=map
	// +listMapKey=name
	Items []PlanItem `json:"items,omitempty"`
	// approval names the approved hash and the users who approved it. The server writes it.
	// +optional
	Approval *PlanApproval `json:"approval,omitempty"`
	// requestedBy are the names of those who created the plan, or changed more of spec
	// than action and approvedPlanHash: the first, and the newest of the others. The
	// server writes it.
	// +optional
	// +listType=atomic
	RequestedBy []string `json:"requestedBy,omitempty"`
	// window is the window that is open for the plan, or opens next. It is set while the
	// plan waits or is executed, if spec.window is set.
	// +optional
	Window *PlanWindowStatus `json:"window,omitempty"`
	// run is the number of the current or last execution; 0 before the first.
	// +optional
	Run int64 `json:"run,omitempty"`
	// message says what to do next.
	// +optional
	Message string `json:"message,omitempty"`
	// conditions summarize the plan.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// definition is the ConfigurationProfileDefinition that the plan was computed
	// from, for a profile of your own.
	// +optional
	Definition *PlanDefinition `json:"definition,omitempty"`
}

// PlanWindowStatus is a time in which items of a plan may begin.
type PlanWindowStatus struct {
	// opensAt is the time at which it begins.
	OpensAt metav1.Time `json:"opensAt"`
	// closesAt is the time at which it ends. No item begins then or later. If windows follow one
	// another without a gap, the window is open at least until this time.
	ClosesAt metav1.Time `json:"closesAt"`
	// local is opensAt in the time zone of spec.window, for people.
	Local string `json:"local"`
}

// ImpactSeverity is the disturbance by an item.
// +enum
type ImpactSeverity string

const (
	// ImpactNone changes nothing.
	ImpactNone ImpactSeverity = "None"
	// ImpactLow changes configuration and disturbs no workload.
	ImpactLow ImpactSeverity = "Low"
	// ImpactMedium moves or restarts workloads.
	ImpactMedium ImpactSeverity = "Medium"
	// ImpactHigh reboots nodes.
	ImpactHigh ImpactSeverity = "High"
)

// ItemState is the progress of an item.
// +enum
type ItemState string

const (
	// ItemPending waits for its turn.
	ItemPending ItemState = "Pending"
	// ItemInProgress is being applied or waited for.
	ItemInProgress ItemState = "InProgress"
	// ItemCompleted is applied and healthy.
	ItemCompleted ItemState = "Completed"
	// ItemFailed was refused, did not become healthy in time, or is stale.
	ItemFailed ItemState = "Failed"
	// ItemSkipped needs nothing to be done.
	ItemSkipped ItemState = "Skipped"
)

// PlanItem is one step of a plan: one target as it should be.
type PlanItem struct {
	// name of the item.
	Name string `json:"name"`
	// targetRef is the object that is configured.
	TargetRef TargetRef `json:"targetRef"`
	// action is the action on the target: Create, Update, Delete or None.
	// +optional
	Action ItemAction `json:"action,omitempty"`
	// impactSeverity is the disturbance by the item.
	// +optional
	ImpactSeverity ImpactSeverity `json:"impactSeverity,omitempty"`
	// impactReason says why.
	// +optional
	ImpactReason string `json:"impactReason,omitempty"`
	// blastRadius has the nodes that the item affects.
	// +optional
	BlastRadius *BlastRadius `json:"blastRadius,omitempty"`
	// digest of the desired state.
	// +optional
	Digest string `json:"digest,omitempty"`
	// fingerprint of the target as it was found; "absent" when there was none.
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`
	// diff has the change, bounded: fields, and the values that the plan sets and the target does
	// not have. The subresource diff has the whole change.
	// +optional
	Diff string `json:"diff,omitempty"`
	// takes are fields of other field managers that would be taken.
	// +optional
	// +listType=atomic
	Takes []TakenFields `json:"takes,omitempty"`
	// notes are remarks for reviewers.
	// +optional
	// +listType=atomic
	Notes []string `json:"notes,omitempty"`
	// state is the progress of the item.
	// +optional
	State ItemState `json:"state,omitempty"`
	// message says what the item waits for, or why it failed.
	// +optional
	Message string `json:"message,omitempty"`
	// startedAt is the time at which the item began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// applied is true when the run has written the target.
	// +optional
	Applied bool `json:"applied,omitempty"`
	// appliedAt is the time at which the run wrote the target. Conditions of the target that are
	// older prove nothing about it.
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`
	// pausedSeconds is the time for which the objects that the item waits for were paused. It
	// does not count for waitTimeout.
	// +optional
	PausedSeconds int64 `json:"pausedSeconds,omitempty"`
	// lastTransitionTime is the time of the last change of state.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// ItemAction is the action on a target.
// +enum
type ItemAction string

const (
	// ItemCreate makes a target that does not exist.
	ItemCreate ItemAction = "Create"
	// ItemUpdate changes a target.
	ItemUpdate ItemAction = "Update"
	// ItemDelete removes a target that was created by the run that is rolled back.
	ItemDelete ItemAction = "Delete"
	// ItemNone leaves a target that is as it should be.
	ItemNone ItemAction = "None"
)

// TargetRef names an object.
type TargetRef struct {
	// apiVersion of the object.
	APIVersion string `json:"apiVersion"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object, empty for none.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// name of the object.
	Name string `json:"name"`
}

// BlastRadius has the nodes that an item affects.
type BlastRadius struct {
	// pools are the MachineConfigPools whose nodes get the change.
	// +optional
	// +listType=atomic
	Pools []string `json:"pools,omitempty"`
	// nodes is the number of nodes that get the change.
	// +optional
	Nodes int64 `json:"nodes,omitempty"`
	// reboot tells whether they reboot.
	// +optional
	Reboot bool `json:"reboot,omitempty"`
	// waves is the number of rounds that the change takes, by the maxUnavailable of the pools.
	// +optional
	Waves int64 `json:"waves,omitempty"`
}

// TakenFields are fields that one field manager has and would lose.
type TakenFields struct {
	// manager who has them.
	Manager string `json:"manager"`
	// fields such as ".spec.mode".
	// +listType=atomic
	Fields []string `json:"fields"`
	// reclaimed fields were set by a run of the plan, and changed by their manager
	// since: taking them back needs no onConflict: Take.
	// +optional
	Reclaimed bool `json:"reclaimed,omitempty"`
}

// ApprovalMode tells by which field a plan was approved.
// +enum
type ApprovalMode string

const (
	// ApprovalExplicit approves a plan that was there to be read.
	ApprovalExplicit ApprovalMode = "Explicit"
	// ApprovalStanding approves the first plan that is computed, because Apply was
	// set before there was one.
	ApprovalStanding ApprovalMode = "Standing"
)

// PlanApproval names the approved hash and the users who approved it. The server writes it.
type PlanApproval struct {
	// username of the approver.
	Username string `json:"username"`
	// uid of the approver.
	// +optional
	UID string `json:"uid,omitempty"`
	// groups of the approver, at the time.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// extra is additional information from the authenticator, such as the scopes of a
	// token.
	// +optional
	Extra map[string]ExtraValue `json:"extra,omitempty"`
	// time of the approval.
	Time metav1.Time `json:"time"`
	// planHash is the plan that is approved. It is empty for a standing approval
	// until the first plan is computed.
	// +optional
	PlanHash string `json:"planHash,omitempty"`
	// comment of the approver.
	// +optional
	Comment string `json:"comment,omitempty"`
	// mode is Explicit or Standing.
	Mode ApprovalMode `json:"mode"`
	// run is the execution that the approval was used for: an approval counts once.
	// +optional
	Run int64 `json:"run,omitempty"`
	// others are the further approvers of the same plan, when spec.approvals asks for
	// more than one.
	// +optional
	// +listType=atomic
	Others []PlanApprover `json:"others,omitempty"`
}

// PlanApprover is a further user who approved a plan.
type PlanApprover struct {
	// username of the approver.
	Username string `json:"username"`
	// uid of the approver.
	// +optional
	UID string `json:"uid,omitempty"`
	// groups of the approver, at the time.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// extra is additional information from the authenticator, such as the scopes of a
	// token.
	// +optional
	Extra map[string]ExtraValue `json:"extra,omitempty"`
	// time of the approval.
	Time metav1.Time `json:"time"`
	// comment of the approver.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// ExtraValue is a list of values of one extra key.
type ExtraValue []string
