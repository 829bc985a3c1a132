// Package cause finds out why an object is not ready, from the objects around it: objects in, cause
// out. It knows no client and no clock; package gather reads the objects.
//
// A Cause contains only facts that every reader of a revision may see: one-word reasons, names of
// objects, containers and images, exit codes, numbers of restarts and of nodes. Texts of
// containers, registries, schedulers and admission webhooks can contain secrets. They are only in
// Text, for readers who may read those objects themselves. From such a text the package takes only
// forms that components of Kubernetes are known to write, and of those only numbers and names that
// the Pod's own spec has.
package cause
