package revision

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/budget"
)

// Removed returns the objects of one revision that a later revision does not list.
func Removed(from, to []manifest.Ref) []manifest.ID {
	listed := make(map[manifest.ID]bool, len(to))
	for _, ref := range to {
		listed[ref.ID] = true
	}
	var removed []manifest.ID
	for _, ref := range from {
		if !listed[ref.ID] {
			removed = append(removed, ref.ID)
		}
	}
	return removed
}

// RemovedDigest identifies the objects that the revision with the uid by removes. A user who has
// read them in a diff can acknowledge the digest before the rollout. It is empty if nothing is
// removed.
func RemovedDigest(removed []manifest.ID, by types.UID) string {
	if len(removed) == 0 {
		return ""
	}
	return budget.Token(removed, func(manifest.ID) string { return "removed by " + string(by) })
}

// AsksForRemoved reports whether the complete rollout of a revision needs an acknowledgement,
// because it removes objects of an earlier revision.
func AsksForRemoved(from, to []manifest.Ref) bool {
	return budget.WouldAsk(IDs(from), IDs(to))
}

// IDs returns the IDs of the references.
func IDs(refs []manifest.Ref) []manifest.ID {
	out := make([]manifest.ID, 0, len(refs))
	for _, ref := range refs {
		out = append(out, ref.ID)
	}
	return out
}
