package rollout

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// The deletion budget of a chain: a third of its objects may be lost within a window of
// time, one at least, and of a large chain this many, or this share if that is more.
const (
	budgetThird   = 3
	budgetObjects = 20
	budgetPercent = 10
	budgetWindow  = 10 * time.Minute
)

// Freeze is why nothing is to be written to the cluster, whoever asks.
type Freeze struct {
	// Author and Reason in words for people.
	Author, Reason string
}

// String is "frozen by alice: the year ends".
func (f Freeze) String() string { return fmt.Sprintf("frozen by %s: %s", f.Author, f.Reason) }

// Budget bounds what is lost without a person having asked for that: what a revision
// does not list any more may be much by mistake.
type Budget struct {
	// Explicit holds the numbers of revisions that are being deleted. Whoever does
	// that wants their objects gone, and these do not count.
	Explicit map[int64]bool
	// Acknowledged holds what people answered to Report.Acknowledge.
	Acknowledged map[string]bool
	// Listed returns what a revision that is no layer lists, and whether that is known.
	// Nil knows of none: then nothing counts as replaced.
	Listed func(revision int64) ([]manifest.ID, bool)
	// Undone is true for an object with the content of a revision that never succeeded,
	// while an earlier one did, and none that did has the object: what such an upgrade
	// added is no loss. Objects that keep others or data count nevertheless. Nil is for none.
	Undone func(id manifest.ID, revision int64) bool
	// Reviewed is true for an object with the content of a revision whose deletion
	// somebody has named, before a later revision went on. Nil is for none.
	Reviewed func(id manifest.ID, revision int64) bool
}

// Deletion counts what the budget was charged with.
type Deletion struct {
	At time.Time
	// Objects that were lost: those that went without one of their kind in their place.
	Objects int
}

// pendingDeletions are what the budget judges: objects of a chain that are to go, and what stays.
type pendingDeletions struct {
	// objects that are to go, with the revision whose content each has.
	objects map[manifest.ID]int64
	// kept are the objects that the chain has in the cluster and that its layers list.
	kept []manifest.ID
	// emptied is true when no layer lists anything.
	emptied bool
	// listed is Budget.Listed.
	listed func(revision int64) ([]manifest.ID, bool)
	// spent is what was lost within the window.
	spent int
	// empty are definitions without instances: nothing goes with them.
	empty map[manifest.ID]bool
}

// reason why somebody has to answer for an object.
type reason string

const (
	// becauseEmptied is for all objects when nothing is left of the chain.
	becauseEmptied reason = "emptied"
	// becauseMany is for all objects when too many are lost.
	becauseMany reason = "many"
	// becauseKept is for an object that keeps others, or data: it goes with them.
	becauseKept reason = "kept"
	// becauseLastWorkload is for workloads when none is left.
	becauseLastWorkload reason = "last workload"
)

// budgetDecision is what may go and what has to be asked for.
type budgetDecision struct {
	// asks has the objects that somebody has to answer for. All others may go.
	asks map[manifest.ID]reason
	// loss is what counts, and limit how much of it may go within the window.
	loss, limit int
	// charge is the part of loss that nobody has to answer for.
	charge int
}

// judge is the rule of the deletion budget. docs/reference/rollout.md states it.
//
//   - What is lost of a kind is how many objects of it a replaced revision had more than
//     the chain keeps; of several such revisions the largest difference counts.
//   - Objects that keep others or data (keeps), and workloads when none stays, count each,
//     whatever comes in their place. A definition without instances keeps nothing.
//   - When nothing is listed any more, or more is lost than the limit, all objects are
//     asked for; otherwise those that count each.
func (g pendingDeletions) judge() budgetDecision {
	found := budgetDecision{asks: map[manifest.ID]reason{}}
	for id := range g.objects {
		if why := g.alone(id); why != "" {
			found.asks[id] = why
		}
	}
	lost, objects := g.measure()
	found.loss, found.limit = lost+len(found.asks), limitOf(objects)
	all := reason("")
	switch {
	case g.emptied:
		all = becauseEmptied
	case g.spent+found.loss > found.limit:
		all = becauseMany
	default:
		found.charge = lost
		return found
	}
	for id := range g.objects {
		found.asks[id] = all
	}
	return found
}

// WouldAsk tells whether somebody would have to answer when all of one revision is there,
// and all of a later one takes its place.
func WouldAsk(former, wanted []manifest.ID) bool {
	g := pendingDeletions{objects: map[manifest.ID]int64{}, kept: wanted, emptied: len(wanted) == 0}
	g.listed = func(int64) ([]manifest.ID, bool) { return former, true }
	stays := make(map[manifest.ID]bool, len(wanted))
	for _, id := range wanted {
		stays[id] = true
	}
	for _, id := range former {
		if !stays[id] {
			g.objects[id] = 0
		}
	}
	return len(g.judge().asks) > 0
}

// alone is why an object is asked for by itself, empty when it is not.
func (g pendingDeletions) alone(id manifest.ID) reason {
	switch {
	case keeps(id) && !g.empty[id]:
		return becauseKept
	case isWorkload(id) && !slices.ContainsFunc(g.kept, isWorkload):
		return becauseLastWorkload
	default:
		return ""
	}
}

// limitOf is how much a chain of so many objects may lose within the window.
func limitOf(objects int) int {
	return min(max(objects/budgetThird, 1), max(budgetObjects, objects*budgetPercent/100))
}

// measure returns how many objects are lost, without those that are asked for by
// themselves, and how many the chain has: those that stay, or those of the largest
// replaced revision.
func (g pendingDeletions) measure() (lost, objects int) {
	replaced, unknown := g.revisions()
	most := map[schema.GroupKind]int{}
	for _, former := range replaced {
		objects = max(objects, len(former))
		for kind, n := range g.countKinds(former) {
			most[kind] = max(most[kind], n)
		}
	}
	kept, alone := g.countKinds(g.kept), g.countKinds(unknown)
	for kind, n := range g.countKinds(slices.Collect(maps.Keys(g.objects))) {
		lost += min(n, max(0, most[kind]-kept[kind])+alone[kind])
	}
	return lost, max(objects, len(g.kept), len(unknown))
}

// revisions returns, for each revision whose objects are to go, those that it lists and
// that are there, with those that it has in common with what stays. When it is not known
// what it lists, its objects are among unknown: nothing counts as in their place.
func (g pendingDeletions) revisions() (replaced map[int64][]manifest.ID, unknown []manifest.ID) {
	there := make(map[manifest.ID]bool, len(g.kept)+len(g.objects))
	for _, id := range g.kept {
		there[id] = true
	}
	for id := range g.objects {
		there[id] = true
	}
	replaced = map[int64][]manifest.ID{}
	for id, number := range g.objects {
		if _, done := replaced[number]; done {
			continue
		}
		var listed []manifest.ID
		var known bool
		if g.listed != nil {
			listed, known = g.listed(number)
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
func (g pendingDeletions) countKinds(ids []manifest.ID) map[schema.GroupKind]int {
	counts := map[schema.GroupKind]int{}
	for _, id := range ids {
		if g.alone(id) == "" {
			counts[id.GroupKind()]++
		}
	}
	return counts
}

// keeps is true for an object that other objects, or data, go with.
func keeps(id manifest.ID) bool {
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
