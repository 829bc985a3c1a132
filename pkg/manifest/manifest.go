// Package manifest represents one Kubernetes object as its author wrote it: its identity, its
// canonical JSON and its digest. It needs no client and no scheme.
package manifest

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ID identifies an object in a cluster. It has no version, because the same object is served in
// several versions.
type ID struct {
	Group     string
	Kind      string
	Namespace string
	Name      string
}

// Compare orders IDs by group, kind, namespace and name.
func (id ID) Compare(other ID) int {
	for _, pair := range [...][2]string{{id.Group, other.Group}, {id.Kind, other.Kind}, {id.Namespace, other.Namespace}, {id.Name, other.Name}} {
		if order := strings.Compare(pair[0], pair[1]); order != 0 {
			return order
		}
	}
	return 0
}

// GroupKind returns the kind of the object.
func (id ID) GroupKind() schema.GroupKind {
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}
}

// IsSecret reports whether the object is a Secret of the core group, whose content is confidential.
func (id ID) IsSecret() bool {
	return id.Group == "" && id.Kind == "Secret"
}

// IsDefinition reports whether the object is a CustomResourceDefinition.
func (id ID) IsDefinition() bool {
	return id.Group == "apiextensions.k8s.io" && id.Kind == "CustomResourceDefinition"
}

// DefinesKindsOf reports whether the object is a CustomResourceDefinition of a group: its name is
// the plural of its kind, a dot, and the group.
func (id ID) DefinesKindsOf(group string) bool {
	_, of, _ := strings.Cut(id.Name, ".")
	return id.IsDefinition() && of == group
}

// IsNamespace reports whether the object is the namespace with this name.
func (id ID) IsNamespace(name string) bool {
	return id.Group == "" && id.Kind == "Namespace" && id.Name == name
}

// String returns text for users: "Deployment.apps argocd/server".
func (id ID) String() string {
	var b strings.Builder
	b.WriteString(id.GroupKind().String())
	b.WriteByte(' ')
	if id.Namespace != "" {
		b.WriteString(id.Namespace)
		b.WriteByte('/')
	}
	b.WriteString(id.Name)
	return b.String()
}

// Digest identifies the content of a manifest: "sha256:<hex>" over its canonical JSON, or
// "hmac-sha256:<hex>" for a Secret. The key prevents attackers from guessing content by hashing
// candidates.
type Digest string

// Ref identifies an object and its desired content.
type Ref struct {
	ID
	// Version of the API in which the manifest is written, such as "v1".
	Version string
	Digest  Digest
}

// APIVersion returns group and version as manifests write them.
func (r Ref) APIVersion() string {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}.String()
}

// GroupVersionKind returns the kind and version in which the manifest is written.
func (r Ref) GroupVersionKind() schema.GroupVersionKind {
	return r.GroupKind().WithVersion(r.Version)
}

// Object is an immutable manifest: JSON must not be changed.
type Object struct {
	Ref
	// JSON is canonical: it has sorted keys, no insignificant white space, and none of the fields
	// that a server sets.
	JSON []byte
}
