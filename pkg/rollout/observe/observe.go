// Package observe caches the state of the objects in a target cluster. Its watches, by label and by
// name, are shared by the chains and reference-counted. If no healthy watch can answer a question,
// the answer is Unknown, never Absent.
package observe

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// Presence is the knowledge about an object's existence.
type Presence string

const (
	// Unknown means that the watch has not synced, or fails.
	Unknown Presence = "Unknown"
	// Absent means that a synced and healthy watch does not have the object. A watch by label does
	// not show objects without the label: only a create-only write reveals them.
	Absent Presence = "Absent"
	// Present means that a watch has the object.
	Present Presence = "Present"
)

// Entry is the kept part of one Apply entry of an object's managedFields.
type Entry struct {
	// Manager is the field manager.
	Manager string
	// Digest is the digest of the entry's apiVersion, fields and time. While it is unchanged, no
	// value of this manager has changed through the API: the server removes a field from its
	// manager's entry when another manager changes it.
	Digest string
}

// Observation is the kept part of a live object.
type Observation struct {
	ID              manifest.ID
	UID             types.UID
	ResourceVersion string
	// Generation is 0 for kinds without one.
	Generation int64
	// Deleting is true once the object has a deletion timestamp.
	Deleting bool
	// Finalizers of an object that is being deleted.
	Finalizers []string
	// Chain is the value of the chain label, or empty.
	Chain string
	// Applied is the value of the applied annotation, or empty.
	Applied manifest.Digest
	// Keep is true when the object asks to be released instead of deleted.
	Keep bool
	// Installed is true if a mark shows that an extension was installed with the object: by Helm,
	// OLM or Penstock.
	Installed bool
	// Stale is true if the watch of the object is outdated: the object may have changed or been
	// deleted.
	Stale bool
	// Wiped is true if managedFields are empty: a client removed them, or the server of the kind
	// keeps none. A newly created or applied object always has some.
	Wiped bool
	// Controller is the controller owner reference, or nil.
	Controller *metav1.OwnerReference
	// Entries are the Apply entries of Penstock's field managers, without subresources.
	Entries []Entry
	// Managed is a copy of managedFields for objects that are watched by name, otherwise nil. An
	// adoption reads the previous managers from it.
	Managed []metav1.ManagedFieldsEntry
	// Object has the fields that the probes of the kind read; nil without a probe. It is shared and
	// must not be changed.
	Object *unstructured.Unstructured
	// Kept are the parts of Object that were kept; nil means all.
	Kept *probe.Reads
	// End is the result of an absent Job; nil if no watch saw its deletion.
	End *End
}

// Entry returns the entry of one field manager.
func (o *Observation) Entry(manager string) (Entry, bool) {
	for _, e := range o.Entries {
		if e.Manager == manager {
			return e, true
		}
	}
	return Entry{}, false
}

// Interest is an object whose events an owner wants.
type Interest struct {
	ID      manifest.ID
	Version string
	// Reads are the parts of objects of this kind to keep; the zero value keeps only metadata. All
	// interests in a kind are joined.
	Reads probe.Reads
	// ByName watches this one object, with or without the chain label. It is for objects that are
	// wanted but do not belong to the chain (yet).
	ByName bool
}

// GroupVersionKind returns the kind and version to watch.
func (i Interest) GroupVersionKind() schema.GroupVersionKind {
	return i.ID.GroupKind().WithVersion(i.Version)
}
