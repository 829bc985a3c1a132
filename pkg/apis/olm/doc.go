// +k8s:deepcopy-gen=package
// +groupName=olm.operatorframework.io

// Package olm is the hub version of the olm.operatorframework.io API. The registry, its strategies
// and admission work on it. It is never encoded. Package v1alpha1 has the field names and defaults
// that clients see.
package olm
