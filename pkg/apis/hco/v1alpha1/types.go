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

// Names of annotations and field managers.
const (
	// OverrideAnnotation, on a plan, names another plan that holds the profile. This plan takes the
	// profile from it. Setting the annotation needs the verb override.
	OverrideAnnotation = "hco.kubevirt.io/override"
	// GovernedByAnnotation, on a target, names the plan that configured it.
	GovernedByAnnotation = "hco.kubevirt.io/governed-by"
	// ExportedFromAnnotation, on an exported manifest, names the plan and its hash.
	ExportedFromAnnotation = "hco.kubevirt.io/exported-from"
	// AppliedHashAnnotation, on a target, is the digest of the applied desired state.
	AppliedHashAnnotation = "hco.kubevirt.io/applied-profile-hash"
	// FieldManagerPrefix begins the field manager for writes to targets. The name of the profile
	// follows. Each profile has a separate field manager: with a shared manager, applying one plan
	// would remove the fields of another.
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

// ConfigurationPlan is a change to the configuration of components that other operators own.
// Penstock computes the plan and shows it. Once users have approved it, Penstock executes it, and
// then watches the targets.
type ConfigurationPlan struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the request.
	Spec ConfigurationPlanSpec `json:"spec"`
	// status is the computed plan and its progress.
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
	// ProfileLoadAwareRebalancing makes the descheduler move virtual machines away from nodes under
	// pressure. Nodes report their pressure (PSI).
	ProfileLoadAwareRebalancing ProfileName = "LoadAwareRebalancing"
	// ProfileHighDensitySwap gives worker nodes swap, and gives virtual machines more memory than
	// they request.
	ProfileHighDensitySwap ProfileName = "HighDensitySwap"
	// ProfileNodeHealthRemediation remediates nodes that stay unhealthy, and starts their virtual
	// machines on other nodes.
	ProfileNodeHealthRemediation ProfileName = "NodeHealthRemediation"
)

// Action decides whether Penstock computes, executes or ignores a plan.
// +enum
type Action string

const (
	// ActionDryRun computes the plan and waits for an approval.
	ActionDryRun Action = "DryRun"
	// ActionApply approves and executes the plan. Setting it needs the verb approve.
	ActionApply Action = "Apply"
	// ActionIgnore does nothing. Applied changes stay, and Penstock does not watch them.
	ActionIgnore Action = "Ignore"
)

// FailurePolicy decides about the remaining items after an item has failed.
// +enum
type FailurePolicy string

const (
	// FailurePolicyAbort leaves the remaining items Pending.
	FailurePolicyAbort FailurePolicy = "Abort"
	// FailurePolicyContinue executes the next item.
	FailurePolicyContinue FailurePolicy = "Continue"
)

// ConflictPolicy decides about fields that belong to other field managers.
// +enum
type ConflictPolicy string

const (
	// OnConflictBlock shows the plan with the fields and their managers, and does not execute it.
	OnConflictBlock ConflictPolicy = "Block"
	// OnConflictTake takes the fields from their managers when the plan is executed.
	OnConflictTake ConflictPolicy = "Take"
)

// ConfigurationPlanSpec is the requested change.
type ConfigurationPlanSpec struct {
	// profile is the profile to configure. It is immutable. Valid values: "LoadAwareRebalancing",
	// "HighDensitySwap", "NodeHealthRemediation", and the name of any
	// ConfigurationProfileDefinition. kubectl get configprofile lists all profiles.
	Profile ProfileName `json:"profile"`
	// action decides about the plan. DryRun computes the plan and waits for an approval. Apply
	// approves and executes it. Ignore does nothing, and Penstock does not watch the targets.
	// Setting Apply, and any change of spec while action is Apply, needs the verb approve. While a
	// plan waits for approval, the write that sets Apply must name the reviewed plan with
	// approvedPlanHash or metadata.resourceVersion.
	// +optional
	// +default="DryRun"
	Action Action `json:"action,omitempty"`
	// failurePolicy decides about the remaining items after an item has failed. Abort leaves them
	// Pending. Continue executes the next item.
	// +optional
	// +default="Abort"
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`
	// onConflict decides about fields that belong to other field managers and would get other
	// values. Block shows the plan with the owners of the fields, and does not execute it. Take
	// takes the fields.
	// +optional
	// +default="Block"
	OnConflict ConflictPolicy `json:"onConflict,omitempty"`
	// options of the profile. Only the options of the plan's profile can be set.
	// +optional
	Options *PlanOptions `json:"options,omitempty"`
	// waitTimeout bounds the time until an item is healthy, such as 2h30m. Without it there is no
	// limit. The time for which a pool is paused does not count.
	// +optional
	WaitTimeout *metav1.Duration `json:"waitTimeout,omitempty"`
	// approvedPlanHash is the status.planHash of the only plan that Penstock may execute. A plan
	// with another hash waits in ReviewRequired.
	// +optional
	ApprovedPlanHash string `json:"approvedPlanHash,omitempty"`
	// expiresAfter bounds the time between the computation and the approval of a plan. After that
	// time the plan expires, and Penstock computes it again. Default: 24h.
	// +optional
	// +default="24h"
	ExpiresAfter *metav1.Duration `json:"expiresAfter,omitempty"`
	// window bounds the execution. No item begins outside the window. An item that has begun is not
	// interrupted. Without a window, an approved plan begins at once. The window is part of the
	// approved plan.
	// +optional
	Window *PlanWindow `json:"window,omitempty"`
	// expires is the end of the approval. No item begins at or after that time. The plan then needs
	// a later time and another approval. Without it, an approval lasts until it is used or
	// withdrawn. It is part of the approved plan.
	// +optional
	Expires *metav1.Time `json:"expires,omitempty"`
	// approvals is the number of users who must approve the plan, 1 to 5. Default: 1. Above 1, a
	// user cannot approve the plan if that user created it, or changed more of spec than action and
	// approvedPlanHash. The number can be raised, but not lowered.
	// +optional
	Approvals int32 `json:"approvals,omitempty"`
	// requires lists other profiles that must be in effect, at most 8. An item of this plan begins
	// only while each of these profiles has a Completed plan. A plan that restores the state before
	// a run ignores the list. It is part of the approved plan.
	// +optional
	// +listType=set
	Requires []ProfileName `json:"requires,omitempty"`
	// restoreRun is the number of a run. The plan then restores the fields that this run set, to
	// their values before the run, and does not apply the profile. The subresource rollback sets
	// it. Penstock clears it when it computes the plan again after the restore, and when options
	// change or action is Ignore.
	// +optional
	RestoreRun int64 `json:"restoreRun,omitempty"`
}

// PlanWindow is a recurring period.
type PlanWindow struct {
	// schedule is the start of the window in cron format: minute, hour, day of the month, month and
	// day of the week, such as "0 22 * * Sat". The forms @yearly, @monthly, @weekly, @daily and
	// @hourly are also valid.
	Schedule string `json:"schedule"`
	// timeZone of the schedule: a name of the IANA database, such as Europe/Berlin. Default: UTC.
	// +optional
	// +default="UTC"
	TimeZone string `json:"timeZone,omitempty"`
	// duration for which the window is open, 1m to 744h, such as 6h. Windows that touch or overlap
	// are one window.
	Duration metav1.Duration `json:"duration"`
}

// PlanOptions are the options of the profiles, one field for each built-in profile.
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
	// values are the options of a user-defined profile. Its definition describes them: kubectl get
	// configprofile NAME -o yaml.
	// +optional
	Values *JSONObject `json:"values,omitempty"`
}

// NodeHealthRemediationOptions are the options of the profile NodeHealthRemediation.
type NodeHealthRemediationOptions struct {
	// remediator is the operator that remediates a node. SelfNode makes the node reboot itself.
	// FenceAgents power-cycles the node. Automatic means FenceAgents if a template for it exists,
	// and otherwise SelfNode. Default: Automatic.
	// +optional
	Remediator Remediator `json:"remediator,omitempty"`
	// template is the SelfNodeRemediationTemplate or FenceAgentsRemediationTemplate to use. Without
	// it, Penstock uses the only existing template, or the template that Self Node Remediation
	// created.
	// +optional
	Template *TemplateReference `json:"template,omitempty"`
	// nodeSelector selects the worker nodes to check, by their labels. It never selects control
	// plane nodes. Without it, all worker nodes are checked.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// minHealthy is the number of these nodes that must be healthy before a node is remediated. It
	// is a number, or a percentage such as 51%, which is rounded up. Default: 51%.
	// +optional
	MinHealthy *intstr.IntOrString `json:"minHealthy,omitempty"`
	// unhealthyConditions are conditions of a node. A node is unhealthy if one of them lasts for
	// its duration. At most 10. Default: Ready is False or Unknown for 5m.
	// +optional
	// +listType=atomic
	UnhealthyConditions []UnhealthyCondition `json:"unhealthyConditions,omitempty"`
	// includeControlPlane also checks and remediates control plane nodes, one at a time. Default:
	// false.
	// +optional
	IncludeControlPlane *bool `json:"includeControlPlane,omitempty"`
}

// Remediator is the operator that remediates a node.
// +enum
type Remediator string

const (
	// RemediatorAutomatic means FenceAgents if a template for it exists, and otherwise SelfNode.
	RemediatorAutomatic Remediator = "Automatic"
	// RemediatorSelfNode makes nodes reboot themselves.
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

// UnhealthyCondition is a condition of a node that makes it unhealthy if it lasts.
type UnhealthyCondition struct {
	// type of the condition, such as Ready.
	Type string `json:"type"`
	// status of the condition: True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`
	// duration that the condition must last, 1s to 24h, such as 5m.
	Duration metav1.Duration `json:"duration"`
}

// HighDensitySwapOptions are the options of the profile HighDensitySwap.
type HighDensitySwapOptions struct {
	// enableSwap gives worker nodes swap. This reboots them. Default: true.
	// +optional
	EnableSwap *bool `json:"enableSwap,omitempty"`
	// swapSource is the place of the swap of worker nodes: Partition is an existing partition, File
	// is a file that Penstock creates. Default: Partition.
	// +optional
	SwapSource SwapSource `json:"swapSource,omitempty"`
	// partitionLabel is the label of the partition in the partition table. The partition must be
	// formatted as swap; otherwise it is not used. Default: CNV_SWAP.
	// +optional
	PartitionLabel string `json:"partitionLabel,omitempty"`
	// fileSizeMiB is the size of the file in MiB, 1024 to 1048576. It is required for swapSource
	// File. A node gets no swap if the file would leave less than 20 percent of the file system
	// free.
	// +optional
	FileSizeMiB *int32 `json:"fileSizeMiB,omitempty"`
	// memoryToRequestRatio is the memory of virtual machines in percent of their memory requests,
	// 100 to 300. A value above 120 needs enableSwap. Default: 150, and 100 without swap.
	// +optional
	MemoryToRequestRatio *int32 `json:"memoryToRequestRatio,omitempty"`
	// enableKSM makes nodes merge identical memory pages of virtual machines. Default: true.
	// +optional
	EnableKSM *bool `json:"enableKSM,omitempty"`
}

// SwapSource is the place of the swap of nodes.
// +enum
type SwapSource string

const (
	// SwapSourcePartition is an existing partition.
	SwapSourcePartition SwapSource = "Partition"
	// SwapSourceFile is a file that Penstock creates.
	SwapSourceFile SwapSource = "File"
)

// LoadAwareRebalancingOptions are the options of the profile LoadAwareRebalancing.
type LoadAwareRebalancingOptions struct {
	// enablePSIMetrics makes worker nodes report pressure (kernel argument psi=1). Nodes without
	// this argument reboot. Default: true.
	// +optional
	EnablePSIMetrics *bool `json:"enablePSIMetrics,omitempty"`
	// deschedulingIntervalSeconds is the time between runs of the descheduler, in seconds, 60 to
	// 86400. Default: 60.
	// +optional
	DeschedulingIntervalSeconds *int32 `json:"deschedulingIntervalSeconds,omitempty"`
	// mode of the descheduler. Automatic evicts Pods. Predictive only reports the Pods that it
	// would evict. Default: Automatic.
	// +optional
	Mode DeschedulerMode `json:"mode,omitempty"`
	// deviationThresholds is the allowed deviation of a node from the mean: Low, Medium, High,
	// AsymmetricLow, AsymmetricMedium or AsymmetricHigh. Default: AsymmetricLow.
	// +optional
	DeviationThresholds DeviationThresholds `json:"deviationThresholds,omitempty"`
	// evictionLimitTotal bounds concurrent evictions in the cluster, 1 to 1000. Default: the limit
	// for live migrations in HyperConverged.
	// +optional
	EvictionLimitTotal *int32 `json:"evictionLimitTotal,omitempty"`
	// evictionLimitNode bounds concurrent evictions from a node, 1 to 100. Default: the limit for
	// live migrations in HyperConverged.
	// +optional
	EvictionLimitNode *int32 `json:"evictionLimitNode,omitempty"`
}

// DeschedulerMode decides whether the descheduler evicts Pods.
// +enum
type DeschedulerMode string

const (
	// DeschedulerAutomatic evicts Pods.
	DeschedulerAutomatic DeschedulerMode = "Automatic"
	// DeschedulerPredictive only reports the Pods that it would evict.
	DeschedulerPredictive DeschedulerMode = "Predictive"
)

// DeviationThresholds is the allowed deviation of a node from the mean.
// +enum
type DeviationThresholds string

const (
	// DeviationLow allows 10 percent below and above the mean.
	DeviationLow DeviationThresholds = "Low"
	// DeviationMedium allows 20 percent below and above the mean.
	DeviationMedium DeviationThresholds = "Medium"
	// DeviationHigh allows 30 percent below and above the mean.
	DeviationHigh DeviationThresholds = "High"
	// DeviationAsymmetricLow allows 0 percent below and 10 percent above the mean.
	DeviationAsymmetricLow DeviationThresholds = "AsymmetricLow"
	// DeviationAsymmetricMedium allows 0 percent below and 20 percent above the mean.
	DeviationAsymmetricMedium DeviationThresholds = "AsymmetricMedium"
	// DeviationAsymmetricHigh allows 0 percent below and 30 percent above the mean.
	DeviationAsymmetricHigh DeviationThresholds = "AsymmetricHigh"
)

// Phase is the state of a plan.
// +enum
type Phase string

const (
	// PhasePending means that Penstock has not begun to compute the plan.
	PhasePending Phase = "Pending"
	// PhaseDrafting means that Penstock computes the plan.
	PhaseDrafting Phase = "Drafting"
	// PhasePrerequisiteFailed means that the cluster lacks something that the profile needs.
	PhasePrerequisiteFailed Phase = "PrerequisiteFailed"
	// PhaseReviewRequired means that the computed plan waits for an approval.
	PhaseReviewRequired Phase = "ReviewRequired"
	// PhaseScheduled means that the approved plan waits for its window, or for a required profile.
	PhaseScheduled Phase = "Scheduled"
	// PhaseInProgress means that Penstock executes the plan.
	PhaseInProgress Phase = "InProgress"
	// PhaseCompleted means that the plan is in effect.
	PhaseCompleted Phase = "Completed"
	// PhaseCompletedWithErrors means that the plan was executed and some items failed.
	PhaseCompletedWithErrors Phase = "CompletedWithErrors"
	// PhaseFailed means that the computation failed, or that the execution stopped before its end.
	PhaseFailed Phase = "Failed"
	// PhaseDrifted means that the plan was in effect until another writer changed a target.
	PhaseDrifted Phase = "Drifted"
	// PhaseExpired means that the plan waited too long for an approval.
	PhaseExpired Phase = "Expired"
	// PhaseIgnored means that Penstock ignores the plan.
	PhaseIgnored Phase = "Ignored"
)

// Types of a plan's conditions. Their reasons are in docs/reference/reasons.md.
const (
	// ConditionPrerequisitesMet reports whether the cluster has everything that the profile needs.
	ConditionPrerequisitesMet = "PrerequisitesMet"
	// ConditionProfileActive reports whether the targets match the plan.
	ConditionProfileActive = "ProfileActive"
	// ConditionUpgradeAvailable reports that the plan would change with the present version of
	// Penstock or the present facts of the cluster.
	ConditionUpgradeAvailable = "UpgradeAvailable"
	// ConditionDrifted reports that another writer changed a target.
	ConditionDrifted = "Drifted"
	// ConditionHealthy reports whether the operators of the targets report no problem, once the
	// plan is in effect.
	ConditionHealthy = "Healthy"
	// ConditionReady reports that the plan needs no action.
	ConditionReady = "Ready"
	// ConditionStalled reports that a person must act.
	ConditionStalled = "Stalled"
)

// ConfigurationPlanStatus is the computed plan and its progress.
type ConfigurationPlanStatus struct {
	// phase is the state of the plan.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// observedGeneration is the generation of spec that status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// planHash identifies the plan. It covers the desired state of all items, the targets as
	// Penstock found them, the impact, and spec.window, spec.expires, spec.approvals and
	// spec.requires.
	// +optional
	PlanHash string `json:"planHash,omitempty"`
	// sourceSnapshotHash covers the targets as Penstock found them.
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
	// manifests is the name of the stored desired state of the items. The subresource manifests
	// returns it.
	// +optional
	Manifests string `json:"manifests,omitempty"`
	// captured is the name of the stored copy of the targets as Penstock found them.
	// +optional
	Captured string `json:"captured,omitempty"`
	// impactSeverity is the highest severity of the items.
	// +optional
	ImpactSeverity ImpactSeverity `json:"impactSeverity,omitempty"`
	// diff has the changes of all items, bounded in size: the fields, and the values that the plan
	// sets and the targets do not have.
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
	// requestedBy names every user who created the plan, or changed more of spec than action and
	// approvedPlanHash, at most 16. The server writes it. When the list is full, the server refuses
	// such a change by another user.
	// +optional
	// +listType=atomic
	RequestedBy []string `json:"requestedBy,omitempty"`
	// window is the open or next window of the plan. It is set while the plan waits or is executed,
	// if spec.window is set.
	// +optional
	Window *PlanWindowStatus `json:"window,omitempty"`
	// run is the number of the current or last execution; 0 before the first execution.
	// +optional
	Run int64 `json:"run,omitempty"`
	// message describes the next step to a person.
	// +optional
	Message string `json:"message,omitempty"`
	// conditions summarize the plan.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// definition is the ConfigurationProfileDefinition that the plan was computed from. Only plans
	// of user-defined profiles have it.
	// +optional
	Definition *PlanDefinition `json:"definition,omitempty"`
}

// PlanWindowStatus is a period in which items of a plan may begin.
type PlanWindowStatus struct {
	// opensAt is the start of the window.
	OpensAt metav1.Time `json:"opensAt"`
	// closesAt is the end of the window. No item begins at or after that time. If windows follow
	// one another without a gap, the window is open at least until this time.
	ClosesAt metav1.Time `json:"closesAt"`
	// local is opensAt in the time zone of spec.window, as text.
	Local string `json:"local"`
}

// ImpactSeverity is the disturbance that an item causes.
// +enum
type ImpactSeverity string

const (
	// ImpactNone means that the item changes nothing.
	ImpactNone ImpactSeverity = "None"
	// ImpactLow means that the item changes configuration and disturbs no workload.
	ImpactLow ImpactSeverity = "Low"
	// ImpactMedium means that the item moves or restarts workloads.
	ImpactMedium ImpactSeverity = "Medium"
	// ImpactHigh means that the item reboots nodes.
	ImpactHigh ImpactSeverity = "High"
)

// ItemState is the progress of an item.
// +enum
type ItemState string

const (
	// ItemPending means that the item has not begun.
	ItemPending ItemState = "Pending"
	// ItemInProgress means that Penstock applies the item, or waits for its target.
	ItemInProgress ItemState = "InProgress"
	// ItemCompleted means that the item is applied and its target is healthy.
	ItemCompleted ItemState = "Completed"
	// ItemFailed means that the item was refused, did not become healthy in time, or is stale.
	ItemFailed ItemState = "Failed"
	// ItemSkipped means that the item needs no change.
	ItemSkipped ItemState = "Skipped"
)

// PlanItem is one step of a plan: the desired state of one target.
type PlanItem struct {
	// name of the item.
	Name string `json:"name"`
	// targetRef is the object to configure.
	TargetRef TargetRef `json:"targetRef"`
	// action is the action on the target: Create, Update, Delete or None.
	// +optional
	Action ItemAction `json:"action,omitempty"`
	// impactSeverity is the disturbance that the item causes.
	// +optional
	ImpactSeverity ImpactSeverity `json:"impactSeverity,omitempty"`
	// impactReason is the reason of impactSeverity, for a person.
	// +optional
	ImpactReason string `json:"impactReason,omitempty"`
	// blastRadius has the nodes that the item affects.
	// +optional
	BlastRadius *BlastRadius `json:"blastRadius,omitempty"`
	// digest of the desired state.
	// +optional
	Digest string `json:"digest,omitempty"`
	// fingerprint of the target as Penstock found it; "absent" if the target did not exist.
	// +optional
	Fingerprint string `json:"fingerprint,omitempty"`
	// diff has the change, bounded in size: the fields, and the values that the plan sets and the
	// target does not have. The subresource diff returns the whole change.
	// +optional
	Diff string `json:"diff,omitempty"`
	// takes are fields of other field managers that the item would take.
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
	// message names what the item waits for, or why it failed.
	// +optional
	Message string `json:"message,omitempty"`
	// startedAt is the time at which the item began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// applied is true if the run has written the target.
	// +optional
	Applied bool `json:"applied,omitempty"`
	// appliedAt is the time at which the run wrote the target. Older conditions of the target do
	// not count.
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`
	// pausedSeconds is the time for which the objects that the item waits for were paused, in
	// seconds. It does not count for waitTimeout.
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
	// ItemCreate creates a target that does not exist.
	ItemCreate ItemAction = "Create"
	// ItemUpdate changes a target.
	ItemUpdate ItemAction = "Update"
	// ItemDelete deletes a target that the rolled-back run created.
	ItemDelete ItemAction = "Delete"
	// ItemNone leaves a target that already has the desired state.
	ItemNone ItemAction = "None"
)

// TargetRef names an object.
type TargetRef struct {
	// apiVersion of the object.
	APIVersion string `json:"apiVersion"`
	// kind of the object.
	Kind string `json:"kind"`
	// namespace of the object; empty for cluster-scoped objects.
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
	// reboot is true if the nodes reboot.
	// +optional
	Reboot bool `json:"reboot,omitempty"`
	// waves is the number of groups of nodes that get the change one after another, by the
	// maxUnavailable of the pools.
	// +optional
	Waves int64 `json:"waves,omitempty"`
}

// TakenFields are fields that a field manager owns and would lose.
type TakenFields struct {
	// manager that owns the fields.
	Manager string `json:"manager"`
	// fields of the manager, such as ".spec.mode".
	// +listType=atomic
	Fields []string `json:"fields"`
	// reclaimed fields were set by a run of the plan and changed by their manager later. Taking
	// them back does not need onConflict: Take.
	// +optional
	Reclaimed bool `json:"reclaimed,omitempty"`
}

// ApprovalMode is the kind of an approval.
// +enum
type ApprovalMode string

const (
	// ApprovalExplicit approves a plan that was already computed, so that the user could read it.
	ApprovalExplicit ApprovalMode = "Explicit"
	// ApprovalStanding approves the first computed plan, because a user set Apply before there was
	// a plan.
	ApprovalStanding ApprovalMode = "Standing"
)

// PlanApproval names the approved hash and the users who approved it. The server writes it.
type PlanApproval struct {
	// username of the approver.
	Username string `json:"username"`
	// uid of the approver.
	// +optional
	UID string `json:"uid,omitempty"`
	// groups of the approver at the time of the approval.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// extra is additional information from the authenticator, such as the scopes of a
	// token.
	// +optional
	Extra map[string]ExtraValue `json:"extra,omitempty"`
	// time of the approval.
	Time metav1.Time `json:"time"`
	// planHash is the hash of the approved plan. For a standing approval, it is empty until the
	// first plan is computed.
	// +optional
	PlanHash string `json:"planHash,omitempty"`
	// comment of the approver.
	// +optional
	Comment string `json:"comment,omitempty"`
	// mode is Explicit or Standing.
	Mode ApprovalMode `json:"mode"`
	// run is the execution that used the approval. An approval can be used once.
	// +optional
	Run int64 `json:"run,omitempty"`
	// others are the further approvers of the same plan, if spec.approvals is above 1.
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
	// groups of the approver at the time of the approval.
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

// ExtraValue is the list of values of one extra key.
type ExtraValue []string
