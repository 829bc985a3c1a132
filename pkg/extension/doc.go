// Package extension defines the kind ClusterExtension, by which users request installations: its
// types, Penstock's annotations, and its CustomResourceDefinition. It is pure.
package extension
