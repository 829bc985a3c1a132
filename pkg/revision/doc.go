// Package revision interprets a ClusterExtensionRevision for the other parts of the program: the
// manifests that it refers to and their keys in the store, the row that history keeps of it, and
// its work for the engine. It is pure: no client, no clock, no access to a store. The registry, the
// server and the controllers use it, and so do not need each other.
//
// Revisions have the versioned type of the API, as all clients see them; FromHub converts those of
// the registry.
package revision
