// Package revisionimport takes a chain of another store in: its revisions, their
// manifests and its history, from an archive (see package archive). It is the
// subresource import of revisionhistories, and the only way in which a revision
// comes into the store with a past.
//
// A chain is taken in whole or not at all. The archive is read to its end, and every
// revision of it admitted as a create by the caller, before anything can be seen. Then
// the chain's head is written, which takes its numbers and names the archive; then the
// records, the newest first. So the records that exist always mean the same as all of
// them together, because an older revision does not change what a newer one does. After
// an interruption the caller imports again: the uids are derived from the archive.
//
// The content of an archive is not trusted and gives nobody a right: the requester of an
// imported revision is the importer. An import deletes nothing either: only a rollout
// writes an inventory, and none is imported.
package revisionimport
