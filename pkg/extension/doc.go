// Package extension knows ClusterExtensions, the objects by which people say what shall be
// installed: their types, the annotations that are ours, the definition that a cluster needs
// to have them. It is pure.
package extension
