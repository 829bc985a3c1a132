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

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionManifest is one object of a revision. Its name is
// <revision>:<kind>.<group>:<namespace>:<name>, such as
// argocd-2:Deployment.apps:argocd:server, or
// argocd-2:ClusterRole.rbac.authorization.k8s.io::server for an object without a
// namespace. The group may be left out where the kind is in one group only.
type RevisionManifest struct {
	metav1.TypeMeta
	// ObjectMeta has the name, with the group, and nothing else.
	metav1.ObjectMeta
	// Revision is the name of the revision.
	Revision string
	// Phase is the name of the phase that the object is in.
	Phase string
	// Digest of the manifest.
	Digest string
	// Size of the manifest in bytes.
	Size int64
	// Object is the manifest.
	Object Manifest
}
