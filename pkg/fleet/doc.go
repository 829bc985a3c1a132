// Package fleet decides how one change reaches many clusters. It is pure: it has no client
// and no clock.
//
// A Plan is what people review and approve: the clusters, the wave of each, the change that
// each would see, and the bounds of each wave. It never changes. Progress is the state of
// each cluster, which the caller stores. Step leads from one Progress to the next one by what
// is observed, and holds one rule:
//
//	A cluster begins only when exactly the change that it would see is approved, every
//	cluster of the earlier waves has run exactly the new content for the soak time, and no
//	more than MaxUnavailable clusters of its wave are changing or unhealthy.
//
// The bounds of a wave, and people who skip a cluster by name, make the only exceptions:
// MaxFailures for clusters that failed, MaxUnreachable for clusters that could not be reached
// before they began. A wave in which no cluster succeeded is not done by these bounds.
//
// The caller stores Progress before it acts on it: a cluster that is Updating gets the new
// content, with the number of its attempt, as often as the caller likes. A crash in between
// therefore loses nothing, and starts no cluster twice.
//
// Files: plan.go has what is approved, groups.go the groups of equal change, assign.go the
// waves of clusters, states.go the states of a cluster as a table, progress.go what is stored
// and observed, step.go the rule, act.go the acts of people, report.go the answers.
package fleet
