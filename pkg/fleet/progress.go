package fleet

import (
	"maps"
	"time"
)

// Progress is how far a plan is. The caller stores it before it acts on it.
type Progress struct {
	// Approved is the digest of the plan that people approved.
	Approved string
	// ApprovedWaves are the digests of the later waves that people approved, by wave.
	ApprovedWaves map[string]string
	// Halted is true while a person holds the rollout.
	Halted bool
	// Ended is true once another rollout took the place of this one.
	Ended bool
	// Completed is true once every wave was done.
	Completed bool
	// Clusters by name. A cluster without an entry is Pending.
	Clusters map[string]At
}

// At is where one cluster is.
type At struct {
	State State
	// Attempt counts how often the cluster began. The caller marks by it what it writes.
	Attempt int64
	// Since is when the state began, or when a cluster that soaks became unhealthy.
	Since time.Time
	// Healthy is since when a cluster that soaks is healthy; zero while it is not.
	Healthy time.Time
	// Seen is the minute of the last look that showed it healthy, while it soaks.
	Seen   time.Time
	Reason Reason
}

// Reason says why a cluster failed.
type Reason string

// Reasons of failures.
const (
	ReasonFailed             Reason = "Failed"
	ReasonDeadlineExceeded   Reason = "DeadlineExceeded"
	ReasonOtherCluster       Reason = "OtherCluster"
	ReasonChangedSinceReview Reason = "ChangedSinceReview"
	ReasonRolledBack         Reason = "RolledBack"
)

// Observation is what is known of a cluster. The caller leaves out what is too old.
type Observation struct {
	// At is when the caller looked.
	At time.Time
	// Unreachable is true when the cluster did not answer. The other fields keep their last values.
	Unreachable bool
	// UID of the cluster that its Secret leads to; empty while it is unknown.
	UID string
	// Change that the cluster would see; empty while it is unknown.
	Change string
	// Attempt is the one that Content and Failed are of, by the mark of what was written.
	Attempt int64
	// Content is the digest of the content that was rolled out last; empty while a rollout
	// is in progress.
	Content string
	// Refused is true when the attempt was refused because it would make another change.
	Refused bool
	// Failed is true when the rollout of the attempt failed for good.
	Failed bool
	// Healthy is true while all of the content is available, and while there is none.
	Healthy bool
}

// Situation is what a step depends on besides the plan and its progress.
type Situation struct {
	Now time.Time
	// Frozen is true while nothing may begin: the set is paused, or the freeze holds.
	Frozen bool
	// Closed is true while no maintenance window is open.
	Closed bool
	// Room is how many clusters may begin, beside those of all rollouts that are changing.
	Room int
	// Members are the clusters that the set selects. While MembersKnown is false, no cluster
	// leaves.
	Members      map[string]bool
	MembersKnown bool
	// Clusters are observations by name. A cluster that was not observed counts as
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
