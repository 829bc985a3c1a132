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

// Targets resolves the clusters that chains name. *target.Targets implements it.
type Targets interface {
	// Use returns the cluster of a Secret, and replaces the chain's earlier Secret.
	// target.ErrNotYet means that the answer is pending.
	Use(chain, secret string) (target.Cluster, error)
	// Leave records that a chain no longer names a Secret.
	Leave(chain string)
}

// dividedError reports that the revisions of a chain name several targets. The API refuses that,
// except for two revisions that are created at the same moment.
type dividedError struct {
	one, other *olmv1alpha1.ClusterExtensionRevision
}

func (e *dividedError) Error() string {
	return fmt.Sprintf("%s has the target %q and %s has %q: all revisions of an extension are rolled out into one cluster; delete one of them",
		e.one.Name, e.one.Target(), e.other.Name, e.other.Target())
}

func (s *scope) resolveTarget() {
	first := &s.revisions[0]
	for i := range s.revisions {
		if other := &s.revisions[i]; other.Target() != first.Target() {
			s.targetErr = &dividedError{other, first}
			return
		}
	}
	if first.Target() == "" {
		s.Targets.Leave(s.chain)
		s.cluster = target.Cluster{Engine: s.Engine}
		return
	}
	s.Engine.Forget(s.chain)
	s.cluster, s.targetErr = s.Targets.Use(s.chain, first.Target())
}

// checkTarget checks that the inventory belongs to the found cluster. Otherwise the engine would
// treat all objects of the other cluster as deleted. An inventory without objects belongs to no
// cluster.
func (s *scope) checkTarget() {
	if s.targetErr != nil || s.ledger.cluster == s.cluster.ID {
		return
	}
	if len(s.ledger.inventory.Entries) > 0 {
		s.targetErr = &rev.ElsewhereError{Recorded: s.ledger.cluster, Named: s.cluster.ID}
		return
	}
	// Stages that were reached in the earlier cluster do not count.
	s.ledger.cluster, s.ledger.inventory = s.cluster.ID, rollout.Inventory{}
}

// forgetOrphans gives up the objects of deleted revisions that orphan their objects, while the
// cluster is unavailable. The objects keep Penstock's marks.
func (s *scope) forgetOrphans(ctx context.Context) error {
	if s.targetErr == nil {
		return nil
	}
	orphaned := map[int64]bool{}
	for i := range s.revisions {
		orphaned[s.revisions[i].Spec.Revision] = rev.LeavesObjects(&s.revisions[i])
	}
	inventory := s.ledger.inventory
	inventory.Entries = maps.Clone(inventory.Entries)
	maps.DeleteFunc(inventory.Entries, func(_ manifest.ID, entry rollout.Entry) bool { return orphaned[entry.Revision] })
	left := len(s.ledger.inventory.Entries) - len(inventory.Entries)
	if left == 0 {
		return nil
	}
	klog.FromContext(ctx).Info("Leaving objects behind as they are: their cluster cannot be used",
		"extension", s.chain, "objects", left, "reason", s.targetErr.Error())
	return s.ledger.save(ctx, inventory)
}

// needsPerson reports whether only a user can make the cluster available again.
func needsPerson(targetErr error) bool {
	var unavailable *target.UnavailableError
	return !errors.As(targetErr, &unavailable) || unavailable.NeedsPerson
}
