package fleet

import (
	"maps"
	"time"
)

// Progress is the stored progress of a plan.
type Progress struct {
	// Approved is the digest of the plan that users approved.
	Approved string
	// ApprovedWaves holds the digests of the later waves that users approved, by wave.
	ApprovedWaves map[string]string
	// Halted is true while a user holds the rollout.
	Halted bool
	// Ended is true once another rollout has replaced this one.
	Ended bool
	// Completed is true once every wave is done.
	Completed bool
	// Clusters holds the state of each cluster, by name. A cluster without an entry is Pending.
	Clusters map[string]At
}

// At is the state of one cluster.
type At struct {
	State State
	// Attempt counts how often the cluster began. The caller marks its writes with this number.
	Attempt int64
	// Since is the time when the state began, or when a soaking cluster became unhealthy.
	Since time.Time
	// Healthy is the time since when a soaking cluster is healthy. It is zero while the cluster is
	// unhealthy.
	Healthy time.Time
	// Seen is the minute of the last observation that showed a soaking cluster as healthy.
	Seen   time.Time
	Reason Reason
}

// Reason explains the failure of a cluster.
type Reason string

// Reasons of failures.
const (
	ReasonFailed             Reason = "Failed"
	ReasonDeadlineExceeded   Reason = "DeadlineExceeded"
	ReasonOtherCluster       Reason = "OtherCluster"
	ReasonChangedSinceReview Reason = "ChangedSinceReview"
	ReasonRolledBack         Reason = "RolledBack"
)

// Observation is the observed state of a cluster. The caller omits outdated facts.
type Observation struct {
	// At is the time of the observation.
	At time.Time
	// Unreachable is true when the cluster did not answer. The other fields keep their last values.
	Unreachable bool
	// UID is the uid of the cluster in the Secret; empty while unknown.
	UID string
	// Change is the digest of the change that the cluster would see; empty while unknown.
	Change string
	// Attempt is the attempt of Content and Failed. The mark of the written child has it.
	Attempt int64
	// Content is the digest of the last content that was rolled out; empty while a rollout is in
	// progress.
	Content string
	// Refused is true if the attempt was refused because its change would differ from the approved
	// one.
	Refused bool
	// Failed is true if the rollout of the attempt failed for good.
	Failed bool
	// Healthy is true while all content is available. It is also true while there is no content.
	Healthy bool
}

// Situation holds the inputs of a step besides the plan and its progress.
type Situation struct {
	Now time.Time
	// Frozen is true while no cluster may begin: the set is paused, or the freeze holds.
	Frozen bool
	// Closed is true while no maintenance window is open. Opens is the next opening time; zero
	// while unknown.
	Closed bool
	Opens  time.Time
	// Room is the number of clusters that may begin now, after all rollouts in progress are
	// counted.
	Room int
	// Members has the clusters of the plan and all other clusters with a child of the set. The
	// value is true if the set selects the cluster. While MembersKnown is false, no cluster leaves.
	Members      map[string]bool
	MembersKnown bool
	// Clusters holds the observations by name. A cluster without an observation counts as
	// unavailable.
	Clusters map[string]Observation
}

// clone returns a copy whose maps the caller may change.
func (p Progress) clone() Progress {
	p.ApprovedWaves, p.Clusters = maps.Clone(p.ApprovedWaves), maps.Clone(p.Clusters)
	if p.ApprovedWaves == nil {
		p.ApprovedWaves = map[string]string{}
	}
	if p.Clusters == nil {
		p.Clusters = map[string]At{}
	}
	return p
}

func (p Progress) at(cluster string) At {
	at := p.Clusters[cluster]
	if at.State == "" {
		at.State = Pending
	}
	return at
}

// move moves a cluster by an event, and reports whether its state handles the event.
func (p Progress) move(cluster string, event Event, now time.Time) bool {
	at := p.at(cluster)
	next, err := Next(at.State, event)
	if err != nil {
		return false
	}
	at.State, at.Since, at.Reason = next, now, ""
	if next != Soaking && next != Succeeded {
		at.Healthy, at.Seen = time.Time{}, time.Time{}
	}
	p.Clusters[cluster] = at
	return true
}

// fail moves a cluster by an event, and stores the reason.
func (p Progress) fail(cluster string, event Event, reason Reason, now time.Time) {
	if p.move(cluster, event, now) {
		at := p.Clusters[cluster]
		at.Reason = reason
		p.Clusters[cluster] = at
	}
}
