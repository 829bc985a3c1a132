// Package revisionproposal serves what a revision would change that is not stored: the
// subresource proposal takes one, tries its create, and answers with a diff.
package revisionproposal
