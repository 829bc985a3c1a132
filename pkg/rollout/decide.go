package rollout

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// Action is the action for one object. The package comment lists the code that a new action needs.
type Action string

const (
	// Create the object; it must not exist.
	Create Action = "Create"
	// Update our object to new content.
	Update Action = "Update"
	// Adopt an object of another owner.
	Adopt Action = "Adopt"
	// Repair our object: another writer changed values that we apply.
	Repair Action = "Repair"
	// Verify our object: a change might concern our values.
	Verify Action = "Verify"
	// Idle: nothing to do.
	Idle Action = "Idle"
	// Collision: an object of another owner, which the chain must not change.
	Collision Action = "Collision"
	// Deferred: unknown or impossible for now; an event will trigger another pass.
	Deferred Action = "Deferred"
	// Shared: a Shared object, to be read and perhaps written.
	Shared Action = "Shared"
)

// writes reports whether an action may change the cluster.
func (a Action) writes() bool {
	switch a {
	case Create, Adopt, Update, Repair, Verify, Shared:
		return true
	default:
		return false
	}
}

// Decision is an action and, for Collision and Deferred, the reason.
type Decision struct {
	Action  Action
	Message string
}

// Seen is the known state of a live object.
type Seen struct {
	Presence observe.Presence
	// Observation of a present object. For an absent object, ResourceVersion may hold the version
	// that the watch has reached.
	observe.Observation
	// Version is the API version in which a present object was read; empty for an object from a
	// watch.
	Version string
	// Late is true when the watch has not reported our last write. Then only the facts that the
	// inventory recorded are known.
	Late bool
}

// Identity holds the names under which a chain writes.
type Identity struct {
	// Chain is the value of the chain label.
	Chain string
	// Manager is the field manager: a prefix that all chains share, followed by the chain.
	Manager string
}

// managerOf returns the field manager of another chain.
func (i Identity) managerOf(chain string) string {
	return strings.TrimSuffix(i.Manager, i.Chain) + chain
}

// Decide chooses the action for one object. memo is the object's entry in the inventory, or nil.
// Decide is a pure function, and the only place for such decisions.
func Decide(who Identity, step stage.Step, seen Seen, memo *Entry) Decision {
	if step.Policy.CreateOnly {
		return decideCreateOnly(seen)
	}
	if step.Policy.Own == stage.Shared {
		return decideShared(who, step, seen, memo)
	}
	switch seen.Presence {
	case observe.Absent:
		if memo != nil && memo.Finished != "" && memo.Digest == step.Digest {
			return Decision{Action: Idle} // a Job that deleted itself
		}
		if memo != nil && !memo.Intent() && older(seen.ResourceVersion, memo.ResourceVersion) {
			return Decision{Deferred, "waiting to see the object that was just written"}
		}
		return Decision{Action: Create}
	case observe.Present:
	default:
		return Decision{Deferred, "its kind is not being watched yet"}
	}
	ours, owner := who.Owns(seen.Observation, memo)
	switch {
	case seen.Deleting:
		return Decision{Deferred, "the existing object " + Terminating(seen.Finalizers)}
	case ours:
		return decideOurs(who, step, seen.Observation, memo)
	case who.restored(step, seen.Observation, memo):
		return Decision{Action: Adopt}
	default:
		return decideForeign(step, seen.Observation, memo, owner)
	}
}

// decideOurs is the drift rule: while the chain's Apply entry in managedFields equals the recorded
// entry, no writer has changed the chain's values through the API.
func decideOurs(who Identity, step stage.Step, seen observe.Observation, memo *Entry) Decision {
	if memo == nil || memo.UID != seen.UID || memo.Digest != step.Digest {
		// The manifest is new, or the write that created this object was not recorded. An apply of
		// the same content costs one request and changes nothing.
		return Decision{Action: Update}
	}
	// Without an entry, the digest is empty. It is also empty in the record of kinds whose server
	// keeps no managedFields.
	entry, _ := seen.Entry(who.Manager)
	if entry.Digest != memo.ManagedEntry || seen.Chain != who.Chain || seen.Applied != step.Digest {
		return Decision{Action: Repair}
	}
	if seen.Generation != memo.Generation || (seen.Generation == 0 && seen.ResourceVersion != memo.ResourceVersion) {
		return Decision{Action: Verify}
	}
	return Decision{Action: Idle}
}

// decideForeign is the collision rule.
func decideForeign(step stage.Step, seen observe.Observation, memo *Entry, owner string) Decision {
	controlled := seen.Controller != nil || seen.Chain != ""
	protection := "IfNoController or None"
	if controlled {
		protection = "None"
	}
	collision := Decision{Collision, fmt.Sprintf("exists already and %s; collision protection leaves it alone (the next revision takes it over with collisionProtection: %s)", owner, protection)}
	if memo != nil && !memo.Intent() {
		// The object was ours, and another writer has taken or replaced it since. Taking it back
		// without consent would start a fight.
		collision.Message = fmt.Sprintf("was replaced or taken over since it was applied: it %s (%s)", owner, handBack(step.ID))
		return collision
	}
	switch {
	case step.Policy.Adopt == stage.AdoptAlways,
		step.Policy.Adopt == stage.AdoptUncontrolled && !controlled:
		return Decision{Action: Adopt}
	default:
		return collision
	}
}

// handBack says how a replaced object returns to its extension. It never advises a user to delete
// an object that holds data.
func handBack(id manifest.ID) string {
	switch id.Kind {
	case "PersistentVolumeClaim", "PersistentVolume", "Secret", "Namespace", "CustomResourceDefinition":
		return "with the label and the annotation of the extension, as in a backup, it is taken over again"
	default:
		return "when it is deleted, it is made again"
	}
}

// restored reports whether the object was restored from a backup: it has the chain's label and
// annotation, but another uid and author. An inventory entry proves that the chain made an object
// of this name. Without one, as in another cluster, the annotation must name the desired manifest:
// a copy under another name has the annotation of the original. Keyed digests of another store
// cannot be compared here (see adopt).
func (i Identity) restored(step stage.Step, seen observe.Observation, memo *Entry) bool {
	if seen.Chain != i.Chain || seen.Applied == "" || seen.Controller != nil || len(seen.Entries) > 0 {
		return false
	}
	return memo != nil && !memo.Intent() || seen.Applied == step.Digest || seen.Applied.Keyed()
}

// Owns reports whether a live object belongs to the chain; if not, it describes the owner. memo is
// the object's entry in the inventory, or nil.
func (i Identity) Owns(seen observe.Observation, memo *Entry) (ours bool, owner string) {
	recorded := memo != nil && !memo.Intent() && memo.UID == seen.UID
	if seen.Chain != "" && seen.Chain != i.Chain {
		// A chain that has taken the object over has its own entry. A changed label alone is an
		// edit, which the engine repairs.
		if _, applied := seen.Entry(i.managerOf(seen.Chain)); applied || !recorded {
			return false, fmt.Sprintf("belongs to the extension %q", seen.Chain)
		}
	}
	if recorded {
		return true, ""
	}
	// Without a record, the engine recognises its own write by three marks, after a crash between
	// the write and its record. With an intent, one mark may be missing, because another writer may
	// have changed the object before the restart. A user who can write the object can forge the
	// marks, and so hand the object to the chain.
	if lost := i.marksLost(seen); lost == 0 || lost == 1 && memo != nil && i.mayHaveLost(seen) {
		return true, ""
	}
	if c := seen.Controller; c != nil {
		return false, controlledBy(c)
	}
	if _, wrote := seen.Entry(i.Manager); wrote {
		return false, "was created by this extension, and is left to other writers since, as create-only objects are"
	}
	return false, "was not made by this extension"
}

// MayRemove reports whether the chain wrote this very object (the write may be unrecorded), and no
// other owner has taken it since. If not, it describes the owner.
func (i Identity) MayRemove(entry Entry, seen observe.Observation) (ours bool, owner string) {
	ours, owner = i.Owns(seen, &entry)
	if c := seen.Controller; ours && c != nil {
		return false, controlledBy(c)
	}
	return ours, owner
}

// marksLost counts the missing marks of our write: the chain's label, the annotation, and the entry
// of our field manager.
func (i Identity) marksLost(seen observe.Observation) int {
	lost := 0
	if seen.Chain != i.Chain {
		lost++
	}
	if seen.Applied == "" {
		lost++
	}
	if _, found := seen.Entry(i.Manager); !found {
		lost++
	}
	return lost
}

// mayHaveLost reports whether an edit may have removed one mark of the object. Copies, and objects
// that another chain took over, have the label and annotation too, but another author in
// managedFields. An object with a controller belongs to that controller.
func (i Identity) mayHaveLost(seen observe.Observation) bool {
	_, found := seen.Entry(i.Manager)
	return (found || seen.Wiped) && seen.Controller == nil
}

func controlledBy(controller *metav1.OwnerReference) string {
	return fmt.Sprintf("is controlled by %s %q", controller.Kind, controller.Name)
}

// newest returns the observation, or the facts of the inventory if they are newer: a watch lags
// behind the responses to our own writes. Decide expects the result.
func newest(who Identity, seen observe.Observation, memo *Entry) observe.Observation {
	if memo == nil || memo.Intent() || memo.UID != seen.UID || !older(seen.ResourceVersion, memo.ResourceVersion) {
		return seen
	}
	return observe.Observation{
		ID:              seen.ID,
		UID:             memo.UID,
		ResourceVersion: memo.ResourceVersion,
		Generation:      memo.Generation,
		Chain:           who.Chain,
		Applied:         memo.Digest,
		Entries:         []observe.Entry{{Manager: who.Manager, Digest: memo.ManagedEntry}},
	}
}

// predecessor reports whether the observed object had the name before our object was created.
func predecessor(seen observe.Observation, memo *Entry) bool {
	return memo != nil && !memo.Intent() && memo.UID != seen.UID && older(seen.ResourceVersion, memo.ResourceVersion)
}

// older compares two resource versions of one resource. They are comparable numbers since
// Kubernetes 1.35 (KEP-5504), and always were in etcd. It returns false if a version is not such a
// number.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// entryOf returns the inventory entry after an apply without the yielded fields.
func entryOf(who Identity, step stage.Step, revision int64, rank int, seen observe.Observation, yielded []string) Entry {
	entry, _ := seen.Entry(who.Manager)
	return Entry{
		Version:         step.Version,
		UID:             seen.UID,
		Revision:        revision,
		Digest:          manifest.Digest(step.Digest),
		ManagedEntry:    entry.Digest,
		Generation:      seen.Generation,
		ResourceVersion: seen.ResourceVersion,
		Rank:            rank,
		Yielded:         yielded,
	}
}
