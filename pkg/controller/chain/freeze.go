package chain

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// Freezes reports whether the cluster is frozen. The engine writes and deletes nothing in a frozen
// cluster.
type Freezes interface {
	// Frozen returns the reason of the freeze, or nil if there is none. freeze.ErrUnknown means
	// that the answer is pending. Any other error explains why the answer is unknown.
	Frozen() (*rollout.Freeze, error)
	// Changed receives an element when the answer changes.
	Changed() <-chan event.TypedGenericEvent[string]
}

func (r *reconciler) everyChain(ctx context.Context, _ string) []reconcile.Request {
	var all olmv1alpha1.ClusterExtensionRevisionList
	// The caller reads only the labels, so copies are not needed.
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the client reads a cache, which has synced
	}
	known := map[string]bool{}
	var requests []reconcile.Request
	for i := range all.Items {
		for _, request := range bychain.Requests(ctx, &all.Items[i]) {
			if !known[request.Name] {
				known[request.Name] = true
				requests = append(requests, request)
			}
		}
	}
	return requests
}
