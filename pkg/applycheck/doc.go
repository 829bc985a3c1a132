// Package applycheck checks without a cluster whether server-side apply can take a manifest. It
// uses the types by which kube-apiserver merges fields: of Kubernetes (Builtin), of
// CustomResourceDefinitions (Definitions), and of a cluster's OpenAPI document (OpenAPI). It finds
// duplicate keys of lists, undeclared fields and values of a wrong type. For kinds of client-go, it
// also finds values that cannot be decoded.
//
// It has no client and does not depend on Penstock's API. docs/reference/manifests.md lists the
// findings.
package applycheck
