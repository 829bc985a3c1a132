// Package extension creates revisions for ClusterExtensions. It chooses a bundle, renders and
// checks its objects, and creates the next revision as the user who wrote the extension. Package
// chain rolls the revision out.
//
// It runs on the leader. At rest it sends no request: it watches extensions, revisions and
// catalogs, and processes an extension when one of its inputs changes.
//
// It writes three kinds of object. It writes revisions as a user, by impersonation on the loopback
// of this process. It writes proposals, which are Paused revisions without an approval, as this
// process. And it writes the status of extensions.
package extension
