// +k8s:deepcopy-gen=package
// +groupName=hco.kubevirt.io

// Package hco is the hub version of the hco.kubevirt.io API. The registry, its strategies and
// admission work on it. It is never encoded. Package v1alpha1 has the field names and defaults that
// clients see.
package hco
