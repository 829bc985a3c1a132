// Package cause finds the reason why an object is not ready, from the objects around it. It is
// pure; package gather reads the objects.
//
// A Cause contains only facts that every reader of a revision may see: one-word reasons, names of
// objects, containers and images, exit codes, and numbers of restarts and nodes. Texts of
// containers, registries, schedulers and admission webhooks can contain secrets. They are only in
// Text, for readers who may read those objects themselves. The package parses only known forms of
// such texts, and takes from them only numbers, and names that the Pod's own spec has.
package cause
