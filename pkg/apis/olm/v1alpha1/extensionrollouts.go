package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetLabel is on a ClusterExtensionRollout: the name of its ClusterExtensionSet.
const SetLabel = "penstock.dev/set"

// +genclient
// +genclient:nonNamespaced
// +genclient:method=Approve,verb=create,subresource=approve,input=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest
// +genclient:method=Halt,verb=create,subresource=halt,input=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest
// +genclient:method=Resume,verb=create,subresource=resume,input=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest
// +genclient:method=Retry,verb=create,subresource=retry,input=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest
// +genclient:method=Skip,verb=create,subresource=skip,input=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterExtensionRollout is one change of a ClusterExtensionSet to many clusters. Penstock
// creates it; people approve it. Its spec never changes.
type ClusterExtensionRollout struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the change, as it is reviewed.
	Spec ClusterExtensionRolloutSpec `json:"spec"`
	// status is how far the change is.
	// +optional
	Status ClusterExtensionRolloutStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterExtensionRolloutList is a list of rollouts.
type ClusterExtensionRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the rollouts.
	Items []ClusterExtensionRollout `json:"items"`
}

// ClusterExtensionRolloutSpec is one change to many clusters.
type ClusterExtensionRolloutSpec struct {
	// set is the ClusterExtensionSet that asks for the change.
	Set RolloutSet `json:"set"`
	// requestedBy is the user who wrote the set. That user does not approve the change.
	RequestedBy string `json:"requestedBy"`
	// deadlineSeconds is how long a cluster may take to become healthy.
	DeadlineSeconds int64 `json:"deadlineSeconds"`
	// waves in their order. A wave begins when the earlier waves are done.
	// +listType=map
	// +listMapKey=name
	Waves []RolloutWave `json:"waves"`
	// clusters of the waves: those that the change reaches, and those that have the content already.
	// +listType=map
	// +listMapKey=name
	Clusters []RolloutTarget `json:"clusters"`
	// groups of clusters that see the same change, the largest first.
	// +listType=map
	// +listMapKey=change
	Groups []RolloutGroup `json:"groups"`
}

// RolloutSet names a ClusterExtensionSet as it was when the change was computed.
type RolloutSet struct {
	// name of the set.
	Name string `json:"name"`
	// uid of the set.
	UID string `json:"uid"`
	// digest of the spec of the set, but for paused. A set with another digest has another rollout.
	Digest string `json:"digest"`
}

// RolloutWave is a group of clusters that later waves wait for.
type RolloutWave struct {
	// name of the wave.
	Name string `json:"name"`
	// maxUnavailable is how many clusters may be changing or unhealthy at a time.
	MaxUnavailable int32 `json:"maxUnavailable"`
	// maxFailures is how many clusters may fail before the rollout halts.
	MaxFailures int32 `json:"maxFailures"`
	// maxUnreachable is how many clusters may be unreachable before the rollout halts.
	MaxUnreachable int32 `json:"maxUnreachable"`
	// soakSeconds is how long each cluster must stay healthy.
	SoakSeconds int64 `json:"soakSeconds"`
	// approvalRequired asks for an approval before the wave, after the earlier waves.
	// +optional
	ApprovalRequired bool `json:"approvalRequired,omitempty"`
	// window is when clusters of the wave may begin. Without it, they begin at any time.
	// +optional
	Window *RolloutWindow `json:"window,omitempty"`
}

// RolloutWindow is a recurring time.
type RolloutWindow struct {
	// schedule is when the window opens, as cron has it: minute, hour, day of the month, month and day
	// of the week.
	Schedule string `json:"schedule"`
	// timeZone is where the schedule is read: a name of the IANA database.
	TimeZone string `json:"timeZone"`
	// duration is how long the window is open each time.
	Duration metav1.Duration `json:"duration"`
}

// RolloutTarget is one cluster of a rollout.
type RolloutTarget struct {
	// name of the Secret with its kubeconfig.
	Name string `json:"name"`
	// uid of its namespace kube-system.
	UID string `json:"uid"`
	// wave of the cluster.
	Wave string `json:"wave"`
	// before is the digest of the content that the cluster has; empty for an installation.
	// +optional
	Before string `json:"before,omitempty"`
	// after is the digest of the content that the cluster gets.
	After string `json:"after"`
	// present is true for a cluster that ran the content for the soak time before this rollout. It does
	// not change, and counts against the bounds of its wave.
	// +optional
	Present bool `json:"present,omitempty"`
}

// RolloutGroup is the change of some clusters.
type RolloutGroup struct {
	// change is the digest of the content before and after.
	Change string `json:"change"`
	// clusters by name.
	// +listType=set
	Clusters []string `json:"clusters"`
	// from is the version of the newest revision of the clusters, with which the diff compares, also
	// one that failed; empty for an installation.
	// +optional
	From string `json:"from,omitempty"`
	// to is the version that the clusters get.
	To string `json:"to"`
	// extension is the ClusterExtension that each cluster gets, without its name and target.
	Extension *Manifest `json:"extension"`
	// diff is the RevisionDiff of the first of the clusters.
	// +optional
	Diff *Manifest `json:"diff,omitempty"`
}

// ClusterExtensionRolloutStatus is how far a rollout is.
type ClusterExtensionRolloutStatus struct {
	// phase of the rollout: ReviewRequired, Scheduled, InProgress, Soaking, Halted, Completed or
	// Superseded.
	// +optional
	Phase string `json:"phase,omitempty"`
	// message says for whom the rollout waits, and what helps.
	// +optional
	Message string `json:"message,omitempty"`
	// digest is what an approval takes now: that of the rollout, or of the wave that waits.
	// +optional
	Digest string `json:"digest,omitempty"`
	// wave that waits for an approval; empty for the rollout.
	// +optional
	Wave string `json:"wave,omitempty"`
	// troubles is the digest of the clusters that failed, are unreachable or leave. Resume, retry
	// and skip take it.
	// +optional
	Troubles string `json:"troubles,omitempty"`
	// waits say for whom the rollout waits.
	// +optional
	// +listType=atomic
	Waits []RolloutWait `json:"waits,omitempty"`
	// approvals of the rollout, and of its waves.
	// +optional
	// +listType=map
	// +listMapKey=wave
	Approvals []RolloutApproval `json:"approvals,omitempty"`
	// decisions to halt, resume, retry and skip: the last twenty, the newest last.
	// +optional
	// +listType=atomic
	Decisions []RolloutDecision `json:"decisions,omitempty"`
	// haltedBy is the user who halted the rollout.
	// +optional
	HaltedBy string `json:"haltedBy,omitempty"`
	// ended is true once another rollout took the place of this one.
	// +optional
	Ended bool `json:"ended,omitempty"`
	// completed is true once every wave was done.
	// +optional
	Completed bool `json:"completed,omitempty"`
	// clusters of the rollout that are not Pending, and clusters beside it that left the set.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []RolloutClusterStatus `json:"clusters,omitempty"`
	// leaving are clusters that the set no longer selects, and that wait for a decision.
	// +optional
	// +listType=set
	Leaving []string `json:"leaving,omitempty"`
	// conditions are Ready, Progressing and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RolloutWait is why a rollout waits.
type RolloutWait struct {
	// reason in one CamelCase word.
	Reason string `json:"reason"`
	// wave that waits; empty for the whole rollout.
	// +optional
	Wave string `json:"wave,omitempty"`
	// clusters that it waits for, at most ten.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
	// count of the clusters that it waits for.
	// +optional
	Count int32 `json:"count,omitempty"`
	// opensAt is when the window opens that it waits for, where that is known.
	// +optional
	OpensAt *metav1.Time `json:"opensAt,omitempty"`
}

// RolloutApproval is an approval of a rollout, or of one of its waves.
type RolloutApproval struct {
	// wave that was approved; empty for the rollout.
	Wave string `json:"wave"`
	// digest that was approved.
	Digest string `json:"digest"`
	// user who approved it.
	User string `json:"user"`
	// time of the approval.
	Time metav1.Time `json:"time"`
	// comment of the user.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// RolloutDecision is a decision of a user, other than an approval.
type RolloutDecision struct {
	// verb is halt, resume, retry or skip.
	Verb string `json:"verb"`
	// user who decided.
	User string `json:"user"`
	// time of the decision.
	Time metav1.Time `json:"time"`
	// clusters that were retried or skipped, at most ten.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
	// count of the clusters that were retried or skipped.
	// +optional
	Count int32 `json:"count,omitempty"`
	// comment of the user.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// RolloutClusterStatus is where one cluster is.
type RolloutClusterStatus struct {
	// name of the Secret with its kubeconfig.
	Name string `json:"name"`
	// state of the cluster: Present, Deferred, Updating, Unknown, Soaking, Succeeded, RolledBack, Failed,
	// Skipped or Leaving.
	State string `json:"state"`
	// attempt counts how often the change began.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// since is when the state began.
	Since metav1.MicroTime `json:"since"`
	// healthy is since when a cluster that soaks is healthy.
	// +optional
	Healthy *metav1.MicroTime `json:"healthy,omitempty"`
	// seen is when the cluster was seen healthy last.
	// +optional
	Seen *metav1.MicroTime `json:"seen,omitempty"`
	// reason of a failure.
	// +optional
	Reason string `json:"reason,omitempty"`
	// by is the user who skipped or retried the cluster last.
	// +optional
	By string `json:"by,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RolloutRequest is a decision about a rollout: POST it to the subresource approve, halt, resume,
// retry or skip. The answer is the same.
type RolloutRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata may be left out.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the decision.
	// +optional
	Spec RolloutRequestSpec `json:"spec,omitempty"`
}

// RolloutRequestSpec is a decision about a rollout as it was read.
type RolloutRequestSpec struct {
	// digest is status.digest for approve, and status.troubles for resume, retry and skip. When
	// the rollout has another one by now, nothing happens: 409 Conflict.
	// +optional
	Digest string `json:"digest,omitempty"`
	// clusters that are retried or skipped.
	// +optional
	// +listType=set
	Clusters []string `json:"clusters,omitempty"`
	// comment is why, at most 1024 bytes.
	// +optional
	Comment string `json:"comment,omitempty"`
}
