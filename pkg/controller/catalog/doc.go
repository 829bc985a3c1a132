// Package catalog reconciles ClusterCatalogs. It pulls their images, makes content and index from
// them, and reports the result in status.
//
// Every replica has the content and serves it. The leader resolves the image of a catalog and
// writes the status; the other replicas follow the status. Where OLM's catalogd has a lease,
// catalogd decides, and all replicas read from catalogd.
package catalog
