// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.penstock-project.penstock.pkg.apis.olm.v1alpha1
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/penstock-project/penstock/pkg/apis/olm
// +k8s:defaulter-gen=TypeMeta
// +groupName=olm.operatorframework.io

// Package v1alpha1 is the served version of the olm.operatorframework.io API:
// what clients send and read, and what the store keeps. Nothing but the codecs,
// the clients and the controllers should import it, but for kinds that are not stored,
// such as RevisionDiff: the server works on the hub version in the package above, and
// those have none.
package v1alpha1
