// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.penstock-project.penstock.pkg.apis.olm.v1alpha1
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/penstock-project/penstock/pkg/apis/olm
// +k8s:defaulter-gen=TypeMeta
// +groupName=olm.operatorframework.io

// Package v1alpha1 is the served version of the olm.operatorframework.io API. Clients send and read
// it, and the store keeps it. The server works on the hub version in the parent package. Kinds that
// are not stored, such as RevisionDiff, exist in this package only. Only codecs, clients,
// controllers and users of such kinds should import it.
package v1alpha1
