package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ManifestListKind is the kind of RevisionManifestList on the wire. kubectl needs a REST mapping
// for the list's kind before it reads the items. In every group and version it knows only the kind
// List and the kinds of resources. (client-go, NewDiscoveryRESTMapper.)
const ManifestListKind = "List"

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionManifestList has the manifests of a revision in rollout order. The subresource manifests
// of a revision returns it, and `kubectl apply -f` accepts it. Its kind is List.
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

// RevisionManifestsOptions are the query parameters of the subresource manifests. They limit the
// answer to objects that match all of them.
type RevisionManifestsOptions struct {
	metav1.TypeMeta `json:",inline"`
	// objectKind limits the answer to objects of this kind: "Deployment", or "Deployment.apps" with
	// its group.
	// +optional
	ObjectKind string `json:"objectKind,omitempty"`
	// objectNamespace limits the answer to objects of this namespace.
	// +optional
	ObjectNamespace string `json:"objectNamespace,omitempty"`
	// objectName limits the answer to objects of this name.
	// +optional
	ObjectName string `json:"objectName,omitempty"`
}

// +genclient
// +genclient:nonNamespaced
// +genclient:onlyVerbs=get
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// RevisionManifest is one object of a revision. Its name is
// <revision>:<kind>.<group>:<namespace>:<name>, such as argocd-2:Deployment.apps:argocd:server. For
// a cluster-scoped object the namespace is empty:
// argocd-2:ClusterRole.rbac.authorization.k8s.io::server. The group can be left out if only one
// group has the kind.
type RevisionManifest struct {
	metav1.TypeMeta `json:",inline"`
	// metadata has the name, with the group, and nothing else.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// revision is the name of the revision.
	Revision string `json:"revision"`
	// phase is the name of the object's phase.
	Phase string `json:"phase"`
	// digest of the manifest.
	Digest string `json:"digest"`
	// size of the manifest, in bytes.
	Size int64 `json:"size"`
	// object is the manifest.
	Object Manifest `json:"object"`
}
