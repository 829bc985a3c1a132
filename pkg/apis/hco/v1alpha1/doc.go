// +k8s:openapi-gen=true
// +k8s:openapi-model-package=com.github.penstock-project.penstock.pkg.apis.hco.v1alpha1
// +k8s:deepcopy-gen=package
// +k8s:conversion-gen=github.com/penstock-project/penstock/pkg/apis/hco
// +k8s:defaulter-gen=TypeMeta
// +groupName=hco.kubevirt.io

// Package v1alpha1 is the served version of the hco.kubevirt.io API: plans that configure objects
// of other operators, reviewed before they are executed. The server works on the hub version in the
// parent package.
package v1alpha1
