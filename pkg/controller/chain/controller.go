package chain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// workers is how many chains are reconciled at the same time. The writes of all
// of them share one limiter (see package host).
const workers = 8

// Options of the controller. All are required.
type Options struct {
	// Client for our own API; it reads from a cache.
	Client client.Client
	Engine *rollout.Engine
	// Events is where people are told; they are stored in the host cluster.
	Events      events.EventRecorder
	Packs       Packs
	Heads       Heads
	Inventories Inventories
	Clock       clock.PassiveClock
	// Changed receives a chain's name when something happened to one of its
	// objects.
	Changed <-chan event.TypedGenericEvent[string]
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, options Options) error {
	r := &reconciler{Options: options, library: newLibrary(options.Packs), historian: newHistorian(options.Heads)}
	changed := source.TypedChannel[string, reconcile.Request](options.Changed, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, chain string) []reconcile.Request { return []reconcile.Request{request(chain)} }))
	err := builder.ControllerManagedBy(mgr).
		Named("chain").
		Watches(&olmv1alpha1.ClusterExtensionRevision{}, handler.EnqueueRequestsFromMapFunc(byChain),
			builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(changed).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, SkipNameValidation: ptr.To(true)}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the chain controller: %w", err)
	}
	return nil
}

// byChain maps a revision to its chain. Status alone does not change what is to be
// done: only this controller writes it.
func byChain(_ context.Context, revision client.Object) []reconcile.Request {
	if chain := revision.GetLabels()[olmv1alpha1.ChainLabel]; chain != "" {
		return []reconcile.Request{request(chain)}
	}
	return nil
}

func request(chain string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: chain}}
}

// event tells people something about a revision.
func (r *reconciler) event(revision *olmv1alpha1.ClusterExtensionRevision, warning bool, reason, message string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	about := &corev1.ObjectReference{
		APIVersion: olmv1alpha1.SchemeGroupVersion.String(), Kind: "ClusterExtensionRevision",
		Name: revision.Name, UID: revision.UID, ResourceVersion: revision.ResourceVersion,
	}
	// events.k8s.io asks for an action too; our reasons are what was done.
	r.Events.Eventf(about, nil, kind, reason, reason, "%s", clip(message))
}
