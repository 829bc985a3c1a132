package olm

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterExtensionRollout is one change of a ClusterExtensionSet to many clusters. Penstock
// creates it; people approve it. Its spec never changes.
type ClusterExtensionRollout struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta
	// spec is the change, as it is reviewed.
	Spec ClusterExtensionRolloutSpec
	// status is how far the change is.
	Status ClusterExtensionRolloutStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterExtensionRolloutList is a list of rollouts.
type ClusterExtensionRolloutList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// items are the rollouts.
	Items []ClusterExtensionRollout
}

// ClusterExtensionRolloutSpec is one change to many clusters.
type ClusterExtensionRolloutSpec struct {
	// set is the ClusterExtensionSet that asks for the change.
	Set RolloutSet
	// requestedBy is the user who wrote the set. That user does not approve the change.
	RequestedBy string
	// deadlineSeconds is how long a cluster may take to become healthy.
	DeadlineSeconds int64
	// waves in their order. A wave begins when the earlier waves are done.
	Waves []RolloutWave
	// clusters of the waves: those that the change reaches, and those that have the content already.
	Clusters []RolloutTarget
	// groups of clusters that see the same change, the largest first.
	Groups []RolloutGroup
}

// RolloutSet names a ClusterExtensionSet as it was when the change was computed.
type RolloutSet struct {
	// name of the set.
	Name string
	// uid of the set.
	UID string
	// digest of the spec of the set, but for paused. A set with another digest has another rollout.
	Digest string
}

// RolloutWave is a group of clusters that later waves wait for.
type RolloutWave struct {
	// name of the wave.
	Name string
	// maxUnavailable is how many clusters may be changing or unhealthy at a time.
	MaxUnavailable int32
	// maxFailures is how many clusters may fail before the rollout halts.
	MaxFailures int32
	// maxUnreachable is how many clusters may be unreachable before the rollout halts.
	MaxUnreachable int32
	// soakSeconds is how long each cluster must stay healthy.
	SoakSeconds int64
	// approvalRequired asks for an approval before the wave, after the earlier waves.
	ApprovalRequired bool
	// window is when clusters of the wave may begin. Without it, they begin at any time.
	Window *RolloutWindow
}

// RolloutWindow is a recurring time.
type RolloutWindow struct {
	// schedule is when the window opens, as cron has it: minute, hour, day of the month, month and day
	// of the week.
	Schedule string
	// timeZone is where the schedule is read: a name of the IANA database.
	TimeZone string
	// duration is how long the window is open each time.
	Duration metav1.Duration
}

// RolloutTarget is one cluster of a rollout.
type RolloutTarget struct {
	// name of the Secret with its kubeconfig.
	Name string
	// uid of its namespace kube-system.
	UID string
	// wave of the cluster.
	Wave string
	// before is the digest of the content that the cluster has; empty for an installation.
	Before string
	// after is the digest of the content that the cluster gets.
	After string
	// present is true for a cluster that ran the content for the soak time before this rollout. It does
	// not change, and counts against the bounds of its wave.
	Present bool
}

// RolloutGroup is the change of some clusters.
type RolloutGroup struct {
	// change is the digest of the content before and after.
	Change string
	// clusters by name.
	Clusters []string
	// from is the version that the clusters have; empty for an installation.
	From string
	// to is the version that the clusters get.
	To string
	// extension is the ClusterExtension that each cluster gets, without its name and target.
	Extension *Manifest
	// diff is the RevisionDiff of the first of the clusters.
	Diff *Manifest
}

// ClusterExtensionRolloutStatus is how far a rollout is.
type ClusterExtensionRolloutStatus struct {
	// phase of the rollout: ReviewRequired, Scheduled, InProgress, Soaking, Halted, Completed or
	// Superseded.
	Phase string
	// message says for whom the rollout waits, and what helps.
	Message string
	// digest is what an approval takes now: that of the rollout, or of the wave that waits.
	Digest string
	// wave that waits for an approval; empty for the rollout.
	Wave string
	// troubles is the digest of the clusters that failed, are unreachable or leave. Resume, retry
	// and skip take it.
	Troubles string
	// waits say for whom the rollout waits.
	Waits []RolloutWait
	// approvals of the rollout, and of its waves.
	Approvals []RolloutApproval
	// decisions to halt, resume, retry and skip: the last twenty, the newest last.
	Decisions []RolloutDecision
	// haltedBy is the user who halted the rollout.
	HaltedBy string
	// ended is true once another rollout took the place of this one.
	Ended bool
	// completed is true once every wave was done.
	Completed bool
	// clusters that are not Pending.
	Clusters []RolloutClusterStatus
	// leaving are clusters of the rollout that the set no longer selects, and that wait for a
	// decision.
	Leaving []string
	// conditions are Ready, Progressing and Stalled.
	Conditions []metav1.Condition
}

// RolloutWait is why a rollout waits.
type RolloutWait struct {
	// reason in one CamelCase word.
	Reason string
	// wave that waits; empty for the whole rollout.
	Wave string
	// clusters that it waits for, at most ten.
	Clusters []string
	// count of the clusters that it waits for.
	Count int32
	// opensAt is when the window opens that it waits for, where that is known.
	OpensAt *metav1.Time
}

// RolloutApproval is an approval of a rollout, or of one of its waves.
type RolloutApproval struct {
	// wave that was approved; empty for the rollout.
	Wave string
	// digest that was approved.
	Digest string
	// user who approved it.
	User string
	// time of the approval.
	Time metav1.Time
	// comment of the user.
	Comment string
}

// RolloutDecision is a decision of a user, other than an approval.
type RolloutDecision struct {
	// verb is halt, resume, retry or skip.
	Verb string
	// user who decided.
	User string
	// time of the decision.
	Time metav1.Time
	// clusters that were retried or skipped, at most ten.
	Clusters []string
	// count of the clusters that were retried or skipped.
	Count int32
	// comment of the user.
	Comment string
}

// RolloutClusterStatus is where one cluster is.
type RolloutClusterStatus struct {
	// name of the Secret with its kubeconfig.
	Name string
	// state of the cluster: Present, Deferred, Updating, Unknown, Soaking, Succeeded, RolledBack, Failed,
	// Skipped or Leaving.
	State string
	// attempt counts how often the change began.
	Attempt int64
	// since is when the state began.
	Since metav1.MicroTime
	// healthy is since when a cluster that soaks is healthy.
	Healthy *metav1.MicroTime
	// seen is when the cluster was seen healthy last.
	Seen *metav1.MicroTime
	// reason of a failure.
	Reason string
	// by is the user who skipped or retried the cluster last.
	By string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RolloutRequest is a decision about a rollout: POST it to the subresource approve, halt, resume,
// retry or skip. The answer is the same.
type RolloutRequest struct {
	metav1.TypeMeta
	// metadata may be left out.
	metav1.ObjectMeta
	// spec is the decision.
	Spec RolloutRequestSpec
}

// RolloutRequestSpec is a decision about a rollout as it was read.
type RolloutRequestSpec struct {
	// digest is status.digest for approve, and status.troubles for resume, retry and skip. When
	// the rollout has another one by now, nothing happens: 409 Conflict.
	Digest string
	// clusters that are retried or skipped.
	Clusters []string
	// comment is why, at most 1024 bytes.
	Comment string
}
