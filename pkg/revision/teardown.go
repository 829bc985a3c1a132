package revision

import (
	"cmp"
	"slices"
	"strings"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/revision/references"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// Teardown holds the effects of a revision's deletion on its objects.
type Teardown struct {
	// Deleted are the objects to delete. Objects that contain other objects or data come first.
	Deleted []manifest.ID
	// Adopted stay because they existed before the extension. Orphaned stay by the policy of their
	// revision.
	Adopted, Orphaned []manifest.ID
	// Listed stay because another revision lists them. By is the name of that revision, or of the
	// newest if several revisions list them.
	Listed []manifest.ID
	By     string
	// Paused is a paused revision that blocks deletions, or empty.
	Paused string
}

// TeardownOf returns the effect on its objects of deleting a revision now. orphans is true if the
// deletion request keeps the objects. The parameter all lists the revisions of its extension. The
// cluster's answers, and the need for a confirmation, are not considered.
func TeardownOf(revision *olmv1alpha1.ClusterExtensionRevision, orphans bool, all []olmv1alpha1.ClusterExtensionRevision, inventory rollout.Inventory) Teardown {
	var found Teardown
	listing, policies := map[manifest.ID]*olmv1alpha1.ClusterExtensionRevision{}, map[int64]*olmv1alpha1.ClusterExtensionRevision{}
	for i := range all {
		other := &all[i]
		policies[other.Spec.Revision] = other
		if other.Name == revision.Name || !IsLayer(other) {
			continue
		}
		if other.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused {
			found.Paused = other.Name
		}
		for _, ref := range references.Of(other) {
			if known := listing[ref.ID]; known == nil || known.Spec.Revision < other.Spec.Revision {
				listing[ref.ID] = other
			}
		}
	}
	own := map[manifest.ID]bool{}
	if IsLayer(revision) {
		for _, ref := range references.Of(revision) {
			own[ref.ID] = true
		}
	}
	var by *olmv1alpha1.ClusterExtensionRevision
	for id, entry := range inventory.Entries {
		if entry.Intent() || entry.Revision != revision.Spec.Revision && !own[id] {
			continue
		}
		policy, leaves := policies[entry.Revision], false
		if entry.Revision == revision.Spec.Revision {
			policy, leaves = revision, orphans || revision.Spec.TeardownPolicy == olmv1alpha1.TeardownPolicyOrphan
		} else if policy != nil {
			leaves = LeavesObjects(policy)
		}
		switch other := listing[id]; {
		case other != nil:
			found.Listed = append(found.Listed, id)
			if by == nil || by.Spec.Revision < other.Spec.Revision {
				by = other
			}
		case leaves:
			found.Orphaned = append(found.Orphaned, id)
		case entry.Adopted && (policy == nil || policy.Spec.AdoptedTeardownPolicy != olmv1alpha1.TeardownPolicyDelete):
			found.Adopted = append(found.Adopted, id)
		default:
			found.Deleted = append(found.Deleted, id)
		}
	}
	if by != nil {
		found.By = by.Name
	}
	for _, ids := range [...][]manifest.ID{found.Deleted, found.Adopted, found.Orphaned, found.Listed} {
		slices.SortFunc(ids, heaviestFirst)
	}
	return found
}

// heaviestFirst orders first the objects whose deletion also deletes other objects or data.
func heaviestFirst(a, b manifest.ID) int {
	return cmp.Or(cmp.Compare(weight(a), weight(b)), strings.Compare(a.String(), b.String()))
}

func weight(id manifest.ID) int {
	switch {
	case id.IsDefinition():
		return 0
	case id.IsNamespace(id.Name):
		return 1
	case id.Group == "" && id.Kind == "PersistentVolumeClaim":
		return 2
	default:
		return 3
	}
}
