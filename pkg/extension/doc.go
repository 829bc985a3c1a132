// Package extension has the kind ClusterExtension, by which users ask for installations: its types,
// our annotations, and its CustomResourceDefinition. It is pure.
package extension
