// Package clusterextensionrevision serves ClusterExtensionRevisions: the
// resource, its status and its manifests. Other subresources are packages beside it
// (revisiondiff, revisionhistory, revisionrollback, revisionimport); how bodies are read
// and how much of them at once is pkg/requestbody.
//
// A revision lists its objects by identity and digest. Where a client sends
// manifests inline, they become digests before anything compares, validates or
// stores the request (filter.go, inline.go), so that the same manifests again
// are no change for server-side apply, PUT and every kind of patch. The
// manifests themselves wait in the request's context (staged.go) until
// validating admission has agreed, and are then stored as one pack, before the
// revision that names them (storage.go).
package clusterextensionrevision
