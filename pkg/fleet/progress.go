package fleet

import (
	"maps"
	"time"
)

// Progress is the progress of a plan. The caller stores it before it acts on it.
type Progress struct {
	// Approved is the digest of the plan that people approved.
	Approved string
	// ApprovedWaves are the digests of the later waves that people approved, by wave.
	ApprovedWaves map[string]string
	// Halted is true while a person holds the rollout.
	Halted bool
	// Ended is true once another rollout has replaced this one.
	Ended bool
	// Completed is true once every wave was done.
	Completed bool
	// Clusters by name. A cluster without an entry is Pending.
	Clusters map[string]At
}

// At is the state of one cluster.
type At struct {
	State State
	// Attempt counts how often the cluster began. The caller marks its writes with it.
	Attempt int64
	// Since is the beginning of the state, or the time at which a soaking cluster became unhealthy.
	Since time.Time
	// Healthy is the time since which a soaking cluster is healthy; zero while it is not.
	Healthy time.Time
	// Seen is the minute of the last observation that showed it healthy, while it soaks.
	Seen   time.Time
	Reason Reason
}

// Reason is the reason of a cluster's failure.
type Reason string

// Reasons of failures.
const (
	ReasonFailed             Reason = "Failed"
	ReasonDeadlineExceeded   Reason = "DeadlineExceeded"
	ReasonOtherCluster       Reason = "OtherCluster"
	ReasonChangedSinceReview Reason = "ChangedSinceReview"
	ReasonRolledBack         Reason = "RolledBack"
)

// Observation is the known state of a cluster. The caller omits outdated facts.
type Observation struct {
	// At is the time of the observation.
	At time.Time
	// Unreachable is true when the cluster did not answer. The other fields keep their last values.
	Unreachable bool
	// UID of the cluster that its Secret leads to; empty while it is unknown.
	UID string
	// Change is the digest of the change that the cluster would see; empty while unknown.
	Change string
	// Attempt is the attempt of Content and Failed, by the mark of the written child.
	Attempt int64
	// Content is the digest of the content that was rolled out last; empty while a rollout
	// is in progress.
	Content string
	// Refused is true when the attempt was refused because its change would differ.
	Refused bool
	// Failed is true when the rollout of the attempt failed for good.
	Failed bool
	// Healthy is true while all of the content is available, and while there is none.
	Healthy bool
}

// Situation has the inputs of a step besides the plan and its progress.
type Situation struct {
	Now time.Time
	// Frozen is true while no cluster may begin: the set is paused, or the freeze holds.
	Frozen bool
	// Closed is true while no maintenance window is open. Opens is when one opens; zero while that is unknown.
	Closed bool
	Opens  time.Time
	// Room is the number of clusters that may begin, beside those of all rollouts that are
	// changing.
	Room int
	// Members says whether the set selects a cluster of the plan, or a cluster beside it that has
	// the extension of the set. While MembersKnown is false, no cluster leaves.
	Members      map[string]bool
	MembersKnown bool
	// Clusters are observations by name. A cluster without an observation counts as unavailable.
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

// at returns where a cluster is.
func (p Progress) at(cluster string) At {
	at := p.Clusters[cluster]
	if at.State == "" {
		at.State = Pending
	}
	return at
}

// move moves a cluster by an event that its state handles, and tells whether it does.
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

// fail moves a cluster by an event that has a reason.
func (p Progress) fail(cluster string, event Event, reason Reason, now time.Time) {
	if p.move(cluster, event, now) {
		at := p.Clusters[cluster]
		at.Reason = reason
		p.Clusters[cluster] = at
	}
}
