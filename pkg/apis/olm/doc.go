// +k8s:deepcopy-gen=package
// +groupName=olm.operatorframework.io

// Package olm is the hub version of the olm.operatorframework.io API: the form
// that the registry, its strategies and admission work on. It is never encoded;
// field names and defaults of what clients see are in package v1alpha1.
package olm
