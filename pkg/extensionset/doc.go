// Package extensionset has the type ClusterExtensionSet, which asks for one ClusterExtension on
// each of many clusters. It knows no client and no clock.
//
//	types.go       the type
//	definition.go  its CustomResourceDefinition
//	validate.go    the checks that the schema cannot make
//	child.go       the ClusterExtension of one cluster
package extensionset
