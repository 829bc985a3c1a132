// Package revisionobjects serves the subresource objects of revisions: how each object of a
// revision is in the cluster now, as far as the caller may get it. Nothing of it is stored.
package revisionobjects
