// Package revisionobjects serves the subresource objects of revisions: the current state of each
// object of a revision in the cluster, as far as the caller may get it. It stores nothing.
package revisionobjects
