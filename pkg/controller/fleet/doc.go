// Package fleet brings about what ClusterExtensionSets ask for: it computes the change that each
// cluster would see, records it as a ClusterExtensionRollout for people to approve, and writes the
// ClusterExtensions of the clusters whose turn has come. Package pkg/fleet decides whose turn it is.
//
// The leader does it. At rest it sends no request: sets, Secrets, rollouts, revisions and catalogs are
// watched. While a rollout is in progress, it looks at the clusters of the rollout every few seconds.
//
// It stores the progress of a rollout before it writes a ClusterExtension. The mark of the attempt
// makes a second write of the same attempt have no effect.
//
// Files: controller.go has the watches, reconcile.go the steps of a pass, propose.go computes a
// change, observe.go looks at clusters, write.go writes children, status.go says where a set is.
package fleet
