package olm

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterExtensionRollout is one change of a ClusterExtensionSet to many clusters. Penstock creates
// it, and users approve it. Its spec never changes.
type ClusterExtensionRollout struct {
	metav1.TypeMeta
	// metadata is the standard object metadata.
	metav1.ObjectMeta
	// Spec is the change to review.
	Spec ClusterExtensionRolloutSpec
	// Status is the progress of the change.
	Status ClusterExtensionRolloutStatus
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterExtensionRolloutList is a list of rollouts.
type ClusterExtensionRolloutList struct {
	metav1.TypeMeta
	// metadata is the standard list metadata.
	metav1.ListMeta
	// Items are the rollouts.
	Items []ClusterExtensionRollout
}

// ClusterExtensionRolloutSpec is one change to many clusters.
type ClusterExtensionRolloutSpec struct {
	// Set is the ClusterExtensionSet that requests the change.
	Set RolloutSet
	// RequestedBy is the user who wrote the set. This user cannot approve the change.
	RequestedBy string
	// DeadlineSeconds is the time that a cluster has to become healthy, in seconds.
	DeadlineSeconds int64
	// Waves in their order. A wave begins when the earlier waves are complete.
	Waves []RolloutWave
	// Clusters of the waves, including clusters that have the content already.
	Clusters []RolloutTarget
	// Groups of clusters with the same change, the largest group first.
	Groups []RolloutGroup
}

// RolloutSet names a ClusterExtensionSet in the state from which the change was computed.
type RolloutSet struct {
	// Name of the set.
	Name string
	// UID of the set.
	UID string
	// Digest of the spec of the set, without paused. If the digest changes, the set gets another
	// rollout.
	Digest string
}

// RolloutWave is a group of clusters that later waves wait for.
type RolloutWave struct {
	// Name of the wave.
	Name string
	// MaxUnavailable is the number of clusters that may be changing or unhealthy at the same time.
	MaxUnavailable int32
	// MaxFailures is the number of clusters that may fail before the rollout halts.
	MaxFailures int32
	// MaxUnreachable is the number of clusters that may be unreachable before the rollout halts.
	MaxUnreachable int32
	// SoakSeconds is the time for which each cluster must stay healthy, in seconds.
	SoakSeconds int64
	// ApprovalRequired is true if the wave needs its own approval, after the earlier waves.
	ApprovalRequired bool
	// Window is the time in which clusters of the wave may begin. Without it, they may begin at any
	// time.
	Window *RolloutWindow
}

// RolloutWindow is a recurring period.
type RolloutWindow struct {
	// Schedule is the start of the window in cron format: minute, hour, day of the month, month and
	// day of the week.
	Schedule string
	// TimeZone of the schedule, a name of the IANA database.
	TimeZone string
	// Duration for which the window is open each time.
	Duration metav1.Duration
}

// RolloutTarget is one cluster of a rollout.
type RolloutTarget struct {
	// Name of the Secret with the cluster's kubeconfig.
	Name string
	// UID of the cluster's namespace kube-system.
	UID string
	// Wave of the cluster.
	Wave string
	// Before is the digest of the cluster's current content; empty for an installation.
	Before string
	// After is the digest of the cluster's new content.
	After string
	// Present is true for a cluster that ran the new content for the soak time before this rollout.
	// Such a cluster does not change, but it counts against the limits of its wave.
	Present bool
}

// RolloutGroup is a group of clusters with the same change.
type RolloutGroup struct {
	// Change is the digest of the content before and after the change.
	Change string
	// Clusters of the group, ordered by name.
	Clusters []string
	// From is the version of the clusters' newest revision, even if that revision failed. The diff
	// compares with it. It is empty for an installation.
	From string
	// To is the new version of the clusters.
	To string
	// Extension is the ClusterExtension for each cluster, without its name and target.
	Extension *Manifest
	// Diff is the RevisionDiff of the first cluster of the group.
	Diff *Manifest
}

// ClusterExtensionRolloutStatus is the progress of a rollout.
type ClusterExtensionRolloutStatus struct {
	// Phase of the rollout: ReviewRequired, Scheduled, InProgress, Soaking, Halted, Completed or
	// Superseded.
	Phase string
	// Message names what the rollout waits for and the command that helps.
	Message string
	// Digest to send in an approval: the digest of the rollout, or of the waiting wave.
	Digest string
	// Wave that waits for an approval; empty if the whole rollout waits.
	Wave string
	// Troubles is the digest of the clusters that failed, are unreachable, or left the set. Send it
	// in resume, retry and skip.
	Troubles string
	// Waits are the reasons why the rollout waits.
	Waits []RolloutWait
	// Approvals of the rollout and of its waves.
	Approvals []RolloutApproval
	// Decisions of users to halt, resume, retry and skip: the last 20, the newest last.
	Decisions []RolloutDecision
	// HaltedBy is the user who halted the rollout.
	HaltedBy string
	// Ended is true once another rollout has replaced this rollout.
	Ended bool
	// Completed is true once every wave is complete.
	Completed bool
	// Clusters of the rollout that are not Pending, and other clusters that left the set.
	Clusters []RolloutClusterStatus
	// Leaving are clusters that the set does not select any more and that wait for a decision.
	Leaving []string
	// Conditions are Ready, Progressing and Stalled.
	Conditions []metav1.Condition
}

// RolloutWait is one reason why a rollout waits.
type RolloutWait struct {
	// Reason is one CamelCase word.
	Reason string
	// Wave that waits; empty for the whole rollout.
	Wave string
	// Clusters that the rollout waits for, at most 10.
	Clusters []string
	// Count of all clusters that the rollout waits for.
	Count int32
	// OpensAt is the time at which the awaited window opens, if it is known.
	OpensAt *metav1.Time
}

// RolloutApproval is an approval of a rollout or of one of its waves.
type RolloutApproval struct {
	// Wave that was approved; empty for the whole rollout.
	Wave string
	// Digest that was approved.
	Digest string
	// User who approved it.
	User string
	// Time of the approval.
	Time metav1.Time
	// Comment of the user.
	Comment string
}

// RolloutDecision is a decision of a user, other than an approval.
type RolloutDecision struct {
	// Verb is halt, resume, retry or skip.
	Verb string
	// User who decided.
	User string
	// Time of the decision.
	Time metav1.Time
	// Clusters that were retried or skipped, at most 10.
	Clusters []string
	// Count of all clusters that were retried or skipped.
	Count int32
	// Comment of the user.
	Comment string
}

// RolloutClusterStatus is the progress of one cluster.
type RolloutClusterStatus struct {
	// Name of the Secret with the cluster's kubeconfig.
	Name string
	// State of the cluster: Present, Deferred, Updating, Unknown, Soaking, Succeeded, RolledBack,
	// Failed, Skipped or Leaving.
	State string
	// Attempt is the number of times that the change began.
	Attempt int64
	// Since is the time at which the cluster entered the state.
	Since metav1.MicroTime
	// Healthy is the time since which a Soaking cluster is healthy.
	Healthy *metav1.MicroTime
	// Seen is the time at which Penstock last found a Soaking cluster healthy, to the minute.
	Seen *metav1.MicroTime
	// Reason of the failure.
	Reason string
	// By is the user who last skipped or retried the cluster.
	By string
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RolloutRequest is a decision about a rollout. POST it to the subresource approve, halt, resume,
// retry or skip. The server returns it unchanged.
type RolloutRequest struct {
	metav1.TypeMeta
	// metadata is optional.
	metav1.ObjectMeta
	// Spec is the decision.
	Spec RolloutRequestSpec
}

// RolloutRequestSpec is a decision about a rollout in the state that the user has read.
type RolloutRequestSpec struct {
	// Digest is status.digest for approve, and status.troubles for resume, retry and skip. If the
	// rollout has another digest by then, the server does nothing and returns 409 Conflict.
	Digest string
	// Clusters to retry or skip.
	Clusters []string
	// Comment on the decision, at most 1024 bytes.
	Comment string
}
