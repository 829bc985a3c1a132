// Package extension makes revisions for ClusterExtensions. It chooses a bundle, renders and checks
// its objects, and creates the next revision in the name of the user who wrote the extension.
// Package chain rolls the revision out.
//
// It runs on the leader. At rest it sends no request: it watches extensions, revisions and
// catalogs, and processes an extension when one of its inputs has changed.
//
// It writes three kinds of object: revisions, in a user's name, by impersonation on the loopback of
// this process; proposals, which are Paused revisions without an approval, in the name of this
// process; and the status of extensions.
package extension
