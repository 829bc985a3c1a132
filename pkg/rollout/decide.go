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

// Action is the action for one object. The package comment lists the places that a new one needs.
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
	// Collision: an object of another owner, which we must not touch.
	Collision Action = "Collision"
	// Deferred: unknown or impossible for now; an event will follow.
	Deferred Action = "Deferred"
	// Shared: a Shared object, to be looked at and perhaps written.
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

// Decision is an action and, for Collision and Deferred, why.
type Decision struct {
	Action  Action
	Message string
}

// Seen is the known state of a live object.
type Seen struct {
	Presence observe.Presence
	// Observation of a present object. For an absent object, its ResourceVersion may be the version that
	// the watch has reached.
	observe.Observation
	// Version is the API version in which a present object was read; empty for an object from a
	// watch.
	Version string
	// Late is true when the watch has not reached our last write: only the facts that the inventory
	// recorded then are known.
	Late bool
}

// Identity has the names under which a chain writes.
type Identity struct {
	// Chain is the value of the chain label.
	Chain string
	// Manager is the field manager: a prefix that all chains share, and the chain.
	Manager string
}

// managerOf returns the field manager of another chain.
func (i Identity) managerOf(chain string) string {
	return strings.TrimSuffix(i.Manager, i.Chain) + chain
}

// Decide chooses the action for one object. Memo is the object's entry in the inventory, or nil.
// Decide is a function of its arguments alone, and the only place for such decisions.
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
			return Decision{Action: Idle} // a Job that removed itself
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

// decideOurs is the drift rule: while our Apply entry in managedFields is the one
// we recorded, nobody changed a value of ours through the API.
func decideOurs(who Identity, step stage.Step, seen observe.Observation, memo *Entry) Decision {
	if memo == nil || memo.UID != seen.UID || memo.Digest != step.Digest {
		// New content, or the write that made this object was not recorded: an
		// apply of the same content costs one request and changes nothing.
		return Decision{Action: Update}
	}
	// Without an entry its digest is empty, as it is in the record of kinds whose
	// server keeps no managedFields.
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
		// It was ours. Somebody took it, or made another one in its place, after us: taking
		// it back unasked would be a fight.
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

// handBack says how an object that was replaced comes back to its extension. Nobody is advised to
// delete what holds data.
func handBack(id manifest.ID) string {
	switch id.Kind {
	case "PersistentVolumeClaim", "PersistentVolume", "Secret", "Namespace", "CustomResourceDefinition":
		return "with the label and the annotation of the extension, as in a backup, it is taken over again"
	default:
		return "when it is deleted, it is made again"
	}
}

// restored is true for an object that a restore from a backup brought back: it has the label and
// the annotation of the chain, and another uid and author. A record says that the chain made an
// object of this name. Without a record, as in another cluster, the annotation has to name the
// manifest that is to be applied: a copy of an object under another name has that of the
// original. Keyed digests of another store are compared by nothing here (see adopt).
func (i Identity) restored(step stage.Step, seen observe.Observation, memo *Entry) bool {
	if seen.Chain != i.Chain || seen.Applied == "" || seen.Controller != nil || len(seen.Entries) > 0 {
		return false
	}
	return memo != nil && !memo.Intent() || seen.Applied == step.Digest || seen.Applied.Keyed()
}

// Owns reports whether a live object is the chain's, and if not, in words, the owner. Memo is the
// object's entry in the inventory, or nil.
func (i Identity) Owns(seen observe.Observation, memo *Entry) (ours bool, owner string) {
	recorded := memo != nil && !memo.Intent() && memo.UID == seen.UID
	if seen.Chain != "" && seen.Chain != i.Chain {
		// Another chain that has taken it over has an entry of its own. A label
		// alone is an edit, and is repaired as any other.
		if _, applied := seen.Entry(i.managerOf(seen.Chain)); applied || !recorded {
			return false, fmt.Sprintf("belongs to the extension %q", seen.Chain)
		}
	}
	if recorded {
		return true, ""
	}
	// Without a record we recognise our own write by its three marks: this is the crash
	// between the write and its record. Of an object that we meant to write one may be
	// gone: somebody was faster than the process that came back. A user who may write
	// the object can forge marks, and so hand it to the chain, with all that the chain
	// then does to it.
	if lost := i.marksLost(seen); lost == 0 || lost == 1 && memo != nil && i.mayHaveLost(seen) {
		return true, ""
	}
	if c := seen.Controller; c != nil {
		return false, controlledBy(c)
	}
	if _, wrote := seen.Entry(i.Manager); wrote {
		return false, "was created by this extension, which has left it to others since, as create-only objects are"
	}
	return false, "was not made by this extension"
}

// MayRemove returns true for the very object that the chain wrote, recorded or not, unless another
// owner has taken it since. Otherwise it names that owner.
func (i Identity) MayRemove(entry Entry, seen observe.Observation) (ours bool, owner string) {
	ours, owner = i.Owns(seen, &entry)
	if c := seen.Controller; ours && c != nil {
		return false, controlledBy(c)
	}
	return ours, owner
}

// marksLost counts which of the marks that our write leaves an object does not have: the
// chain's label, the annotation, and our field manager's entry.
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

// mayHaveLost is true for an object of which one mark may be gone by an edit. One that
// somebody made anew as a copy, or that has come to another chain, has the label and the
// annotation by the same way, and its author in managedFields; one with a controller is in
// other hands.
func (i Identity) mayHaveLost(seen observe.Observation) bool {
	_, found := seen.Entry(i.Manager)
	return (found || seen.Wiped) && seen.Controller == nil
}

func controlledBy(controller *metav1.OwnerReference) string {
	return fmt.Sprintf("is controlled by %s %q", controller.Kind, controller.Name)
}

// newest returns the observation, or what the inventory knows better: a watch
// lags behind the responses to our own writes. Decide expects to be given it.
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

// predecessor is true for an object that had the name before ours was made.
func predecessor(seen observe.Observation, memo *Entry) bool {
	return memo != nil && !memo.Intent() && memo.UID != seen.UID && older(seen.ResourceVersion, memo.ResourceVersion)
}

// older compares two resource versions of one resource. They are comparable
// numbers since Kubernetes 1.35 says so (KEP-5504), and always were in etcd.
// A version that is no such number is not older.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// entryOf records what an apply without some fields left.
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
