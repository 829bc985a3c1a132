// Package target finds the clusters that revisions are rolled out into when those are
// not the host: which cluster a kubeconfig leads to and whose it is, and, for those
// that chains name by a Secret, an engine for as long as any chain needs it.
package target
