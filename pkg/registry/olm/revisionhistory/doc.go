// Package revisionhistory serves the history of an extension: as the subresource history of each of
// its revisions, and as the virtual resource revisionhistories, by the extension's name. The latter
// answers even when all revisions are deleted. The history joins the rows in the head of the chain
// with the present revisions.
package revisionhistory
