// Package clustercatalog has the kind ClusterCatalog, by which users choose the catalogs of a
// cluster: its types, its CustomResourceDefinition, and the status that follows from a pull. It is
// pure.
package clustercatalog
