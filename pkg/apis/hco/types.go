package hco

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConfigurationPlan is a change to the configuration of components that belong to
// others. It is computed, shown, approved and executed, in this order, and watched
// afterwards.
type ConfigurationPlan struct {
	metav1.TypeMeta
	// ObjectMeta is the standard object metadata.
	metav1.ObjectMeta
	// Spec is the request.
	Spec ConfigurationPlanSpec
	// Status has the plan and the state of its execution.
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

// Action decides about a plan.
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
type FailurePolicy string

const (
	// FailurePolicyAbort leaves the rest Pending.
	FailurePolicyAbort FailurePolicy = "Abort"
	// FailurePolicyContinue goes on with the next item.
	FailurePolicyContinue FailurePolicy = "Continue"
)

// ConflictPolicy decides about fields that belong to other field managers.
type ConflictPolicy string

const (
	// OnConflictBlock has the plan wait, which names the fields and who has them.
	OnConflictBlock ConflictPolicy = "Block"
	// OnConflictTake takes the fields when the plan is executed.
	OnConflictTake ConflictPolicy = "Take"
)

// ConfigurationPlanSpec is the request.
type ConfigurationPlanSpec struct {
	// Profile is the profile to configure. It is immutable. Valid values: "LoadAwareRebalancing",
	// "HighDensitySwap", "NodeHealthRemediation", and the name of any
	// ConfigurationProfileDefinition; kubectl get configprofile lists all that there are.
	Profile ProfileName
	// Action decides about the plan: DryRun computes it and waits for an approval, Apply approves
	// and executes it, Ignore does nothing and watches nothing. Setting Apply, and any change of
	// spec while it is Apply, needs the verb approve. While a plan waits, the write that sets
	// Apply says which one was reviewed: by approvedPlanHash, or by metadata.resourceVersion.
	Action Action
	// FailurePolicy decides about the other items after one has failed: Abort leaves the rest
	// Pending, Continue goes on with the next.
	FailurePolicy FailurePolicy
	// OnConflict decides about fields that belong to other field managers and would get other
	// values. Block shows the plan with the owners of the fields, and executes nothing. Take
	// takes the fields.
	OnConflict ConflictPolicy
	// Options of the profile. Only the member of the plan's own profile may be set.
	Options *PlanOptions
	// WaitTimeout bounds the time until an item is healthy, such as 2h30m. Without it there is no
	// limit. The time that a pool is paused does not count.
	WaitTimeout *metav1.Duration
	// ApprovedPlanHash is the only plan that may be executed, as status.planHash
	// names it. Any other waits in ReviewRequired.
	ApprovedPlanHash string
	// ExpiresAfter bounds the time between the computation and the approval of a plan. After it
	// the plan expires, and is computed again. Default: 24h.
	ExpiresAfter *metav1.Duration
	// Window bounds the execution: no item begins outside the window, and an item that has begun
	// is not interrupted. It is part of the plan that is approved. Without it an approved plan
	// begins at once.
	Window *PlanWindow
	// Expires is until when the plan may be executed: no item begins at or after that
	// time, and the plan has to be approved again, with a later time. It is part of the
	// plan that is approved. Without it an approval lasts until it is used or withdrawn.
	Expires *metav1.Time
	// Approvals is the number of people who must approve the plan, 1 to 5. Default: 1. Above 1, a
	// user who created the plan, or changed more of spec than action and approvedPlanHash, is
	// none of them. It can be raised, and not lowered.
	Approvals int32
	// Requires are other profiles that have to be in effect: an item of this plan begins
	// only while a plan of each of them is Completed. At most 8. It is part of the plan
	// that is approved. A plan that restores the state before a run goes without it.
	Requires []ProfileName
	// RestoreRun makes the plan restore what the targets had before that run, where
	// the run set it, instead of what the profile says. The subresource rollback
	// sets it.
	RestoreRun int64
}

// PlanWindow is a recurring time.
type PlanWindow struct {
	// Schedule has the times at which the window opens, in the format of cron: minute, hour, day
	// of the month, month and day of the week, such as "0 22 * * Sat"; or @yearly, @monthly,
	// @weekly, @daily or @hourly.
	Schedule string
	// TimeZone is the time zone of the schedule: a name of the IANA database, such as
	// Europe/Berlin. Default: UTC.
	TimeZone string
	// Duration is the time for which the window is open, 1m to 744h, such as 6h. Windows that
	// touch or overlap are one window.
	Duration metav1.Duration
}

// PlanOptions are the options of the profiles, one member for each.
type PlanOptions struct {
	// LoadAwareRebalancing are the options of the profile LoadAwareRebalancing.
	LoadAwareRebalancing *LoadAwareRebalancingOptions
	// HighDensitySwap are the options of the profile HighDensitySwap.
	HighDensitySwap *HighDensitySwapOptions
	// NodeHealthRemediation are the options of the profile NodeHealthRemediation.
	NodeHealthRemediation *NodeHealthRemediationOptions
	// Values are the options of a profile of your own, as its definition describes them:
	// kubectl get configprofile NAME -o yaml.
	Values *JSONObject
}

// NodeHealthRemediationOptions are the options of the profile NodeHealthRemediation.
type NodeHealthRemediationOptions struct {
	// Remediator is the operator that remediates a node. SelfNode has the node reboot itself, and
	// FenceAgents power-cycles it. Automatic is FenceAgents if a template for it exists, and else
	// SelfNode. Default: Automatic.
	Remediator Remediator
	// Template is the SelfNodeRemediationTemplate or FenceAgentsRemediationTemplate to
	// use. Without it there has to be one, or the one that Self Node Remediation made.
	Template *TemplateReference
	// NodeSelector selects the worker nodes that are checked, by their labels. Control
	// planes are never among them. Without it all worker nodes are.
	NodeSelector map[string]string
	// MinHealthy is the number of these nodes that must be healthy before any of them is
	// remediated: a number, or a percentage such as 51%, which is rounded up. Default: 51%.
	MinHealthy *intstr.IntOrString
	// UnhealthyConditions are the conditions of a node, any of which makes it unhealthy
	// when it lasts. At most 10. Default: Ready is False or Unknown for 5m.
	UnhealthyConditions []UnhealthyCondition
	// IncludeControlPlane has control planes checked and remediated, too, one at a time.
	// Default: false.
	IncludeControlPlane *bool
}

// Remediator is the operator that remediates a node.
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
	// Namespace of the template.
	Namespace string
	// Name of the template.
	Name string
}

// UnhealthyCondition is a condition of a node that makes it unhealthy when it lasts.
type UnhealthyCondition struct {
	// Type of the condition, such as Ready.
	Type string
	// Status of the condition: True, False or Unknown.
	Status metav1.ConditionStatus
	// Duration is the least duration of the condition, 1s to 24h, such as 5m.
	Duration metav1.Duration
}

// HighDensitySwapOptions are the options of the profile HighDensitySwap.
type HighDensitySwapOptions struct {
	// EnableSwap gives worker nodes swap, which reboots them. Default: true.
	EnableSwap *bool
	// SwapSource is the place of the swap of worker nodes: an existing Partition, or a File that
	// is created. Default: Partition.
	SwapSource SwapSource
	// PartitionLabel is the label of the partition (of its entry in the partition table).
	// It has to be formatted as swap; one that is not is left alone. Default: CNV_SWAP.
	PartitionLabel string
	// FileSizeMiB is the size of the file in MiB, 1024 to 1048576. It is required for swapSource
	// File. A node where it would leave less than a fifth of the file system free goes without
	// swap.
	FileSizeMiB *int32
	// MemoryToRequestRatio is the memory of virtual machines in percent of their memory requests,
	// 100 to 300. Above 120 it needs enableSwap. Default: 150, and 100 without swap.
	MemoryToRequestRatio *int32
	// EnableKSM has nodes merge equal pages of memory of virtual machines. Default: true.
	EnableKSM *bool
}

// SwapSource is the place of the swap of nodes.
type SwapSource string

const (
	// SwapSourcePartition is a partition that is there.
	SwapSourcePartition SwapSource = "Partition"
	// SwapSourceFile is a file that is made.
	SwapSourceFile SwapSource = "File"
)

// LoadAwareRebalancingOptions are the options of the profile LoadAwareRebalancing.
type LoadAwareRebalancingOptions struct {
	// EnablePSIMetrics makes worker nodes report pressure (kernel argument psi=1),
	// which reboots those that do not yet. Default: true.
	EnablePSIMetrics *bool
	// DeschedulingIntervalSeconds is the time between runs of the descheduler, 60
	// to 86400. Default: 60.
	DeschedulingIntervalSeconds *int32
	// Mode of the descheduler: Automatic evicts, Predictive only says what it would
	// evict. Default: Automatic.
	Mode DeschedulerMode
	// DeviationThresholds is the allowed distance of a node from the mean: Low, Medium, High,
	// AsymmetricLow, AsymmetricMedium or AsymmetricHigh. Default: AsymmetricLow.
	DeviationThresholds DeviationThresholds
	// EvictionLimitTotal bounds evictions in the cluster at a time, 1 to 1000.
	// Without it what HyperConverged allows for live migrations counts.
	EvictionLimitTotal *int32
	// EvictionLimitNode bounds evictions from a node at a time, 1 to 100. Without
	// it what HyperConverged allows for live migrations counts.
	EvictionLimitNode *int32
}

// DeschedulerMode decides whether the descheduler evicts Pods.
type DeschedulerMode string

const (
	// DeschedulerAutomatic evicts.
	DeschedulerAutomatic DeschedulerMode = "Automatic"
	// DeschedulerPredictive only says what it would evict.
	DeschedulerPredictive DeschedulerMode = "Predictive"
)

// DeviationThresholds is the allowed distance of a node from the mean.
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

// Phase is the phase of a plan.
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

// ConfigurationPlanStatus has the plan and the state of its execution.
type ConfigurationPlanStatus struct {
	// Phase is the phase of the plan.
	Phase Phase
	// ObservedGeneration is the generation of spec that status speaks of.
	ObservedGeneration int64
	// PlanHash names the plan: it is over the desired state of all items, over the
	// targets as they were found, over the impact, and over spec.window, spec.expires
	// and spec.approvals.
	PlanHash string
	// SourceSnapshotHash is over the targets as they were found.
	SourceSnapshotHash string
	// InputsHash is over the parts of spec that the plan was computed from.
	InputsHash string
	// OperatorVersion is the version of Penstock that computed the plan.
	OperatorVersion string
	// DraftedAt is the time at which the plan was computed.
	DraftedAt *metav1.Time
	// Manifests names where the desired state of the items is stored; it is read
	// at the subresource manifests.
	Manifests string
	// Captured names where the targets are stored as they were found.
	Captured string
	// ImpactSeverity is the highest of the items.
	ImpactSeverity ImpactSeverity
	// Diff has the changes of all items, bounded: fields, and the values that the plan sets and
	// the targets do not have.
	Diff string
	// Items are the steps of the plan, in their order.
	Items []PlanItem
	// Approval names the approved hash and the users who approved it. The server writes it.
	Approval *PlanApproval
	// RequestedBy are the names of those who created the plan, or changed more of spec
	// than action and approvedPlanHash: the first, and the newest of the others. The
	// server writes it.
	RequestedBy []string
	// Window is the time that is open for the plan, or opens next. It is there while the
	// plan waits or is executed, and spec.window is set.
	Window *PlanWindowStatus
	// Run is the number of the execution that goes on or was the last; 0 before
	// the first.
	Run int64
	// Message says what to do next.
	Message string
	// Conditions sum the plan up.
	Conditions []metav1.Condition
	// Definition names the definition from which the plan of a user's profile was computed.
	Definition *PlanDefinition
}

// PlanWindowStatus is a time in which items of a plan may begin.
type PlanWindowStatus struct {
	// OpensAt is the time at which it begins.
	OpensAt metav1.Time
	// ClosesAt is the time at which it ends. No item begins then or later. Where one window
	// follows another without end, it is a time until which it does not end.
	ClosesAt metav1.Time
	// Local is opensAt in the time zone of spec.window, for people.
	Local string
}

// ImpactSeverity is the disturbance by an item.
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
	// Name of the item.
	Name string
	// TargetRef is the object that is configured.
	TargetRef TargetRef
	// Action is the action on the target: Create, Update, Delete or None.
	Action ItemAction
	// ImpactSeverity is the disturbance by the item.
	ImpactSeverity ImpactSeverity
	// ImpactReason says why.
	ImpactReason string
	// BlastRadius has the nodes that the item affects.
	BlastRadius *BlastRadius
	// Digest of the desired state.
	Digest string
	// Fingerprint of the target as it was found; "absent" when there was none.
	Fingerprint string
	// Diff has the change, bounded: fields, and the values that the plan sets and the target does
	// not have. The subresource diff has the whole change.
	Diff string
	// Takes are fields of other field managers that would be taken.
	Takes []TakenFields
	// Notes are remarks for reviewers.
	Notes []string
	// State is the progress of the item.
	State ItemState
	// Message says what goes on, or why it failed.
	Message string
	// StartedAt is the time at which the item began.
	StartedAt *metav1.Time
	// Applied is true when the run has written the target.
	Applied bool
	// AppliedAt is the time at which the run wrote the target.
	AppliedAt *metav1.Time
	// PausedSeconds is the time for which the objects that the item waits for were paused. It
	// does not count for waitTimeout.
	PausedSeconds int64
	// LastTransitionTime is the time of the last change of state.
	LastTransitionTime *metav1.Time
}

// ItemAction is the action on a target.
type ItemAction string

const (
	// ItemCreate makes a target that does not exist.
	ItemCreate ItemAction = "Create"
	// ItemUpdate changes a target.
	ItemUpdate ItemAction = "Update"
	// ItemDelete removes a target that the run that is rolled back made.
	ItemDelete ItemAction = "Delete"
	// ItemNone leaves a target that is as it should be.
	ItemNone ItemAction = "None"
)

// TargetRef names an object.
type TargetRef struct {
	// APIVersion of the object.
	APIVersion string
	// Kind of the object.
	Kind string
	// Namespace of the object, empty for none.
	Namespace string
	// Name of the object.
	Name string
}

// BlastRadius has the nodes that an item affects.
type BlastRadius struct {
	// Pools are the MachineConfigPools whose nodes get the change.
	Pools []string
	// Nodes is the number of these nodes.
	Nodes int64
	// Reboot tells whether they reboot.
	Reboot bool
	// Waves is the number of rounds that the change takes, by the maxUnavailable of the pools.
	Waves int64
}

// TakenFields are fields that one field manager has and would lose.
type TakenFields struct {
	// Manager who has them.
	Manager string
	// Fields such as ".spec.mode".
	Fields []string
	// Reclaimed fields were set by a run of the plan, and changed by their manager
	// since.
	Reclaimed bool
}

// ApprovalMode tells by which field a plan was approved.
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
	// Username of who approved.
	Username string
	// UID of who approved.
	UID string
	// Groups of who approved, at the time.
	Groups []string
	// Extra has further facts from the authenticator, such as the scopes of a token.
	Extra map[string]ExtraValue
	// Time of the approval.
	Time metav1.Time
	// PlanHash is the plan that is approved. It is empty for a standing approval
	// until the first plan is computed.
	PlanHash string
	// Comment of who approved.
	Comment string
	// Mode is Explicit or Standing.
	Mode ApprovalMode
	// Run is the execution that it was used for: it counts once.
	Run int64
	// Others are the later approvals of the same plan, if spec.approvals asks for more than one.
	Others []PlanApprover
}

// PlanApprover is somebody who approved a plan, besides the first.
type PlanApprover struct {
	// Username of who approved.
	Username string
	// UID of who approved.
	UID string
	// Groups of who approved, at the time.
	Groups []string
	// Extra has further facts from the authenticator, such as the scopes of a token.
	Extra map[string]ExtraValue
	// Time of the approval.
	Time metav1.Time
	// Comment of who approved.
	Comment string
}

// ExtraValue is a list of values of one extra key.
type ExtraValue []string
