// Package clustercatalog defines the kind ClusterCatalog, by which users choose the catalogs of a
// cluster: its types, its CustomResourceDefinition, and its status after a pull. It is pure.
package clustercatalog
