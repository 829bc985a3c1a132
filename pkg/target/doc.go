// Package target connects to the clusters other than the host into which revisions are rolled out.
// It identifies the cluster of a kubeconfig and claims it, so that only one Penstock writes there.
// For each Secret that chains name, it keeps an engine while any chain needs it.
package target
