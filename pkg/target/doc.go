// Package target connects to the target clusters of revisions, other than the host. It identifies
// the cluster of a kubeconfig and claims it, so that only one Penstock writes there. For each
// Secret that chains name, it keeps an engine while any chain needs it.
package target
