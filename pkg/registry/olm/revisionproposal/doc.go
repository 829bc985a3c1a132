// Package revisionproposal serves the effect of a revision that is not stored. The subresource
// proposal takes a revision, runs its create as a dry-run, and answers with a diff.
package revisionproposal
