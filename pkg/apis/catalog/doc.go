// +k8s:deepcopy-gen=package
// +groupName=catalog.penstock.dev

// Package catalog is the hub version of the catalog.penstock.dev API: the form that the
// registry works on. It is never encoded; field names of what clients see are in package
// v1alpha1.
package catalog
