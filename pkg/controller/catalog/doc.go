// Package catalog brings about what ClusterCatalogs ask for: it pulls their images, makes
// content and index of them, and says in status what came of it.
//
// Every replica has the content and serves it. The one that leads decides which image a
// catalog is and writes the status; the others follow that status. Where OLM's catalogd has
// a lease, it decides, and all replicas read what it serves.
package catalog
