package plan

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/penstock-project/penstock/pkg/governance"
)

// sweepRetry is the delay after the store did not answer.
const sweepRetry = 5 * time.Second

// sweep enqueues every name that holds a profile or has a history, at the start of a term. A plan
// that was deleted while no replica led causes no event. Its profile would stay held until another
// plan needs it, and its run would never end.
func (r *reconciler) sweep(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go func() {
		// The only error is the end of ctx: the term has ended.
		_ = wait.PollUntilContextCancel(ctx, sweepRetry, true, func(ctx context.Context) (bool, error) {
			names, err := r.known(ctx)
			if err != nil {
				log.FromContext(ctx).Error(err, "Looking for plans that were deleted while no replica led")
				return false, nil
			}
			for _, name := range names {
				queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
			}
			return true, nil
		})
	}()
	return nil
}

// known returns the names of the plans in the store, in order.
func (r *reconciler) known(ctx context.Context) ([]string, error) {
	names, err := r.Runs.Names(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading which plans had runs: %w", err)
	}
	for _, p := range r.Profiles {
		holder, err := r.Claims.Holder(ctx, governance.ClaimKey(string(p.Name())))
		if err != nil {
			return nil, fmt.Errorf("reading who holds profile %s: %w", p.Name(), err)
		}
		if name, _ := governance.ParseHolder(holder); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
