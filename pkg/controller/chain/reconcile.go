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

// freezeRetry is the wait while it is unknown whether the cluster is frozen. That is so for a
// moment after a start.
const freezeRetry = 100 * time.Millisecond

// staleRetry is the wait after a revision changed during a pass.
const staleRetry = time.Second

// reconciler reconciles one chain at a time for each key; the key's name is the
// chain.
type reconciler struct {
	Options
	library *library
	memoryByChain
	// compiled holds rollout.Layer by compilation.
	compiled *lru.Cache
}

// scope is the state of one pass over one chain.
type scope struct {
	*reconciler
	chain string
	// revisions as they were when the pass began, newest first. Status speaks of
	// their generations.
	revisions []olmv1alpha1.ClusterExtensionRevision
	known     memories
	ledger    *ledger
	// layers are the revisions that the engine was given, by index.
	layers  []*olmv1alpha1.ClusterExtensionRevision
	invalid map[string]error
	held    ownerHold
	report  rollout.Report
	// began is the time at which the pass began.
	began time.Time
	// judged is the time by which status judges deadlines.
	judged time.Time
	// freeze is the reason why nothing may be written; nil for none.
	freeze *rollout.Freeze
	// cluster is the cluster of the chain. targetErr is the reason why it is unknown or
	// unreachable: nothing is done then.
	cluster   target.Cluster
	targetErr error
	// manifests has the manifests, and inverted, for each layer, the objects that
	// wait for a later install level.
	manifests *manifestCache
	inverted  [][]release.Inversion
	// stale is true when a revision turned out to have changed during the pass.
	stale bool
}

// Reconcile does one pass over a chain:
//
//  1. read the chain's revisions and its inventory, whether the cluster is frozen, and
//     which cluster it is,
//  2. make sure that the numbers in use are known to be used, and find out whether
//     a rollback holds the chain's owner,
//  3. give up what belongs to revisions that are gone,
//  4. let the engine do what can be done now,
//  5. tell what was done, in events, in status and in history,
//  6. roll back what has failed and asks for it,
//  7. archive what a complete rollout supersedes,
//  8. release revisions that are being deleted and hold nothing any more.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	defer r.Passes.Begin(request.Name)()
	v := &scope{reconciler: r, chain: request.Name, invalid: map[string]error{}, began: r.Clock.Now()}
	if err := v.list(ctx); errors.As(err, new(*bychain.UnreadableError)) {
		// The wishes of the chain are not known. The event of that revision
		// brings the next pass.
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
			return ctrl.Result{}, nil // the answer brings the next pass
		}
		err = v.pass(ctx)
	}
	if err != nil {
		// A person who reads the revision must see that it is not being kept.
		return ctrl.Result{}, errors.Join(err, v.complain(ctx, err))
	}
	return ctrl.Result{RequeueAfter: v.next()}, nil
}

// pass is Reconcile for a chain that exists.
func (s *scope) pass(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	err := s.rollOut(ctx)
	// Events tell of finished work even when the pass did not come to its end.
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

// prepare does the steps before the engine.
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

// list gets the revisions of the chain, newest first, and what is known of them; of a
// chain with one that cannot be read the others, and the error.
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

// forgetRemoved drops from the inventory what no revision answers for any more.
func (s *scope) forgetRemoved(ctx context.Context) error {
	if !s.ledger.outlived(s.revisions) {
		return nil
	}
	// The cache may be behind, and forgetting is for ever: ask the store itself.
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
