// Package revisionrollback serves the subresource rollback of revisions. A POST creates the next
// revision of a chain with the content of an older revision. The new revision passes the same
// checks as a create by the caller. Two checks are added: which revisions allow a rollback
// (rollback.go), and which versions a rollback must not remove (storedversions.go).
package revisionrollback
