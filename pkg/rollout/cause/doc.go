// Package cause says why an object is not ready, from the objects around it: objects in,
// cause out. It knows no client and no clock; package gather reads what it needs.
//
// A Cause is made of what may be shown to everybody who may read a revision: reasons in
// one word, names of objects, containers and images, exit codes, numbers of restarts and
// of nodes. Texts of containers, registries, schedulers and admission webhooks may hold
// secrets. It is in Text, apart from the rest, for readers who may read those objects
// themselves. Of such a text only the forms that the components of Kubernetes are known to
// write are understood, and of those only names that the Pod's own spec has, and numbers.
package cause
