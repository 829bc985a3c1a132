package chain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
	ctrl "sigs.k8s.io/controller-runtime"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
	"github.com/penstock-project/penstock/pkg/controller/freeze"
	"github.com/penstock-project/penstock/pkg/manifest/release"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/target"
)

// freezeRetry is the delay while it is unknown whether the cluster is frozen, shortly after a
// start.
const freezeRetry = 100 * time.Millisecond

// staleRetry is the delay after a revision changed during a pass.
const staleRetry = time.Second

// reconciler reconciles chains; the name of the key is the chain.
type reconciler struct {
	Options
	library *library
	memoryByChain
	compiled *lru.Cache
}

type scope struct {
	*reconciler
	chain string
	// revisions holds the revisions as the pass read them, newest first. Status reports their
	// generations.
	revisions []olmv1alpha1.ClusterExtensionRevision
	known     memories
	ledger    *ledger
	// layers holds the revisions that the engine gets, by index.
	layers  []*olmv1alpha1.ClusterExtensionRevision
	invalid map[string]error
	held    ownerHold
	report  rollout.Report
	began   time.Time
	// judged is the time at which status judges deadlines.
	judged time.Time
	// freeze is the reason why the engine must not write; nil for none.
	freeze *rollout.Freeze
	// cluster is the cluster of the chain. targetErr is the reason why it is unknown or
	// unreachable. Then the engine does nothing.
	cluster   target.Cluster
	targetErr error
	// manifests reads the manifests. inverted holds, for each layer, the objects that depend on a
	// later install level.
	manifests *manifestCache
	inverted  [][]release.Inversion
	stale     bool
}

// Reconcile does one pass over a chain:
//
//  1. It reads the chain's revisions and inventory, the freeze, and the target cluster.
//  2. It makes sure that the head records all numbers in use as used, and finds out whether a
//     rollback holds the chain's owner.
//  3. It drops the inventory of deleted revisions.
//  4. It lets the engine do the work that is possible now.
//  5. It reports the work in events, status and history.
//  6. It rolls back a failed revision whose spec requests that.
//  7. It archives the revisions that a complete rollout replaces.
//  8. It releases deleted revisions without objects.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	defer r.Passes.Begin(request.Name)()
	v := &scope{reconciler: r, chain: request.Name, invalid: map[string]error{}, began: r.Clock.Now()}
	if err := v.list(ctx); errors.As(err, new(*bychain.UnreadableError)) {
		// The wishes of the chain are unknown. An event of that revision causes the next pass.
		return ctrl.Result{}, v.complain(ctx, err)
	} else if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading the revisions of extension %s: %w", v.chain, err)
	}
	if len(v.revisions) == 0 {
		r.Engine.Forget(v.chain)
		r.Targets.Leave(v.chain)
		v.Owners.Unfollow(v.chain)
		return ctrl.Result{}, nil
	}
	var err error
	v.freeze, err = v.Freezes.Frozen()
	if errors.Is(err, freeze.ErrUnknown) {
		return ctrl.Result{RequeueAfter: freezeRetry}, nil
	}
	if err == nil {
		v.resolveTarget()
		if errors.Is(v.targetErr, target.ErrNotYet) {
			return ctrl.Result{}, nil // the answer causes the next pass
		}
		err = v.pass(ctx)
	}
	if err != nil {
		// The status must show users that the revision is not maintained.
		return ctrl.Result{}, errors.Join(err, v.complain(ctx, err))
	}
	return ctrl.Result{RequeueAfter: v.next()}, nil
}

// pass does the steps of Reconcile for a chain that exists.
func (s *scope) pass(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	err := s.rollOut(ctx)
	// Events report finished work even if the pass failed.
	s.announce()
	if err != nil {
		return err
	}
	if err := s.writeStatus(ctx); err != nil {
		return err
	}
	if err := s.confirm(ctx); err != nil {
		return fmt.Errorf("writing the history of extension %s: %w", s.chain, err)
	}
	if err := s.fallBack(ctx); err != nil {
		return err
	}
	if err := s.archive(ctx); err != nil {
		return fmt.Errorf("archiving superseded revisions of extension %s: %w", s.chain, err)
	}
	if err := s.release(ctx); err != nil {
		return fmt.Errorf("releasing revisions of extension %s: %w", s.chain, err)
	}
	return nil
}

func (s *scope) prepare(ctx context.Context) error {
	var err error
	if s.ledger, err = openLedger(ctx, s.Inventories, s.chain); err != nil {
		return fmt.Errorf("reading the inventory of extension %s: %w", s.chain, err)
	}
	if err := s.number(ctx); err != nil {
		return fmt.Errorf("confirming the numbers of extension %s: %w", s.chain, err)
	}
	if err := s.hold(ctx); err != nil {
		return fmt.Errorf("looking at the hold of extension %s: %w", s.chain, err)
	}
	if err := s.forgetRemoved(ctx); err != nil {
		return fmt.Errorf("updating the inventory of extension %s: %w", s.chain, err)
	}
	s.checkTarget()
	if err := s.forgetOrphans(ctx); err != nil {
		return fmt.Errorf("updating the inventory of extension %s: %w", s.chain, err)
	}
	return nil
}

// list reads the revisions of the chain, newest first, with their memories. If a revision cannot be
// read, list returns the other revisions and the error.
func (s *scope) list(ctx context.Context) error {
	pending := s.memoryByChain.pending(s.chain)
	var err error
	s.revisions, err = bychain.List(ctx, s.Client, s.chain)
	if err == nil || errors.As(err, new(*bychain.UnreadableError)) {
		s.known = s.memoryByChain.open(s.chain, s.revisions)
		s.revisions = pending.recall(s.revisions)
	}
	return err
}

func (s *scope) forgetRemoved(ctx context.Context) error {
	if !s.ledger.outlived(s.revisions) {
		return nil
	}
	// The cache may be stale, and deleted entries cannot be restored: read the store itself.
	revisions, err := bychain.List(ctx, s.Reader, s.chain)
	if err != nil {
		return err
	}
	inventory, given := s.ledger.forget(revisions)
	if len(given) > 0 {
		klog.FromContext(ctx).Info("Giving up objects of a revision that was removed without its teardown",
			"extension", s.chain, "objects", len(given), "first", given[0].String())
	}
	return s.ledger.save(ctx, inventory)
}
