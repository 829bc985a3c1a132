// Package catalog reconciles ClusterCatalogs. It pulls their images, makes content and index from
// them, and reports the result in status.
//
// Every replica has the content and serves it. The leader resolves the image of a catalog and
// writes the status. The other replicas follow the status. If OLM's catalogd has a lease, all
// replicas read from catalogd instead.
package catalog
