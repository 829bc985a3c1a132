package revision

import (
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

// Names returns the marks that chains put on their objects.
func Names() observe.Names {
	return observe.Names{
		ChainLabel:         olmv1alpha1.ChainLabel,
		AppliedAnnotation:  olmv1alpha1.AppliedAnnotation,
		TeardownAnnotation: olmv1alpha1.TeardownAnnotation,
		ProtectLabel:       olmv1alpha1.ProtectLabel,
		TakeOverAnnotation: olmv1alpha1.TakeOverFromAnnotation,
		ManagerPrefix:      olmv1alpha1.FieldManagerPrefix,
	}
}

// PreviewWork returns the engine's work for a preview of a revision. The preview treats it as the
// only active revision of its chain, in any lifecycle state. The parameter all lists the revisions
// of the chain. The work has neither Bodies nor Save.
func PreviewWork(chain string, revision *olmv1alpha1.ClusterExtensionRevision, all []olmv1alpha1.ClusterExtensionRevision, inventory store.Inventory) (rollout.Work, error) {
	compiled, err := Layer(revision, false) // a preview ignores the order
	if err != nil {
		return rollout.Work{}, err
	}
	work := rollout.Work{
		Owner: chain, Layers: []rollout.Layer{compiled}, Inventory: Inventory(inventory), Orphan: map[int64]bool{},
	}
	for i := range all {
		other := &all[i]
		if other.UID != revision.UID && !other.DeletionTimestamp.IsZero() {
			work.Orphan[other.Spec.Revision] = other.Spec.TeardownPolicy == olmv1alpha1.TeardownPolicyOrphan
		}
	}
	return work, nil
}
