package hco

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationPlan is a change to the configuration of components that other operators own.
// Penstock computes the plan and shows it. Once users have approved it, Penstock executes it, and
// then watches the targets.
type ConfigurationPlan struct {
	metav1.TypeMeta
	// ObjectMeta is the standard object metadata.
	metav1.ObjectMeta
	// Spec is the request.
	Spec ConfigurationPlanSpec
	// Status is the computed plan and its progress.
	Status ConfigurationPlanStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationPlanList is a list of plans.
type ConfigurationPlanList struct {
	metav1.TypeMeta
	// ListMeta is the standard list metadata.
	metav1.ListMeta
	// Items are the plans.
	Items []ConfigurationPlan
}

// ProfileName names a profile.
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
type FailurePolicy string

const (
	// FailurePolicyAbort leaves the remaining items Pending.
	FailurePolicyAbort FailurePolicy = "Abort"
	// FailurePolicyContinue executes the next item.
	FailurePolicyContinue FailurePolicy = "Continue"
)

// ConflictPolicy decides about fields that belong to other field managers.
type ConflictPolicy string

const (
	// OnConflictBlock shows the plan with the fields and their managers, and does not execute it.
	OnConflictBlock ConflictPolicy = "Block"
	// OnConflictTake takes the fields from their managers when the plan is executed.
	OnConflictTake ConflictPolicy = "Take"
)

// ConfigurationPlanSpec is the requested change.
type ConfigurationPlanSpec struct {
	// Profile is the profile to configure. It is immutable. Valid values: "LoadAwareRebalancing",
	// "HighDensitySwap", "NodeHealthRemediation", and the name of any
	// ConfigurationProfileDefinition. kubectl get configprofile lists all profiles.
	Profile ProfileName
	// Action decides about the plan. DryRun computes the plan and waits for an approval. Apply
	// approves and executes it. Ignore does nothing, and Penstock does not watch the targets.
	// Setting Apply, and any change of spec while action is Apply, needs the verb approve. While a
	// plan waits for approval, the write that sets Apply must name the reviewed plan with
	// approvedPlanHash or metadata.resourceVersion.
	Action Action
	// FailurePolicy decides about the remaining items after an item has failed. Abort leaves them
	// Pending. Continue executes the next item.
	FailurePolicy FailurePolicy
	// OnConflict decides about fields that belong to other field managers and would get other
	// values. Block shows the plan with the owners of the fields, and does not execute it. Take
	// takes the fields.
	OnConflict ConflictPolicy
	// Options of the profile. Only the options of the plan's profile can be set.
	Options *PlanOptions
	// WaitTimeout bounds the time until an item is healthy, such as 2h30m. Without it there is no
	// limit. The time for which a pool is paused does not count.
	WaitTimeout *metav1.Duration
	// ApprovedPlanHash is the status.planHash of the only plan that Penstock may execute. A plan
	// with another hash waits in ReviewRequired.
	ApprovedPlanHash string
	// ExpiresAfter bounds the time between the computation and the approval of a plan. After that
	// time the plan expires, and Penstock computes it again. Default: 24h.
	ExpiresAfter *metav1.Duration
	// Window bounds the execution. No item begins outside the window. An item that has begun is not
	// interrupted. Without a window, an approved plan begins at once. The window is part of the
	// approved plan.
	Window *PlanWindow
	// Expires is the end of the approval. No item begins at or after that time. The plan then needs
	// a later time and another approval. Without it, an approval lasts until it is used or
	// withdrawn. It is part of the approved plan.
	Expires *metav1.Time
	// Approvals is the number of users who must approve the plan, 1 to 5. Default: 1. Above 1, a
	// user cannot approve the plan if that user created it, or changed more of spec than action and
	// approvedPlanHash. The number can be raised, but not lowered.
	Approvals int32
	// Requires lists other profiles that must be in effect, at most 8. An item of this plan begins
	// only while each of these profiles has a Completed plan. A plan that restores the state before
	// a run ignores the list. It is part of the approved plan.
	Requires []ProfileName
	// RestoreRun is the number of a run. The plan then restores the fields that this run set, to
	// their values before the run, and does not apply the profile. The subresource rollback sets
	// it. Penstock clears it when it computes the plan again after the restore, and when options
	// change or action is Ignore.
	RestoreRun int64
}

// PlanWindow is a recurring period.
type PlanWindow struct {
	// Schedule is the start of the window in cron format: minute, hour, day of the month, month and
	// day of the week, such as "0 22 * * Sat". The forms @yearly, @monthly, @weekly, @daily and
	// @hourly are also valid.
	Schedule string
	// TimeZone of the schedule: a name of the IANA database, such as Europe/Berlin. Default: UTC.
	TimeZone string
	// Duration for which the window is open, 1m to 744h, such as 6h. Windows that touch or overlap
	// are one window.
	Duration metav1.Duration
}

// PlanOptions are the options of the profiles, one field for each built-in profile.
type PlanOptions struct {
	// LoadAwareRebalancing are the options of the profile LoadAwareRebalancing.
	LoadAwareRebalancing *LoadAwareRebalancingOptions
	// HighDensitySwap are the options of the profile HighDensitySwap.
	HighDensitySwap *HighDensitySwapOptions
	// NodeHealthRemediation are the options of the profile NodeHealthRemediation.
	NodeHealthRemediation *NodeHealthRemediationOptions
	// Values are the options of a user-defined profile. Its definition describes them: kubectl get
	// configprofile NAME -o yaml.
	Values *JSONObject
}

// NodeHealthRemediationOptions are the options of the profile NodeHealthRemediation.
type NodeHealthRemediationOptions struct {
	// Remediator is the operator that remediates a node. SelfNode makes the node reboot itself.
	// FenceAgents power-cycles the node. Automatic means FenceAgents if a template for it exists,
	// and otherwise SelfNode. Default: Automatic.
	Remediator Remediator
	// Template is the SelfNodeRemediationTemplate or FenceAgentsRemediationTemplate to use. Without
	// it, Penstock uses the only existing template, or the template that Self Node Remediation
	// created.
	Template *TemplateReference
	// NodeSelector selects the worker nodes to check, by their labels. It never selects control
	// plane nodes. Without it, all worker nodes are checked.
	NodeSelector map[string]string
	// MinHealthy is the number of these nodes that must be healthy before a node is remediated. It
	// is a number, or a percentage such as 51%, which is rounded up. Default: 51%.
	MinHealthy *intstr.IntOrString
	// UnhealthyConditions are conditions of a node. A node is unhealthy if one of them lasts for
	// its duration. At most 10. Default: Ready is False or Unknown for 5m.
	UnhealthyConditions []UnhealthyCondition
	// IncludeControlPlane also checks and remediates control plane nodes, one at a time. Default:
	// false.
	IncludeControlPlane *bool
}

// Remediator is the operator that remediates a node.
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
	// Namespace of the template.
	Namespace string
	// Name of the template.
	Name string
}

// UnhealthyCondition is a condition of a node that makes it unhealthy if it lasts.
type UnhealthyCondition struct {
	// Type of the condition, such as Ready.
	Type string
	// Status of the condition: True, False or Unknown.
	Status metav1.ConditionStatus
	// Duration that the condition must last, 1s to 24h, such as 5m.
	Duration metav1.Duration
}

// HighDensitySwapOptions are the options of the profile HighDensitySwap.
type HighDensitySwapOptions struct {
	// EnableSwap gives worker nodes swap. This reboots them. Default: true.
	EnableSwap *bool
	// SwapSource is the place of the swap of worker nodes: Partition is an existing partition, File
	// is a file that Penstock creates. Default: Partition.
	SwapSource SwapSource
	// PartitionLabel is the label of the partition in the partition table. The partition must be
	// formatted as swap; otherwise it is not used. Default: CNV_SWAP.
	PartitionLabel string
	// FileSizeMiB is the size of the file in MiB, 1024 to 1048576. It is required for swapSource
	// File. A node gets no swap if the file would leave less than 20 percent of the file system
	// free.
	FileSizeMiB *int32
	// MemoryToRequestRatio is the memory of virtual machines in percent of their memory requests,
	// 100 to 300. A value above 120 needs enableSwap. Default: 150, and 100 without swap.
	MemoryToRequestRatio *int32
	// EnableKSM makes nodes merge identical memory pages of virtual machines. Default: true.
	EnableKSM *bool
}

// SwapSource is the place of the swap of nodes.
type SwapSource string

const (
	// SwapSourcePartition is an existing partition.
	SwapSourcePartition SwapSource = "Partition"
	// SwapSourceFile is a file that Penstock creates.
	SwapSourceFile SwapSource = "File"
)

// LoadAwareRebalancingOptions are the options of the profile LoadAwareRebalancing.
type LoadAwareRebalancingOptions struct {
	// EnablePSIMetrics makes worker nodes report pressure (kernel argument psi=1). Nodes without
	// this argument reboot. Default: true.
	EnablePSIMetrics *bool
	// DeschedulingIntervalSeconds is the time between runs of the descheduler, in seconds, 60 to
	// 86400. Default: 60.
	DeschedulingIntervalSeconds *int32
	// Mode of the descheduler. Automatic evicts Pods. Predictive only reports the Pods that it
	// would evict. Default: Automatic.
	Mode DeschedulerMode
	// DeviationThresholds is the allowed deviation of a node from the mean: Low, Medium, High,
	// AsymmetricLow, AsymmetricMedium or AsymmetricHigh. Default: AsymmetricLow.
	DeviationThresholds DeviationThresholds
	// EvictionLimitTotal bounds concurrent evictions in the cluster, 1 to 1000. Default: the limit
	// for live migrations in HyperConverged.
	EvictionLimitTotal *int32
	// EvictionLimitNode bounds concurrent evictions from a node, 1 to 100. Default: the limit for
	// live migrations in HyperConverged.
	EvictionLimitNode *int32
}

// DeschedulerMode decides whether the descheduler evicts Pods.
type DeschedulerMode string

const (
	// DeschedulerAutomatic evicts Pods.
	DeschedulerAutomatic DeschedulerMode = "Automatic"
	// DeschedulerPredictive only reports the Pods that it would evict.
	DeschedulerPredictive DeschedulerMode = "Predictive"
)

// DeviationThresholds is the allowed deviation of a node from the mean.
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

// ConfigurationPlanStatus is the computed plan and its progress.
type ConfigurationPlanStatus struct {
	// Phase is the state of the plan.
	Phase Phase
	// ObservedGeneration is the generation of spec that status describes.
	ObservedGeneration int64
	// PlanHash identifies the plan. It covers the desired state of all items, the targets as
	// Penstock found them, the impact, and spec.window, spec.expires, spec.approvals and
	// spec.requires.
	PlanHash string
	// SourceSnapshotHash covers the targets as Penstock found them.
	SourceSnapshotHash string
	// InputsHash covers the parts of spec that the plan was computed from.
	InputsHash string
	// OperatorVersion is the version of Penstock that computed the plan.
	OperatorVersion string
	// DraftedAt is the time at which the plan was computed.
	DraftedAt *metav1.Time
	// Manifests is the name of the stored desired state of the items. The subresource manifests
	// returns it.
	Manifests string
	// Captured is the name of the stored copy of the targets as Penstock found them.
	Captured string
	// ImpactSeverity is the highest severity of the items.
	ImpactSeverity ImpactSeverity
	// Diff has the changes of all items, bounded in size: the fields, and the values that the plan
	// sets and the targets do not have.
	Diff string
	// Items are the steps of the plan, in their order.
	Items []PlanItem
	// Approval names the approved hash and the users who approved it. The server writes it.
	Approval *PlanApproval
	// RequestedBy names every user who created the plan, or changed more of spec than action and
	// approvedPlanHash, at most 16. The server writes it. When the list is full, the server refuses
	// such a change by another user.
	RequestedBy []string
	// Window is the open or next window of the plan. It is set while the plan waits or is executed,
	// if spec.window is set.
	Window *PlanWindowStatus
	// Run is the number of the current or last execution; 0 before the first execution.
	Run int64
	// Message describes the next step to a person.
	Message string
	// Conditions summarize the plan.
	Conditions []metav1.Condition
	// Definition is the ConfigurationProfileDefinition that the plan was computed from. Only plans
	// of user-defined profiles have it.
	Definition *PlanDefinition
}

// PlanWindowStatus is a period in which items of a plan may begin.
type PlanWindowStatus struct {
	// OpensAt is the start of the window.
	OpensAt metav1.Time
	// ClosesAt is the end of the window. No item begins at or after that time. If windows follow
	// one another without a gap, the window is open at least until this time.
	ClosesAt metav1.Time
	// Local is opensAt in the time zone of spec.window, as text.
	Local string
}

// ImpactSeverity is the disturbance that an item causes.
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
	// Name of the item.
	Name string
	// TargetRef is the object to configure.
	TargetRef TargetRef
	// Action is the action on the target: Create, Update, Delete or None.
	Action ItemAction
	// ImpactSeverity is the disturbance that the item causes.
	ImpactSeverity ImpactSeverity
	// ImpactReason is the reason of impactSeverity, for a person.
	ImpactReason string
	// BlastRadius has the nodes that the item affects.
	BlastRadius *BlastRadius
	// Digest of the desired state.
	Digest string
	// Fingerprint of the target as Penstock found it; "absent" if the target did not exist.
	Fingerprint string
	// Diff has the change, bounded in size: the fields, and the values that the plan sets and the
	// target does not have. The subresource diff returns the whole change.
	Diff string
	// Takes are fields of other field managers that the item would take.
	Takes []TakenFields
	// Notes are remarks for reviewers.
	Notes []string
	// State is the progress of the item.
	State ItemState
	// Message names what the item waits for, or why it failed.
	Message string
	// StartedAt is the time at which the item began.
	StartedAt *metav1.Time
	// Applied is true if the run has written the target.
	Applied bool
	// AppliedAt is the time at which the run wrote the target. Older conditions of the target do
	// not count.
	AppliedAt *metav1.Time
	// PausedSeconds is the time for which the objects that the item waits for were paused, in
	// seconds. It does not count for waitTimeout.
	PausedSeconds int64
	// LastTransitionTime is the time of the last change of state.
	LastTransitionTime *metav1.Time
}

// ItemAction is the action on a target.
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
	// APIVersion of the object.
	APIVersion string
	// Kind of the object.
	Kind string
	// Namespace of the object; empty for cluster-scoped objects.
	Namespace string
	// Name of the object.
	Name string
}

// BlastRadius has the nodes that an item affects.
type BlastRadius struct {
	// Pools are the MachineConfigPools whose nodes get the change.
	Pools []string
	// Nodes is the number of nodes that get the change.
	Nodes int64
	// Reboot is true if the nodes reboot.
	Reboot bool
	// Waves is the number of groups of nodes that get the change one after another, by the
	// maxUnavailable of the pools.
	Waves int64
}

// TakenFields are fields that a field manager owns and would lose.
type TakenFields struct {
	// Manager that owns the fields.
	Manager string
	// Fields of the manager, such as ".spec.mode".
	Fields []string
	// Reclaimed fields were set by a run of the plan and changed by their manager later. Taking
	// them back does not need onConflict: Take.
	Reclaimed bool
}

// ApprovalMode is the kind of an approval.
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
	// Username of the approver.
	Username string
	// UID of the approver.
	UID string
	// Groups of the approver at the time of the approval.
	Groups []string
	// Extra is additional information from the authenticator, such as the scopes of a token.
	Extra map[string]ExtraValue
	// Time of the approval.
	Time metav1.Time
	// PlanHash is the hash of the approved plan. For a standing approval, it is empty until the
	// first plan is computed.
	PlanHash string
	// Comment of the approver.
	Comment string
	// Mode is Explicit or Standing.
	Mode ApprovalMode
	// Run is the execution that used the approval. An approval can be used once.
	Run int64
	// Others are the further approvers of the same plan, if spec.approvals is above 1.
	Others []PlanApprover
}

// PlanApprover is a further user who approved a plan.
type PlanApprover struct {
	// Username of the approver.
	Username string
	// UID of the approver.
	UID string
	// Groups of the approver at the time of the approval.
	Groups []string
	// Extra is additional information from the authenticator, such as the scopes of a token.
	Extra map[string]ExtraValue
	// Time of the approval.
	Time metav1.Time
	// Comment of the approver.
	Comment string
}

// ExtraValue is the list of values of one extra key.
type ExtraValue []string
