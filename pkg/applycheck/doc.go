// Package applycheck says whether server-side apply can take a manifest, without a cluster. It
// walks through an object with the types by which kube-apiserver merges fields: those of Kubernetes
// (Builtin), those of CustomResourceDefinitions (Definitions), and those of a cluster's OpenAPI
// document (OpenAPI). It finds duplicate keys of lists, undeclared fields, values of a wrong type,
// and, for kinds of client-go, values that cannot be decoded.
//
// It knows no client and no API of ours. docs/reference/manifests.md lists the shapes and their
// results.
package applycheck
