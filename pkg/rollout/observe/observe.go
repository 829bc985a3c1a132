// Package observe keeps the known state of the objects in a target cluster, in shared watches, by
// label and by name, reference-counted by the chains that use them. If no healthy watch can answer
// a question, the answer is Unknown, never Absent.
package observe

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// Presence is how much is known of an object's existence.
type Presence string

const (
	// Unknown: the watch that would tell has not synced, or is failing.
	Unknown Presence = "Unknown"
	// Absent: a synced and healthy watch does not have it. For a watch by label
	// this means "absent, or without the label": only a create-only write tells.
	Absent Presence = "Absent"
	// Present: it was seen.
	Present Presence = "Present"
)

// Entry is the kept part of one Apply entry of an object's managedFields.
type Entry struct {
	// Manager is the field manager.
	Manager string
	// Digest is over apiVersion, fields and time of the entry. While it stays
	// the same nobody changed a value of this manager through the API: the
	// server moves a field away from its manager, and so changes the entry,
	// when another one changes or removes the value.
	Digest string
}

// Observation is the kept part of a live object.
type Observation struct {
	ID              manifest.ID
	UID             types.UID
	ResourceVersion string
	// Generation is 0 for kinds without one.
	Generation int64
	// Deleting is true from the moment the object has a deletion timestamp.
	Deleting bool
	// Finalizers are those that an object that is being deleted waits for.
	Finalizers []string
	// Chain is the value of the chain label, or empty.
	Chain string
	// Applied is the value of the applied annotation, or empty.
	Applied manifest.Digest
	// Keep is true when the object asks to be left when it would be deleted.
	Keep bool
	// Installed is true when somebody says of the object that an extension was
	// installed with it: Helm, OLM, or Penstock.
	Installed bool
	// Stale is true when the watch that saw it cannot be believed any more: it may
	// have changed, or be gone.
	Stale bool
	// Wiped is true when managedFields are empty: somebody emptied them, or the server
	// of the kind keeps none. Objects that anybody else creates or applies have some.
	Wiped bool
	// Controller is the controller owner reference, or nil.
	Controller *metav1.OwnerReference
	// Entries are the Apply entries of Penstock's field managers, without
	// subresources.
	Entries []Entry
	// Managed are managedFields as they are, of objects that are watched by name:
	// when they are adopted, who kept them so far is read from it. It is nil where
	// it is not kept.
	Managed []metav1.ManagedFieldsEntry
	// Object is the part that the probes of the kind read, or nil where none does. It is shared:
	// nobody changes it.
	Object *unstructured.Unstructured
	// Kept says which parts of Object were kept; nil is all of it.
	Kept *probe.Reads
	// End is how an absent Job went; nil when no watch saw it go.
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

// Interest is an object that an owner wants to be told about.
type Interest struct {
	ID      manifest.ID
	Version string
	// Reads says which parts of objects of this kind to keep; the zero value is metadata only. The
	// reads of several interests in a kind are united.
	Reads probe.Reads
	// ByName watches this one object whether or not it has the chain label:
	// for objects that are wanted but not (yet) ours.
	ByName bool
}

// GroupVersionKind returns the kind and version to watch.
func (i Interest) GroupVersionKind() schema.GroupVersionKind {
	return i.ID.GroupKind().WithVersion(i.Version)
}
