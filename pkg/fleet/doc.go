// Package fleet decides how one change reaches many clusters. It is pure: it has no client and no
// clock.
//
// A Plan is the part that people review and approve: the clusters, the wave and the change of each,
// and the bounds of each wave. A Plan never changes. Progress is the state of each cluster. Step
// computes the next Progress from observations, by one rule:
//
//	A cluster begins only when exactly the change that it would see is approved, every
//	cluster of the earlier waves has run exactly the new content for the soak time, and no
//	more than MaxUnavailable clusters of its wave are changing or unhealthy.
//
// The exceptions are the bounds of a wave, and users who skip a cluster by name. MaxFailures is for
// clusters that failed, MaxUnreachable for clusters that could not be reached before they began.
// These bounds do not complete a wave in which no cluster succeeded.
//
// The caller stores Progress before it acts on it. A cluster that is Updating gets the new content
// with the number of its attempt, as often as the caller likes. So a crash in between loses
// nothing, and starts no cluster twice.
//
// Files: plan.go has the approved content, groups.go the groups of equal change, assign.go the
// waves of clusters, states.go the states of a cluster as a table, progress.go the stored and
// observed state, step.go the rule, act.go the acts of users, report.go the answers.
package fleet
