// Package revisionrollback serves the subresource rollback of revisions: a POST creates
// the next revision of a chain with the content of an older one. The new revision passes
// all that a create of a revision by the caller passes; what is added here is what may
// be gone back to (rollback.go), and what a rollback must not take away (storedversions.go).
package revisionrollback
