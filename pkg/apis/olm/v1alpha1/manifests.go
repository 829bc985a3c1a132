package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ManifestListKind is the kind of RevisionManifestList on the wire. kubectl
// asks for the REST mapping of a list's own kind before it looks at its items,
// and knows the kind List in every group and version, and no other kind that is
// not a resource. (client-go, NewDiscoveryRESTMapper.)
const ManifestListKind = "List"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionManifestList holds the manifests of a revision in rollout order, as
// its subresource manifests returns them; `kubectl apply -f` takes it as it is.
// Its kind is List.
type RevisionManifestList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata; it is empty.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the manifests.
	Items []runtime.RawExtension `json:"items"`
}

// +k8s:conversion-gen:explicit-from=net/url.Values
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionManifestsOptions are the query parameters of a revision's subresource
// manifests. Each that is given narrows what is returned.
type RevisionManifestsOptions struct {
	metav1.TypeMeta `json:",inline"`
	// objectKind returns only objects of this kind: "Deployment", or
	// "Deployment.apps" with its group.
	// +optional
	ObjectKind string `json:"objectKind,omitempty"`
	// objectNamespace returns only objects of this namespace.
	// +optional
	ObjectNamespace string `json:"objectNamespace,omitempty"`
	// objectName returns only objects of this name.
	// +optional
	ObjectName string `json:"objectName,omitempty"`
}

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionManifest is one object of a revision. Its name is
// <revision>:<kind>.<group>:<namespace>:<name>, such as
// argocd-2:Deployment.apps:argocd:server, or
// argocd-2:ClusterRole.rbac.authorization.k8s.io::server for an object without a
// namespace. The group may be left out where the kind is in one group only.
type RevisionManifest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name, with the group, and nothing else.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// revision is the name of the revision.
	Revision string `json:"revision"`
	// phase is the name of the phase that the object is in.
	Phase string `json:"phase"`
	// digest of the manifest.
	Digest string `json:"digest"`
	// size of the manifest in bytes.
	Size int64 `json:"size"`
	// object is the manifest.
	Object Manifest `json:"object"`
}
