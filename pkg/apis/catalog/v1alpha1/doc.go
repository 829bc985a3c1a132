// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.penstock-project.penstock.pkg.apis.catalog.v1alpha1
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=false
// +k8s:defaulter-gen=TypeMeta
// +groupName=catalog.penstock.dev

// Package v1alpha1 is the served version of the catalog.penstock.dev API: the packages in the
// catalogs of a cluster. The server does not store them, so the registry works on this version, and
// there is no hub version.
package v1alpha1
