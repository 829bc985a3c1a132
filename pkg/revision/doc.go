// Package revision says what a ClusterExtensionRevision means to the other parts of the
// program: which manifests it refers to and how they are found in the store, what
// history keeps of it, which work it is for the engine. It is pure: no client, no
// clock, no access to a store. The registry, the server and the controllers ask it, and
// so do not need each other.
//
// Revisions have the type of the API's version, as all clients see them; FromHub
// converts those of the registry.
package revision
