// +k8s:deepcopy-gen=package
// +groupName=hco.kubevirt.io

// Package hco is the hub version of the hco.kubevirt.io API: the form that the
// registry, its strategies and admission work on. It is never encoded; field
// names and defaults of what clients see are in package v1alpha1.
package hco
