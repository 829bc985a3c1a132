package extension

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
	"github.com/penstock-project/penstock/pkg/controller/maker"
)

// With --cascade=orphan, the host's garbage collector removes a deleted extension from the owners
// of its revisions. But the collector discovers new kinds only twice a minute. Until then it sees
// no revisions and lets the deletion finish. Later it discovers the revisions and deletes them,
// because their owner does not exist. So this controller also removes the owner, as soon as it sees
// the orphan finalizer, and after the extension was deleted.

// noteOrphaning remembers a deleted extension that orphans its revisions.
func (c *Controller) noteOrphaning(object any) {
	found, ok := object.(*unstructured.Unstructured)
	if !ok || found.GetDeletionTimestamp() == nil || !slices.Contains(found.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orphaning[found.GetUID()] = found.GetName()
}

// orphan removes extensions with a name from the owners of their revisions.
func (c *Controller) orphan(ctx context.Context, name string) error {
	var owners []types.UID
	c.mu.Lock()
	for owner, of := range c.orphaning {
		if of == name {
			owners = append(owners, owner)
		}
	}
	c.mu.Unlock()
	if len(owners) == 0 {
		return nil
	}
	revisions, err := bychain.List(ctx, c.Live, name)
	if err != nil {
		return fmt.Errorf("reading the revisions of %s, which ClusterExtension %s leaves: %w", name, name, err)
	}
	for i := range revisions {
		if err := c.disown(ctx, &revisions[i], owners); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, owner := range owners {
		delete(c.orphaning, owner)
	}
	return nil
}

// disown removes owners from a revision, with a precondition on its version: the collector may
// write at the same time.
func (c *Controller) disown(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, owners []types.UID) error {
	left := slices.DeleteFunc(slices.Clone(revision.OwnerReferences), func(owner metav1.OwnerReference) bool {
		return slices.Contains(owners, owner.UID)
	})
	if len(left) == len(revision.OwnerReferences) {
		return nil
	}
	chain := maker.Chain{Store: c.Store, Rules: rules()}
	stopped := chain.Patch(ctx, nil, revision, map[string]any{"metadata": map[string]any{"ownerReferences": left, "resourceVersion": revision.ResourceVersion}})
	if stopped != nil {
		return fmt.Errorf("leaving %s without its owner, which is deleted: %w", revision.Name, cmp.Or(stopped.Err, maker.ErrAgain))
	}
	return nil
}
