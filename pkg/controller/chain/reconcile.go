package chain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// staleRetry is when to look again after a revision changed during a pass.
const staleRetry = time.Second

// reconciler reconciles one chain at a time for each key; the key's name is the
// chain.
type reconciler struct {
	Options
	library   *library
	historian *historian
	// compiled holds rollout.Layer by uid.
	compiled *lru.Cache
}

// visit is one pass over one chain.
type visit struct {
	*reconciler
	chain string
	// revisions as they were when the pass began, newest first. Status speaks of
	// their generations.
	revisions []olmv1alpha1.ClusterExtensionRevision
	ledger    *ledger
	// layers are the revisions that the engine was given, by index.
	layers  []*olmv1alpha1.ClusterExtensionRevision
	invalid map[string]error
	report  rollout.Report
	// stale is true when a revision turned out to have changed during the pass.
	stale bool
}

// Reconcile does one pass over a chain:
//
//  1. read the chain's revisions and its inventory,
//  2. make sure that the numbers in use are known to be used,
//  3. give up what belongs to revisions that are gone,
//  4. let the engine do what can be done now,
//  5. tell what was done, in events, in status and in history,
//  6. archive what a complete rollout supersedes,
//  7. release revisions that are being deleted and hold nothing any more.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	defer r.Passes.Begin(request.Name)()
	v := &visit{reconciler: r, chain: request.Name, invalid: map[string]error{}}
	if err := v.list(ctx); err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the revisions of chain %s: %w", v.chain, err)
	}
	if len(v.revisions) == 0 {
		r.Engine.Forget(v.chain)
		return ctrl.Result{}, nil
	}
	if err := v.pass(ctx); err != nil {
		// A person who reads the revision must see that it is not being kept.
		return ctrl.Result{}, errors.Join(err, v.complain(ctx, err))
	}
	return ctrl.Result{RequeueAfter: v.next()}, nil
}

// pass is Reconcile for a chain that exists.
func (v *visit) pass(ctx context.Context) error {
	if err := v.prepare(ctx); err != nil {
		return err
	}
	err := v.rollOut(ctx)
	// What was done is told even when the pass did not come to its end.
	v.announce()
	if err != nil {
		return err
	}
	if err := v.writeStatus(ctx); err != nil {
		return err
	}
	if err := v.confirm(ctx); err != nil {
		return fmt.Errorf("writing the history of chain %s: %w", v.chain, err)
	}
	if err := v.archive(ctx); err != nil {
		return fmt.Errorf("archiving superseded revisions of chain %s: %w", v.chain, err)
	}
	if err := v.release(ctx); err != nil {
		return fmt.Errorf("releasing revisions of chain %s: %w", v.chain, err)
	}
	return nil
}

// prepare does the steps before the engine.
func (v *visit) prepare(ctx context.Context) error {
	var err error
	if v.ledger, err = openLedger(ctx, v.Inventories, v.chain); err != nil {
		return fmt.Errorf("reading the inventory of chain %s: %w", v.chain, err)
	}
	if err := v.confirm(ctx); err != nil {
		return fmt.Errorf("confirming the numbers of chain %s: %w", v.chain, err)
	}
	if err := v.giveUp(ctx); err != nil {
		return fmt.Errorf("updating the inventory of chain %s: %w", v.chain, err)
	}
	return nil
}

// list gets the revisions of the chain, newest first.
func (v *visit) list(ctx context.Context) error {
	var list olmv1alpha1.ClusterExtensionRevisionList
	if err := v.Client.List(ctx, &list, client.MatchingLabels{olmv1alpha1.ChainLabel: v.chain}); err != nil {
		return err
	}
	newestFirst(list.Items)
	v.revisions = list.Items
	return nil
}

// giveUp drops from the inventory what no revision answers for any more.
func (v *visit) giveUp(ctx context.Context) error {
	if !v.ledger.outlived(v.revisions) {
		return nil
	}
	// The cache may be behind, and forgetting is for ever: ask the store itself.
	var list olmv1alpha1.ClusterExtensionRevisionList
	if err := v.Reader.List(ctx, &list, client.MatchingLabels{olmv1alpha1.ChainLabel: v.chain}); err != nil {
		return err
	}
	inventory, given := v.ledger.forget(list.Items)
	if len(given) > 0 {
		klog.FromContext(ctx).Info("Giving up objects of a revision that was removed without its teardown",
			"chain", v.chain, "objects", len(given), "first", given[0].String())
	}
	return v.ledger.save(ctx, inventory)
}

// rollOut compiles the layers and lets the engine do a pass.
func (v *visit) rollOut(ctx context.Context) error {
	work := rollout.Work{
		Owner:            v.chain,
		Inventory:        v.ledger.inventory,
		Save:             v.ledger.save,
		Bodies:           newShelf(v.library, v.revisions),
		Orphan:           map[int64]bool{},
		AllowCRDDeletion: map[string]bool{},
	}
	for i := range v.revisions {
		revision := &v.revisions[i]
		for name := range strings.SplitSeq(revision.Annotations[olmv1alpha1.AllowCRDDeletionAnnotation], ",") {
			work.AllowCRDDeletion[strings.TrimSpace(name)] = true
		}
		if !isLayer(revision) {
			orphan := !revision.DeletionTimestamp.IsZero() && revision.Spec.TeardownPolicy == olmv1alpha1.TeardownPolicyOrphan
			work.Orphan[revision.Spec.Revision] = orphan
			continue
		}
		compiled, err := v.layer(revision)
		if err != nil {
			// Its objects stay as they are: an unreadable layer is no reason to
			// delete anything, nor to roll out what is below it.
			v.invalid[revision.Name] = err
			continue
		}
		work.Layers = append(work.Layers, compiled)
		v.layers = append(v.layers, revision)
	}
	if len(v.invalid) > 0 {
		return nil
	}
	var err error
	if v.report, err = v.Engine.Reconcile(ctx, work); err != nil {
		return err
	}
	if v.report.RequeueAfter == 0 && len(v.report.Leaving) == 0 {
		v.library.close(v.revisions)
	}
	return nil
}

// layer compiles a revision once: what is compiled never changes.
func (v *visit) layer(revision *olmv1alpha1.ClusterExtensionRevision) (rollout.Layer, error) {
	found, ok := v.compiled.Get(revision.UID)
	if !ok {
		fresh, err := layer(revision)
		if err != nil {
			return rollout.Layer{}, err
		}
		v.compiled.Add(revision.UID, fresh)
		found = fresh
	}
	compiled := found.(rollout.Layer)
	compiled.Paused = revision.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused
	return compiled, nil
}

// finding returns what the pass found of a revision.
func (v *visit) finding(revision *olmv1alpha1.ClusterExtensionRevision) finding {
	found := finding{invalid: v.invalid[revision.Name]}
	for i, layer := range v.layers {
		if layer == revision && i < len(v.report.Layers) {
			found.layer, found.newest = &v.report.Layers[i], i == 0
		}
	}
	if found.layer == nil {
		found.held = v.ledger.holder(revision.Spec.Revision)
	}
	for _, failure := range v.report.Leaving {
		if v.ledger.inventory.Entries[failure.ID].Revision == revision.Spec.Revision {
			found.leaving = append(found.leaving, failure)
		}
	}
	return found
}

// writeStatus writes the status of each revision whose status changed.
func (v *visit) writeStatus(ctx context.Context) error {
	var errs []error
	for i := range v.revisions {
		revision := &v.revisions[i]
		found := v.finding(revision)
		if len(v.invalid) > 0 && found.invalid == nil {
			continue // nothing was looked at
		}
		errs = append(errs, v.update(ctx, revision, status(revision, found, v.Clock.Now())))
	}
	return errors.Join(errs...)
}

// complain writes into status that a pass failed, for revisions that should be
// kept, and leaves all else that status says as it was.
func (v *visit) complain(ctx context.Context, trouble error) error {
	if ctx.Err() != nil {
		return nil
	}
	var errs []error
	for i := range v.revisions {
		revision := &v.revisions[i]
		errs = append(errs, v.update(ctx, revision, troubled(revision, trouble, v.Clock.Now())))
	}
	return errors.Join(errs...)
}

// update writes the status of a revision if it is another than before.
func (v *visit) update(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, next olmv1alpha1.ClusterExtensionRevisionStatus) error {
	if equality.Semantic.DeepEqual(next, revision.Status) {
		return nil
	}
	updated := revision.DeepCopy()
	updated.Status = next
	err := v.Client.Status().Update(ctx, updated)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		// It was changed meanwhile: that change brings the next pass.
		v.stale = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of %s: %w", revision.Name, err)
	}
	revision.Status, revision.ResourceVersion = updated.Status, updated.ResourceVersion
	return nil
}

// archive archives the older revisions once the newest has succeeded.
func (v *visit) archive(ctx context.Context) error {
	if len(v.layers) < 2 || len(v.invalid) > 0 {
		return nil
	}
	newest := v.layers[0]
	if newest.Spec.LifecycleState != olmv1alpha1.LifecycleStateActive ||
		!meta.IsStatusConditionTrue(newest.Status.Conditions, olmv1alpha1.ConditionSucceeded) || !v.report.Layers[0].Complete {
		return nil
	}
	for _, older := range v.layers[1:] {
		updated := older.DeepCopy()
		updated.Spec.LifecycleState = olmv1alpha1.LifecycleStateArchived
		if done, err := v.patch(ctx, updated, older); err != nil || !done {
			return err
		}
		v.event(older, false, "Archived", fmt.Sprintf("revision %d has succeeded", newest.Spec.Revision))
	}
	return nil
}

// release lets go of revisions that are being deleted once no object carries
// their content.
func (v *visit) release(ctx context.Context) error {
	for i := range v.revisions {
		revision := &v.revisions[i]
		if revision.DeletionTimestamp.IsZero() || v.ledger.holder(revision.Spec.Revision) != nil ||
			!controllerutil.ContainsFinalizer(revision, olmv1alpha1.TeardownFinalizer) {
			continue
		}
		if err := v.retire(ctx, revision); err != nil {
			return err
		}
		updated := revision.DeepCopy()
		controllerutil.RemoveFinalizer(updated, olmv1alpha1.TeardownFinalizer)
		if _, err := v.patch(ctx, updated, revision); err != nil {
			return err
		}
	}
	return nil
}

// patch changes a revision that is still as it was read, and tells whether it was.
// One that has changed or is gone brings a pass of its own.
func (v *visit) patch(ctx context.Context, updated, read *olmv1alpha1.ClusterExtensionRevision) (bool, error) {
	err := v.Client.Patch(ctx, updated, client.MergeFromWithOptions(read, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		v.stale = true
		return false, nil
	}
	return err == nil, err
}

// next is when to look again although nothing happened.
func (v *visit) next() time.Duration {
	after := v.report.RequeueAfter
	if v.stale {
		// The event of the change comes through a cache; do not depend on it.
		after = staleRetry
	}
	for _, revision := range v.layers {
		at, limited := deadline(revision)
		if !limited || !meta.IsStatusConditionTrue(revision.Status.Conditions, olmv1alpha1.ConditionProgressing) {
			continue
		}
		if left := at.Sub(v.Clock.Now()); left > 0 && (after == 0 || left < after) {
			after = left
		}
	}
	return after
}

// announce tells people what the engine changed.
func (v *visit) announce() {
	byNumber := map[int64]*olmv1alpha1.ClusterExtensionRevision{}
	for i := range v.revisions {
		byNumber[v.revisions[i].Spec.Revision] = &v.revisions[i]
	}
	for _, event := range v.report.Events {
		if revision, ok := byNumber[event.Revision]; ok {
			v.event(revision, event.Warning, event.Reason, event.Message)
		}
	}
}
