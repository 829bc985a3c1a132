// Package revisionimport imports a chain of another store from an archive (see package archive):
// its revisions, their manifests and its history. It is the subresource import of
// revisionhistories. Only an import can store a revision with a past.
//
// An import is all or nothing. The package reads the whole archive, and admits every revision as a
// create by the caller, before any revision is visible. Then it writes the head of the chain, which
// takes the numbers and names the archive. Then it writes the records, newest first. An older
// revision does not change the effect of a newer revision, so a part of the records always has the
// same effect as all of them. After an interruption the caller imports again: the uids derive from
// the archive.
//
// The content of an archive is not trusted and gives no rights: the requester of an imported
// revision is the importer. An import deletes nothing, because only a rollout writes an inventory,
// and an import has none.
package revisionimport
