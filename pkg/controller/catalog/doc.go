// Package catalog reconciles ClusterCatalogs: it pulls their images, makes content and
// index of them, and reports the result in status.
//
// Every replica has the content and serves it. The leader resolves the image
// of a catalog and writes the status; the other replicas follow that status.
// Where OLM's catalogd has a lease, it decides, and all replicas read what it
// serves.
package catalog
