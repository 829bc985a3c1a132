// Package clusterextensionrevision serves ClusterExtensionRevisions: the resource, its status and
// its manifests. Other subresources have their own packages (revisiondiff, revisionhistory,
// revisionrollback, revisionimport). Package pkg/requestbody bounds the reading of bodies.
//
// A revision lists its objects by identity and digest. Manifests that a client sends inline become
// digests before anything compares, validates or stores the request (filter.go, inline.go). So
// equal manifests are no change for server-side apply, PUT and every kind of patch. The manifests
// wait in the request's context (staged.go) until validating admission has agreed. Then they are
// stored as one pack, before the revision that names them (storage.go).
package clusterextensionrevision
