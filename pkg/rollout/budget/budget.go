// Package budget is the rule of the deletion budget, as a function of values. It decides which
// objects may be deleted now, and which deletions a user must acknowledge.
package budget

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Objects is how many objects a large chain may lose within Window. A chain may lose a
// third of its objects, one at least, and no more than Objects or the percentage, whichever
// is more.
const (
	Objects = 20
	Window  = 10 * time.Minute
	third   = 3
	percent = 10
)

// Pending has the input of the budget: objects of a chain to delete, and the objects that stay.
type Pending struct {
	// Objects that are to go, with the revision whose content each has.
	Objects map[manifest.ID]int64
	// Kept are the objects that the chain has in the cluster and that its layers list.
	Kept []manifest.ID
	// Emptied is true when no layer lists anything.
	Emptied bool
	// Listed returns what a revision that is no layer lists, and whether that is known; nil
	// knows of none.
	Listed func(revision int64) ([]manifest.ID, bool)
	// Spent is the loss within the window.
	Spent int
	// Empty are definitions without instances: nothing goes with them.
	Empty map[manifest.ID]bool
}

// Reason why somebody has to answer for an object.
type Reason string

const (
	// Emptied is for all objects when nothing is left of the chain.
	Emptied Reason = "emptied"
	// Many is for all objects when too many are lost.
	Many Reason = "many"
	// KeepsOthers is for an object that keeps others, or data: it goes with them.
	KeepsOthers Reason = "kept"
	// LastWorkload is for workloads when none is left.
	LastWorkload Reason = "last workload"
)

// Decision has the objects to delete and those to ask for.
type Decision struct {
	// Asks has the objects that somebody has to answer for. All others may go.
	Asks map[manifest.ID]Reason
	// Loss is the loss that counts, and Limit how much of it is allowed within the window.
	Loss, Limit int
	// Charge is the part of Loss that nobody has to answer for.
	Charge int
}

// Judge is the rule of the deletion budget. docs/reference/rollout.md states it.
//
//   - What is lost of a kind is how many objects of it a replaced revision had more than
//     the chain keeps; of several such revisions the largest difference counts.
//   - Objects that keep others or data (Keeps), and workloads when none stays, count each,
//     whatever comes in their place. A definition without instances keeps nothing.
//   - When nothing is listed any more, or more is lost than the limit, all objects are
//     asked for; otherwise those that count each.
func (g Pending) Judge() Decision {
	found := Decision{Asks: map[manifest.ID]Reason{}}
	for id := range g.Objects {
		if why := g.alone(id); why != "" {
			found.Asks[id] = why
		}
	}
	lost, objects := g.measure()
	found.Loss, found.Limit = lost+len(found.Asks), limitOf(objects)
	all := Reason("")
	switch {
	case g.Emptied:
		all = Emptied
	case g.Spent+found.Loss > found.Limit:
		all = Many
	default:
		found.Charge = lost
		return found
	}
	for id := range g.Objects {
		found.Asks[id] = all
	}
	return found
}

// WouldAsk reports whether somebody would have to answer when all of one revision is there, and all
// of a later one takes its place.
func WouldAsk(former, wanted []manifest.ID) bool {
	g := Pending{Objects: map[manifest.ID]int64{}, Kept: wanted, Emptied: len(wanted) == 0}
	g.Listed = func(int64) ([]manifest.ID, bool) { return former, true }
	stays := make(map[manifest.ID]bool, len(wanted))
	for _, id := range wanted {
		stays[id] = true
	}
	for _, id := range former {
		if !stays[id] {
			g.Objects[id] = 0
		}
	}
	return len(g.Judge().Asks) > 0
}

// alone is why an object is asked for by itself, empty when it is not.
func (g Pending) alone(id manifest.ID) Reason {
	switch {
	case Keeps(id) && !g.Empty[id]:
		return KeepsOthers
	case isWorkload(id) && !slices.ContainsFunc(g.Kept, isWorkload):
		return LastWorkload
	default:
		return ""
	}
}

// limitOf is how much a chain of so many objects may lose within the window.
func limitOf(objects int) int {
	return min(max(objects/third, 1), max(Objects, objects*percent/100))
}

// measure returns how many objects are lost, without those that are asked for by
// themselves, and how many the chain has: those that stay, or those of the largest
// replaced revision.
func (g Pending) measure() (lost, objects int) {
	replaced, unknown := g.revisions()
	most := map[schema.GroupKind]int{}
	for _, former := range replaced {
		objects = max(objects, len(former))
		for kind, n := range g.countKinds(former) {
			most[kind] = max(most[kind], n)
		}
	}
	kept, alone := g.countKinds(g.Kept), g.countKinds(unknown)
	for kind, n := range g.countKinds(slices.Collect(maps.Keys(g.Objects))) {
		lost += min(n, max(0, most[kind]-kept[kind])+alone[kind])
	}
	return lost, max(objects, len(g.Kept), len(unknown))
}

// revisions returns, for each revision whose objects are to go, those that it lists and
// that are there, with those that it has in common with what stays. When it is not known
// what it lists, its objects are among unknown: nothing counts as in their place.
func (g Pending) revisions() (replaced map[int64][]manifest.ID, unknown []manifest.ID) {
	there := make(map[manifest.ID]bool, len(g.Kept)+len(g.Objects))
	for _, id := range g.Kept {
		there[id] = true
	}
	for id := range g.Objects {
		there[id] = true
	}
	replaced = map[int64][]manifest.ID{}
	for id, number := range g.Objects {
		if _, done := replaced[number]; done {
			continue
		}
		var listed []manifest.ID
		var known bool
		if g.Listed != nil {
			listed, known = g.Listed(number)
		}
		if !known {
			unknown = append(unknown, id)
			continue
		}
		replaced[number] = slices.DeleteFunc(slices.Clone(listed), func(id manifest.ID) bool { return !there[id] })
	}
	return replaced, unknown
}

// countKinds counts objects by kind, without those that are asked for by themselves.
func (g Pending) countKinds(ids []manifest.ID) map[schema.GroupKind]int {
	counts := map[schema.GroupKind]int{}
	for _, id := range ids {
		if g.alone(id) == "" {
			counts[id.GroupKind()]++
		}
	}
	return counts
}

// Keeps is true for an object that other objects, or data, go with.
func Keeps(id manifest.ID) bool {
	switch id.GroupKind() {
	case schema.GroupKind{Kind: "Namespace"},
		schema.GroupKind{Kind: "PersistentVolumeClaim"},
		schema.GroupKind{Kind: "PersistentVolume"}:
		return true
	default:
		return id.IsDefinition()
	}
}

// isWorkload is true for what runs for as long as it exists. A Job ends by itself.
func isWorkload(id manifest.ID) bool {
	switch id.GroupKind() {
	case schema.GroupKind{Group: "apps", Kind: "Deployment"},
		schema.GroupKind{Group: "apps", Kind: "StatefulSet"},
		schema.GroupKind{Group: "apps", Kind: "DaemonSet"},
		schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		return true
	default:
		return false
	}
}

// Token names a set of objects that are to go: an answer counts for these and no
// others. The mark of each counts too, such as its uid.
func Token(ids []manifest.ID, mark func(manifest.ID) string) string {
	sorted := slices.SortedFunc(slices.Values(ids), manifest.ID.Compare)
	hash := sha256.New()
	for _, id := range sorted {
		fmt.Fprintf(hash, "%s %s\n", id, mark(id))
	}
	return fmt.Sprintf("%d-%s", len(ids), hex.EncodeToString(hash.Sum(nil)[:5]))
}
