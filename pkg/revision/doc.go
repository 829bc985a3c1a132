// Package revision interprets a ClusterExtensionRevision for the other packages. It returns the
// manifests that a revision refers to, their keys in the store, the row of its history, and its
// work for the engine. It has no client, no clock and no access to a store. The registry, the
// server and the controllers use it, and so do not need each other.
//
// Revisions have the versioned type of the API, as clients see them. FromHub converts revisions of
// the registry.
package revision
