// Package clusterextensionrollout serves ClusterExtensionRollouts, the records of changes to many
// clusters. Penstock writes them. Users decide about them by the subresources approve, halt,
// resume, retry and skip.
package clusterextensionrollout
