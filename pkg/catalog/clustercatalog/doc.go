// Package clustercatalog knows ClusterCatalogs, the objects by which people say which
// catalogs a cluster has: their types, the definition that a cluster needs to have them, and
// how their status follows from what was done. It is pure.
package clustercatalog
