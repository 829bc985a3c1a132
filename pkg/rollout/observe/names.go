package observe

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Names are the labels and annotations that mark our objects.
type Names struct {
	// ChainLabel is the label whose value is an object's chain. A watch by label does not show
	// objects without it. It is empty if all objects are watched by name.
	ChainLabel string
	// AppliedAnnotation holds the digest of the manifest that was applied.
	AppliedAnnotation string
	// TeardownAnnotation, with the value Orphan, requests that the object is released instead of
	// deleted; empty for none.
	TeardownAnnotation string
	// ProtectLabel, with the value true on a namespace, protects objects of a chain from other
	// chains; empty for none.
	ProtectLabel string
	// TakeOverAnnotation is the annotation that names the chains from which a layer may take
	// protected objects. The engine only mentions it in messages.
	TakeOverAnnotation string
	// ManagerPrefix is the prefix of the field managers of all chains.
	ManagerPrefix string
}

// orphan is the value of TeardownAnnotation that keeps an object.
const orphan = "Orphan"

// Live is an object that a server returned, with its kind: an Unstructured, or a
// PartialObjectMetadata with the object's TypeMeta (see targetclient.Client.Apply).
type Live interface {
	metav1.Object
	runtime.Object
}

// Observe converts a response to an observation. Unlike the observations of watches, its Object is
// nil. Digests of entries do not depend on the response's encoding.
func (n Names) Observe(live Live) Observation {
	return *n.observe(live.GetObjectKind().GroupVersionKind().GroupKind(), live)
}

// observe is Observe for a given kind: in a response, the kind of metadata is
// PartialObjectMetadata.
func (n Names) observe(kind schema.GroupKind, live metav1.Object) *Observation {
	o := &Observation{
		ID: manifest.ID{
			Group:     kind.Group,
			Kind:      kind.Kind,
			Namespace: shared(live.GetNamespace()),
			Name:      live.GetName(),
		},
		UID:             live.GetUID(),
		ResourceVersion: live.GetResourceVersion(),
		Generation:      live.GetGeneration(),
		Deleting:        live.GetDeletionTimestamp() != nil,
		Chain:           shared(live.GetLabels()[n.ChainLabel]),
		Applied:         manifest.Digest(live.GetAnnotations()[n.AppliedAnnotation]),
		Keep:            n.TeardownAnnotation != "" && live.GetAnnotations()[n.TeardownAnnotation] == orphan,
		Installed:       n.installed(live),
		Wiped:           len(live.GetManagedFields()) == 0,
		Controller:      controllerOf(live),
		Entries:         n.entries(live.GetManagedFields()),
	}
	if o.Deleting {
		o.Finalizers = live.GetFinalizers()
	}
	return o
}

// ours reports whether an entry is an Apply entry of one of our field managers.
func (n Names) ours(e metav1.ManagedFieldsEntry) bool {
	return e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" && strings.HasPrefix(e.Manager, n.ManagerPrefix)
}

// entries returns the Apply entries of our field managers.
func (n Names) entries(managed []metav1.ManagedFieldsEntry) []Entry {
	var entries []Entry
	for _, e := range managed {
		if n.ours(e) {
			entries = append(entries, Entry{Manager: shared(e.Manager), Digest: entryDigest(e)})
		}
	}
	return entries
}

// entryDigest hashes apiVersion, time and fields of an entry. 128 bits suffice to distinguish
// states of one object; creating a collision needs the right to write the object anyway.
func entryDigest(e metav1.ManagedFieldsEntry) string {
	hash := sha256.New()
	hash.Write([]byte(e.APIVersion))
	hash.Write([]byte{0})
	if e.Time != nil {
		hash.Write([]byte(e.Time.UTC().Format(time.RFC3339)))
	}
	hash.Write([]byte{0})
	if e.FieldsV1 != nil {
		hash.Write(sortedJSON(e.FieldsV1.GetRawBytes()))
	}
	return base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:16])
}

// sortedJSON sorts the keys of JSON. Servers keep the order of fields in managedFields for built-in
// kinds and sort them for custom resources, and Go sorts decoded maps. Values that are not JSON
// stay unchanged.
func sortedJSON(raw []byte) []byte {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return raw
	}
	sorted, err := json.Marshal(value)
	if err != nil {
		return raw
	}
	return sorted
}

func controllerOf(live metav1.Object) *metav1.OwnerReference {
	// The copy may be changed. Equal strings are shared, because one controller owns many objects.
	controller := metav1.GetControllerOf(live)
	if controller == nil {
		return nil
	}
	controller.APIVersion = shared(controller.APIVersion)
	controller.Kind = shared(controller.Kind)
	controller.Name = shared(controller.Name)
	controller.UID = unique.Make(controller.UID).Value()
	return controller
}

func shared(s string) string { return unique.Make(s).Value() }
