package chain

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"k8s.io/klog/v2"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/target"
)

// Targets leads to the clusters that chains name, as *target.Targets.
type Targets interface {
	// Use returns the cluster of a Secret, for a chain that needs it from now on in
	// place of any other. target.ErrNotYet means that the answer is on its way.
	Use(chain, secret string) (target.Cluster, error)
	// Leave tells that a chain names none any more.
	Leave(chain string)
}

// dividedError says that the revisions of a chain name several targets. The API admits
// none that does; two may have been created at the same moment.
type dividedError struct {
	one, other *olmv1alpha1.ClusterExtensionRevision
}

func (e *dividedError) Error() string {
	return fmt.Sprintf("%s has the target %q and %s has %q: all revisions of an extension are rolled out into one cluster; delete one of them",
		e.one.Name, e.one.Target(), e.other.Name, e.other.Target())
}

// resolveTarget finds out into which cluster the chain is rolled out.
func (v *visit) resolveTarget() {
	first := &v.revisions[0]
	for i := range v.revisions {
		if other := &v.revisions[i]; other.Target() != first.Target() {
			v.targetErr = &dividedError{other, first}
			return
		}
	}
	if first.Target() == "" {
		v.Targets.Leave(v.chain)
		v.cluster = target.Cluster{Engine: v.Engine}
		return
	}
	v.Engine.Forget(v.chain)
	v.cluster, v.targetErr = v.Targets.Use(v.chain, first.Target())
}

// checkTarget makes sure that the inventory is about the cluster that was found: all that is in
// another one would be taken for deleted. An inventory without objects is about none.
func (v *visit) checkTarget() {
	if v.targetErr != nil || v.ledger.cluster == v.cluster.ID {
		return
	}
	if len(v.ledger.inventory.Entries) > 0 {
		v.targetErr = &rev.ElsewhereError{Recorded: v.ledger.cluster, Named: v.cluster.ID}
		return
	}
	// What was reached was reached there.
	v.ledger.cluster, v.ledger.inventory = v.cluster.ID, rollout.Inventory{}
}

// forgetOrphans gives up the objects of revisions that are deleted and leave theirs behind,
// where nothing can be done about them: they keep our marks.
func (v *visit) forgetOrphans(ctx context.Context) error {
	if v.targetErr == nil {
		return nil
	}
	orphaned := map[int64]bool{}
	for i := range v.revisions {
		orphaned[v.revisions[i].Spec.Revision] = rev.LeavesObjects(&v.revisions[i])
	}
	inventory := v.ledger.inventory
	inventory.Entries = maps.Clone(inventory.Entries)
	maps.DeleteFunc(inventory.Entries, func(_ manifest.ID, entry rollout.Entry) bool { return orphaned[entry.Revision] })
	left := len(v.ledger.inventory.Entries) - len(inventory.Entries)
	if left == 0 {
		return nil
	}
	klog.FromContext(ctx).Info("Leaving objects behind as they are: their cluster cannot be used",
		"extension", v.chain, "objects", left, "reason", v.targetErr.Error())
	return v.ledger.save(ctx, inventory)
}

// needsPerson tells whether the cluster is found again by itself.
func needsPerson(targetErr error) bool {
	var unavailable *target.UnavailableError
	return !errors.As(targetErr, &unavailable) || unavailable.NeedsPerson
}
