// Package revisionhistory serves the history of an extension: as the subresource history of each
// revision, and as the virtual resource revisionhistories, by the extension's name. The virtual
// resource answers even if all revisions are deleted. The history combines the head's rows with the
// existing revisions.
package revisionhistory
