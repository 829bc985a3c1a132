// Package revisionimport takes a chain of another store in: its revisions, their
// manifests and its history, from an archive (see package archive). It is the
// subresource import of revisionhistories, and the only way in which a revision
// comes into the store with a past.
//
// A chain is taken in whole or not at all. The archive is read to its end, and
// every revision of it admitted as a create by the caller, before anything can be
// seen. Then the chain's head is made, which takes its numbers and names the
// archive; then the records, the newest first, so that at any moment what is
// there means the same as when all are: an older revision has no say in what a
// newer one does. Whoever is interrupted does it again: the uids follow from the
// archive.
//
// What comes with an archive is what somebody says, and gives nobody a right: the
// requester of an imported revision is who imports it. Nor does it delete
// anything: an inventory is made by rolling out, and none is imported.
package revisionimport
