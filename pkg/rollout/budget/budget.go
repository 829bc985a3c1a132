// Package budget is the rule of the deletion budget, as pure functions. It decides which objects
// may be deleted now, and which deletions a user must acknowledge.
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

// Objects is the number of objects that a large chain may lose within Window. A chain may lose a
// third of its objects, but at least one. The limit is at most Objects or the percentage, whichever
// is larger.
const (
	Objects = 20
	Window  = 10 * time.Minute
	third   = 3
	percent = 10
)

// Pending is the input of the budget: the objects of a chain to delete, and the objects that stay.
type Pending struct {
	// Objects are the objects to delete, with the revision whose content each has.
	Objects map[manifest.ID]int64
	// Kept are the objects that the chain has in the cluster and that its layers list.
	Kept []manifest.ID
	// Emptied is true when no layer lists any object.
	Emptied bool
	// Listed returns the objects of a revision that is not a layer, and whether they are known. If
	// Listed is nil, they are unknown.
	Listed func(revision int64) ([]manifest.ID, bool)
	// Spent is the number of objects lost within the window.
	Spent int
	// Empty are definitions without instances, whose deletion deletes nothing else.
	Empty map[manifest.ID]bool
}

// Reason is the reason why a user must confirm a deletion.
type Reason string

const (
	// Emptied is for all objects when the chain would have no objects left.
	Emptied Reason = "emptied"
	// Many is for all objects when too many objects would be lost.
	Many Reason = "many"
	// KeepsOthers is for an object that contains other objects or data, which would be deleted with
	// it.
	KeepsOthers Reason = "kept"
	// LastWorkload is for workloads when the chain would have no workload left.
	LastWorkload Reason = "last workload"
)

// Decision is the result of the budget.
type Decision struct {
	// Asks holds the objects whose deletion a user must confirm. All other objects may be deleted.
	Asks map[manifest.ID]Reason
	// Loss is the number of lost objects; Limit is the number allowed within the window.
	Loss, Limit int
	// Charge is the part of Loss that is allowed without confirmation.
	Charge int
}

// Judge applies the rule of the deletion budget. docs/reference/rollout.md states it.
//
//   - The loss of a kind is the difference between the objects that a replaced revision had and the
//     objects that the chain keeps. Of several revisions, the largest difference counts.
//   - Objects that contain other objects or data (Keeps), and workloads when none stays, each need
//     their own confirmation, even if new objects replace them. A definition without instances
//     contains nothing.
//   - If no layer lists an object, or the loss exceeds the limit, all deletions need a
//     confirmation. Otherwise only the objects of the second rule do.
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

// WouldAsk reports whether the replacement of one complete revision by another would need a
// confirmation.
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

func limitOf(objects int) int {
	return min(max(objects/third, 1), max(Objects, objects*percent/100))
}

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

// countKinds counts objects by kind, without objects that need their own confirmation.
func (g Pending) countKinds(ids []manifest.ID) map[schema.GroupKind]int {
	counts := map[schema.GroupKind]int{}
	for _, id := range ids {
		if g.alone(id) == "" {
			counts[id.GroupKind()]++
		}
	}
	return counts
}

// Keeps reports whether other objects, or data, are deleted with an object.
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

// isWorkload reports whether an object runs as long as it exists. A Job ends by itself.
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

// Token identifies a set of objects to delete. An acknowledgement is valid only for the same set
// with the same marks, such as uids.
func Token(ids []manifest.ID, mark func(manifest.ID) string) string {
	sorted := slices.SortedFunc(slices.Values(ids), manifest.ID.Compare)
	hash := sha256.New()
	for _, id := range sorted {
		fmt.Fprintf(hash, "%s %s\n", id, mark(id))
	}
	return fmt.Sprintf("%d-%s", len(ids), hex.EncodeToString(hash.Sum(nil)[:5]))
}
