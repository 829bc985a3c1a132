package chain

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

// Owner is the last observed state of the object whose controller creates the revisions of a chain.
type Owner struct {
	UID        types.UID
	Generation int64
}

// Owners watches the owners of held chains.
type Owners interface {
	// Follow returns an owner, if it was observed. It enqueues the chain when the owner changes.
	Follow(chain string, owner metav1.OwnerReference) (Owner, bool)
	// Unfollow ends the watch.
	Unfollow(chain string)
}

type ownerHold struct {
	hold  *store.Hold
	owner metav1.OwnerReference
	// released is the reason why the hold ended in this pass; empty if it did not end.
	released string
}

// hold finds out whether a rollback holds the chain's owner, and ends a hold that is over. A chain
// without an owner has no hold.
func (s *scope) hold(ctx context.Context) error {
	owner := ownerOf(s.revisions)
	if owner == nil {
		s.Owners.Unfollow(s.chain)
		return nil
	}
	head, _, err := s.Heads.Get(ctx, s.chain)
	if err != nil {
		return err
	}
	s.held = ownerHold{hold: head.Hold, owner: *owner}
	if head.Hold == nil {
		s.Owners.Unfollow(s.chain)
		return nil
	}
	if s.held.released = s.over(head.Hold, *owner); s.held.released == "" {
		return nil
	}
	if err := s.Heads.Release(ctx, s.chain, head.Hold.UID); err != nil {
		return err
	}
	s.held.hold = nil
	s.Owners.Unfollow(s.chain)
	return nil
}

// over returns the reason why a hold is over; empty if it is not.
func (s *scope) over(hold *store.Hold, owner metav1.OwnerReference) string {
	name := olm.RevisionName(s.chain, hold.Revision)
	for i := range s.revisions {
		if s.revisions[i].Annotations[olmv1alpha1.ReleaseHoldAnnotation] == name {
			return fmt.Sprintf("released by the annotation on %s", s.revisions[i].Name)
		}
	}
	now, seen := s.Owners.Follow(s.chain, owner)
	switch {
	case !seen:
		return ""
	case now.UID != owner.UID:
		return fmt.Sprintf("%s %s now has another uid", owner.Kind, owner.Name)
	case hold.OwnerGeneration > 0 && now.Generation > hold.OwnerGeneration:
		return fmt.Sprintf("%s %s has generation %d", owner.Kind, owner.Name, now.Generation)
	}
	return ""
}

// ownerOf returns the controller reference of the newest revision that has one.
func ownerOf(revisions []olmv1alpha1.ClusterExtensionRevision) *metav1.OwnerReference {
	for i := range revisions {
		if owner := metav1.GetControllerOf(&revisions[i]); owner != nil {
			return owner
		}
	}
	return nil
}

// hold writes a condition to the newest revision: the held owner, the end of the hold, and the
// command that releases it. Older revisions get no condition.
func (w *writer) hold(revision *olmv1alpha1.ClusterExtensionRevision, newest bool, held ownerHold) {
	switch {
	case !newest:
		meta.RemoveStatusCondition(&w.status.Conditions, olmv1alpha1.ConditionHeld)
	case held.hold != nil:
		w.set(olmv1alpha1.ConditionHeld, true, reasonIsRollback, held.until(revision))
	case w.is(olmv1alpha1.ConditionHeld):
		// The process that released the hold may have died before it wrote the reason.
		why := held.released
		if why == "" {
			why = "released"
		}
		w.set(olmv1alpha1.ConditionHeld, false, reasonReleased, clip(why))
	}
}

func (h ownerHold) until(newest *olmv1alpha1.ClusterExtensionRevision) string {
	chain, _, _ := olm.ChainOf(newest.Name)
	rollback := olm.RevisionName(chain, h.hold.Revision)
	text := fmt.Sprintf("%s is a rollback: %s %s makes no revision until ", rollback, h.owner.Kind, h.owner.Name)
	if h.hold.OwnerGeneration > 0 {
		text += fmt.Sprintf("its generation is above %d, or until ", h.hold.OwnerGeneration)
	}
	return ask(text+fmt.Sprintf("the hold is released (kubectl penstock resume %s)", chain), fmt.Sprintf(": kubectl annotate cer %s %s=%s", newest.Name, olmv1alpha1.ReleaseHoldAnnotation, rollback))
}
