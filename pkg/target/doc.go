// Package target finds the clusters into which revisions are rolled out, other than the host: the
// cluster that a kubeconfig leads to, and its owner. For a Secret that chains name, it keeps an
// engine while any chain needs it.
package target
