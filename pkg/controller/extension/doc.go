// Package extension brings about what ClusterExtensions ask for: it chooses a bundle, makes
// objects of it, judges them, and creates the next revision in the name of the user who wrote the
// extension. Rolling out is for package chain.
//
// The leader does it. Nothing is asked at rest: extensions, the revisions of our API and the
// catalogs are watched, and an extension is looked at when one of its own has changed.
//
// It writes three things: revisions, in the name of somebody, by impersonation on the loopback
// of this process; proposals, which are Paused revisions that nobody has approved yet, in the
// name of this process; and the status of extensions.
package extension
