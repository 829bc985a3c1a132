// Package clusterextensionrollout serves ClusterExtensionRollouts: records of changes to many
// clusters. Penstock writes them, and people decide about them by the subresources approve, halt,
// resume, retry and skip.
package clusterextensionrollout
