// Package fleet decides how one change reaches many clusters. It is pure: it has no client and no
// clock.
//
// Users review and approve a Plan: the clusters, the wave and the change of each, and the bounds of
// each wave. A Plan never changes. Progress is the state of each cluster. Step computes the next
// Progress from observations, by one rule:
//
//	A cluster begins only when exactly the change that it would see is approved, every
//	cluster of the earlier waves has run exactly the new content for the soak time, and no
//	more than MaxUnavailable clusters of its wave are changing or unhealthy.
//
// The exceptions are the bounds of a wave, and users who skip a cluster by name. MaxFailures bounds
// the clusters that failed. MaxUnreachable bounds the clusters that could not be reached before
// they began. These bounds do not complete a wave in which no cluster succeeded.
//
// The caller stores Progress before it acts on it. It may write the new content to an Updating
// cluster many times, each time with the number of the attempt. So a crash in between loses
// nothing, and starts no cluster twice.
//
// Start with step.go, which has the rule, and states.go, the state machine of a cluster.
package fleet
