// Package revisionproposal serves the effect of a revision that is not stored. The subresource
// proposal takes a revision, tries its create, and answers with a diff.
package revisionproposal
