package revision

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

// Inventory converts the stored inventory of a chain to the form of the engine.
func Inventory(in store.Inventory) rollout.Inventory {
	out := rollout.Inventory{Entries: make(map[manifest.ID]rollout.Entry, len(in.Entries)), Reached: map[string]int{}}
	for _, e := range in.Entries {
		id := manifest.ID{Group: e.Group, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
		out.Entries[id] = rollout.Entry{
			Version: e.Version, UID: types.UID(e.UID), Revision: e.Revision, Digest: manifest.Digest(e.Digest),
			ManagedEntry: e.ManagedEntry, Generation: e.Generation, ResourceVersion: e.ResourceVersion, Rank: e.Rank, Yielded: e.Yielded, Doomed: e.Doomed, Refused: e.Refused,
			Adopted: e.Adopted, Finished: observe.Outcome(e.Finished),
		}
	}
	for _, d := range in.Deletions {
		out.Deletions = append(out.Deletions, rollout.Deletion(d))
	}
	for _, r := range in.Repairs {
		out.Repairs = append(out.Repairs, rollout.RepairRecord{
			ID: manifest.ID{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}, Revision: r.Revision,
			Manager: r.Manager, Lost: r.Lost, Count: r.Count, First: r.First, Last: r.Last,
		})
	}
	maps.Copy(out.Reached, in.Reached)
	out.Levels = maps.Clone(in.Levels)
	return out
}

// StoredInventory is the inverse of Inventory. The store sorts the entries.
func StoredInventory(in rollout.Inventory) store.Inventory {
	out := store.Inventory{Entries: make([]store.Entry, 0, len(in.Entries)), Reached: maps.Clone(in.Reached), Levels: maps.Clone(in.Levels)}
	for id, e := range in.Entries {
		out.Entries = append(out.Entries, store.Entry{
			Group: id.Group, Version: e.Version, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name,
			UID: e.UID, Revision: e.Revision, Digest: e.Digest, ManagedEntry: e.ManagedEntry,
			Generation: e.Generation, ResourceVersion: e.ResourceVersion, Rank: e.Rank, Yielded: e.Yielded, Doomed: e.Doomed, Refused: e.Refused,
			Adopted: e.Adopted, Finished: string(e.Finished),
		})
	}
	for _, d := range in.Deletions {
		out.Deletions = append(out.Deletions, store.Deletion(d))
	}
	for _, r := range in.Repairs {
		out.Repairs = append(out.Repairs, store.Repair{
			Group: r.ID.Group, Kind: r.ID.Kind, Namespace: r.ID.Namespace, Name: r.ID.Name, Revision: r.Revision,
			Manager: r.Manager, Lost: r.Lost, Count: r.Count, First: r.First, Last: r.Last,
		})
	}
	return out
}

// CheckCluster returns an *ElsewhereError if the objects of an inventory are in another cluster.
// cluster is empty for the default target.
func CheckCluster(inventory store.Inventory, cluster string) error {
	if len(inventory.Entries) == 0 || inventory.Cluster == cluster {
		return nil
	}
	return &ElsewhereError{Recorded: inventory.Cluster, Named: cluster}
}

// ElsewhereError reports that the objects of a chain are in a different cluster than its revisions
// now name.
type ElsewhereError struct {
	// Recorded and Named are uids of clusters; empty is the default target.
	Recorded, Named string
}

func (e *ElsewhereError) Error() string {
	return fmt.Sprintf("the objects of the extension are in %s, and its revisions now lead to %s: Penstock does nothing in either until they lead to the first one again; "+
		"to give up the objects there, delete the revisions with spec.teardownPolicy %s", clusterName(e.Recorded), clusterName(e.Named), olmv1alpha1.TeardownPolicyOrphan)
}

func clusterName(id string) string {
	if id == "" {
		return "the cluster of revisions without spec.targetRef"
	}
	return "cluster " + id
}
