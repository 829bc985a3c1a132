// Package fleet rolls out ClusterExtensionSets. It computes the change of each cluster, records the
// changes as a ClusterExtensionRollout for users to approve, and writes the ClusterExtensions of
// the clusters that may begin (the children). Package pkg/fleet decides which clusters may begin.
//
// It runs on the leader. At rest it sends no request: it watches sets, Secrets, rollouts, revisions
// and catalogs. While a rollout is in progress, it reads the clusters of the rollout every few
// seconds.
//
// It stores the progress of a rollout before it writes a ClusterExtension. A child carries the mark
// of its attempt, so a second write of the same attempt has no effect.
//
// Start with reconcile.go, which has the steps of a pass.
package fleet
