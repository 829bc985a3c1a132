// Package extensionset has the type ClusterExtensionSet. A set requests one ClusterExtension on
// each of many clusters. The package has no client and no clock.
//
//	types.go       the type
//	definition.go  its CustomResourceDefinition
//	validate.go    the checks that the schema cannot make
//	child.go       the ClusterExtension of one cluster
package extensionset
