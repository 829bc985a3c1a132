package olm

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Manifest is any Kubernetes object, as the JSON it was sent as.
type Manifest struct {
	// Raw is the object in JSON.
	Raw []byte
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionManifestList holds the manifests of a revision in rollout order.
type RevisionManifestList struct {
	metav1.TypeMeta
	metav1.ListMeta
	// Items are the manifests, each in Raw.
	Items []runtime.RawExtension
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionManifestsOptions narrows what the subresource manifests returns; an
// empty field narrows nothing.
type RevisionManifestsOptions struct {
	metav1.TypeMeta
	// ObjectKind is a kind, "Deployment", or a kind with its group,
	// "Deployment.apps".
	ObjectKind string
	// ObjectNamespace is a namespace.
	ObjectNamespace string
	// ObjectName is an object's name.
	ObjectName string
}
