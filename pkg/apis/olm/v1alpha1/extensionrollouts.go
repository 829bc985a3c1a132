package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetLabel of a ClusterExtensionRollout is the name of its ClusterExtensionSet.
const SetLabel = "penstock.dev/set"

// +genclient
// +genclient:nonNamespaced
// +genclient:method=Approve,verb=create,subresource=approve,input=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest
// +genclient:method=Halt,verb=create,subresource=halt,input=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest
// +genclient:method=Resume,verb=create,subresource=resume,input=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest
// +genclient:method=Retry,verb=create,subresource=retry,input=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest
// +genclient:method=Skip,verb=create,subresource=skip,input=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest,result=github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1.RolloutRequest
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ClusterExtensionRollout is one change of a ClusterExtensionSet to many clusters. Penstock creates
// it, and users approve it. Its spec never changes.
type ClusterExtensionRollout struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the change to review.
	Spec ClusterExtensionRolloutSpec `json:"spec"`
	// status is the progress of the change.
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
	// set is the ClusterExtensionSet that requests the change.
	Set RolloutSet `json:"set"`
	// requestedBy is the user who wrote the set. This user cannot approve the change.
	RequestedBy string `json:"requestedBy"`
	// deadlineSeconds is the time that a cluster has to become healthy, in seconds.
	DeadlineSeconds int64 `json:"deadlineSeconds"`
	// waves in their order. A wave begins when the earlier waves are complete.
	// +listType=map
	// +listMapKey=name
	Waves []RolloutWave `json:"waves"`
	// clusters of the waves, including clusters that have the content already.
	// +listType=map
	// +listMapKey=name
	Clusters []RolloutTarget `json:"clusters"`
	// groups of clusters with the same change, the largest group first.
	// +listType=map
	// +listMapKey=change
	Groups []RolloutGroup `json:"groups"`
}

// RolloutSet names a ClusterExtensionSet in the state from which the change was computed.
type RolloutSet struct {
	// name of the set.
	Name string `json:"name"`
	// uid of the set.
	UID string `json:"uid"`
	// digest of the spec of the set, without paused. If the digest changes, the set gets another
	// rollout.
	Digest string `json:"digest"`
}

// RolloutWave is a group of clusters that later waves wait for.
type RolloutWave struct {
	// name of the wave.
	Name string `json:"name"`
	// maxUnavailable is the number of clusters that may be changing or unhealthy at the same time.
	MaxUnavailable int32 `json:"maxUnavailable"`
	// maxFailures is the number of clusters that may fail before the rollout halts.
	MaxFailures int32 `json:"maxFailures"`
	// maxUnreachable is the number of clusters that may be unreachable before the rollout halts.
	MaxUnreachable int32 `json:"maxUnreachable"`
	// soakSeconds is the time for which each cluster must stay healthy, in seconds.
	SoakSeconds int64 `json:"soakSeconds"`
	// approvalRequired is true if the wave needs its own approval, after the earlier waves.
	// +optional
	ApprovalRequired bool `json:"approvalRequired,omitempty"`
	// window is the time in which clusters of the wave may begin. Without it, they may begin at any
	// time.
	// +optional
	Window *RolloutWindow `json:"window,omitempty"`
}

// RolloutWindow is a recurring period.
type RolloutWindow struct {
	// schedule is the start of the window in cron format: minute, hour, day of the month, month and
	// day of the week.
	Schedule string `json:"schedule"`
	// timeZone of the schedule, a name of the IANA database.
	TimeZone string `json:"timeZone"`
	// duration for which the window is open each time.
	Duration metav1.Duration `json:"duration"`
}

// RolloutTarget is one cluster of a rollout.
type RolloutTarget struct {
	// name of the Secret with the cluster's kubeconfig.
	Name string `json:"name"`
	// uid of the cluster's namespace kube-system.
	UID string `json:"uid"`
	// wave of the cluster.
	Wave string `json:"wave"`
	// before is the digest of the cluster's current content; empty for an installation.
	// +optional
	Before string `json:"before,omitempty"`
	// after is the digest of the cluster's new content.
	After string `json:"after"`
	// present is true for a cluster that ran the new content for the soak time before this rollout.
	// Such a cluster does not change, but it counts against the limits of its wave.
	// +optional
	Present bool `json:"present,omitempty"`
}

// RolloutGroup is a group of clusters with the same change.
type RolloutGroup struct {
	// change is the digest of the content before and after the change.
	Change string `json:"change"`
	// clusters of the group, ordered by name.
	// +listType=set
	Clusters []string `json:"clusters"`
	// from is the version of the clusters' newest revision, even if that revision failed. The diff
	// compares with it. It is empty for an installation.
	// +optional
	From string `json:"from,omitempty"`
	// to is the new version of the clusters.
	To string `json:"to"`
	// extension is the ClusterExtension for each cluster, without its name and target.
	Extension *Manifest `json:"extension"`
	// diff is the RevisionDiff of the first cluster of the group.
	// +optional
	Diff *Manifest `json:"diff,omitempty"`
}

// ClusterExtensionRolloutStatus is the progress of a rollout.
type ClusterExtensionRolloutStatus struct {
	// phase of the rollout: ReviewRequired, Scheduled, InProgress, Soaking, Halted, Completed or
	// Superseded.
	// +optional
	Phase string `json:"phase,omitempty"`
	// message names what the rollout waits for and the command that helps.
	// +optional
	Message string `json:"message,omitempty"`
	// digest to send in an approval: the digest of the rollout, or of the waiting wave.
	// +optional
	Digest string `json:"digest,omitempty"`
	// wave that waits for an approval; empty if the whole rollout waits.
	// +optional
	Wave string `json:"wave,omitempty"`
	// troubles is the digest of the clusters that failed, are unreachable, or left the set. Send it
	// in resume, retry and skip.
	// +optional
	Troubles string `json:"troubles,omitempty"`
	// waits are the reasons why the rollout waits.
	// +optional
	// +listType=atomic
	Waits []RolloutWait `json:"waits,omitempty"`
	// approvals of the rollout and of its waves.
	// +optional
	// +listType=map
	// +listMapKey=wave
	Approvals []RolloutApproval `json:"approvals,omitempty"`
	// decisions of users to halt, resume, retry and skip: the last 20, the newest last.
	// +optional
	// +listType=atomic
	Decisions []RolloutDecision `json:"decisions,omitempty"`
	// haltedBy is the user who halted the rollout.
	// +optional
	HaltedBy string `json:"haltedBy,omitempty"`
	// ended is true once another rollout has replaced this rollout.
	// +optional
	Ended bool `json:"ended,omitempty"`
	// completed is true once every wave is complete.
	// +optional
	Completed bool `json:"completed,omitempty"`
	// clusters of the rollout that are not Pending, and other clusters that left the set.
	// +optional
	// +listType=map
	// +listMapKey=name
	Clusters []RolloutClusterStatus `json:"clusters,omitempty"`
	// leaving are clusters that the set does not select any more and that wait for a decision.
	// +optional
	// +listType=set
	Leaving []string `json:"leaving,omitempty"`
	// conditions are Ready, Progressing and Stalled.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// RolloutWait is one reason why a rollout waits.
type RolloutWait struct {
	// reason is one CamelCase word.
	Reason string `json:"reason"`
	// wave that waits; empty for the whole rollout.
	// +optional
	Wave string `json:"wave,omitempty"`
	// clusters that the rollout waits for, at most 10.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
	// count of all clusters that the rollout waits for.
	// +optional
	Count int32 `json:"count,omitempty"`
	// opensAt is the time at which the awaited window opens, if it is known.
	// +optional
	OpensAt *metav1.Time `json:"opensAt,omitempty"`
}

// RolloutApproval is an approval of a rollout or of one of its waves.
type RolloutApproval struct {
	// wave that was approved; empty for the whole rollout.
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
	// clusters that were retried or skipped, at most 10.
	// +optional
	// +listType=atomic
	Clusters []string `json:"clusters,omitempty"`
	// count of all clusters that were retried or skipped.
	// +optional
	Count int32 `json:"count,omitempty"`
	// comment of the user.
	// +optional
	Comment string `json:"comment,omitempty"`
}

// RolloutClusterStatus is the progress of one cluster.
type RolloutClusterStatus struct {
	// name of the Secret with the cluster's kubeconfig.
	Name string `json:"name"`
	// state of the cluster: Present, Deferred, Updating, Unknown, Soaking, Succeeded, RolledBack, Failed,
	// Skipped or Leaving.
	State string `json:"state"`
	// attempt is the number of times that the change began.
	// +optional
	Attempt int64 `json:"attempt,omitempty"`
	// since is the time at which the cluster entered the state.
	Since metav1.MicroTime `json:"since"`
	// healthy is the time since which a Soaking cluster is healthy.
	// +optional
	Healthy *metav1.MicroTime `json:"healthy,omitempty"`
	// seen is the time at which Penstock last found a Soaking cluster healthy, to the minute.
	// +optional
	Seen *metav1.MicroTime `json:"seen,omitempty"`
	// reason of the failure.
	// +optional
	Reason string `json:"reason,omitempty"`
	// by is the user who last skipped or retried the cluster.
	// +optional
	By string `json:"by,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RolloutRequest is a decision about a rollout. POST it to the subresource approve, halt, resume,
// retry or skip. The server returns it unchanged.
type RolloutRequest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is optional.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the decision.
	// +optional
	Spec RolloutRequestSpec `json:"spec,omitempty"`
}

// RolloutRequestSpec is a decision about a rollout in the state that the user has read.
type RolloutRequestSpec struct {
	// digest is status.digest for approve, and status.troubles for resume, retry and skip. If the
	// rollout has another digest by then, the server does nothing and returns 409 Conflict.
	// +optional
	Digest string `json:"digest,omitempty"`
	// clusters to retry or skip.
	// +optional
	// +listType=set
	Clusters []string `json:"clusters,omitempty"`
	// comment on the decision, at most 1024 bytes.
	// +optional
	Comment string `json:"comment,omitempty"`
}
