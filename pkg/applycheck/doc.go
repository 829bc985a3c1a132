// Package applycheck tells whether server-side apply can take a manifest, without a
// cluster. It walks through an object with the same types that kube-apiserver takes to
// merge fields: those of Kubernetes itself (Builtin), those that CustomResourceDefinitions
// declare (Definitions), and those of an OpenAPI document of a cluster (OpenAPI). The problems that it
// finds are duplicate keys of lists, fields that the type does not declare, values of
// another type, and, for kinds that client-go has, values that cannot be decoded.
//
// It knows no client and no API of ours. docs/reference/manifests.md says what becomes of
// each shape.
package applycheck
