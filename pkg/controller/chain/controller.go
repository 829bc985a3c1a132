package chain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// workers is the number of chains that are reconciled at the same time. Their writes share one
// limiter (see package targetclient).
const workers = 8

// compiledLayers bounds the compiled revisions that are kept: those of chains with recent events.
// One of 60 objects has 15 KB. Others are compiled at the next pass of their chain, which takes
// less time than the pass itself.
const compiledLayers = 256

// Options of the controller. All are required, but for Passes.
type Options struct {
	// Client for our own API; it reads from a cache.
	Client client.Client
	// Reader reads our own API past the cache.
	Reader client.Reader
	// Engine rolls out what names no target of its own.
	Engine *rollout.Engine
	// Targets resolves the clusters that chains name.
	Targets Targets
	// Events records events for users, in the host cluster. It knows the kinds of our own API.
	Events      record.EventRecorder
	Packs       Packs
	Heads       Heads
	Inventories Inventories
	// Rollbacks is the API's own way back.
	Rollbacks Rollbacks
	// Owners follows who is held by a rollback.
	Owners Owners
	// Freezes reports whether the cluster is frozen.
	Freezes Freezes
	// Metrics runs MetricChecks.
	Metrics Metrics
	Clock   clock.PassiveClock
	// Changed receives a chain's name when something happened to one of its
	// objects.
	Changed <-chan event.TypedGenericEvent[string]
	// Passes records the running passes; nil records none.
	Passes *Passes
}

// Add registers the controller with a manager.
func Add(mgr manager.Manager, options Options) error {
	r := &reconciler{
		Options:  options,
		library:  newLibrary(options.Packs),
		compiled: lru.New(compiledLayers),
	}
	changed := source.TypedChannel[string, reconcile.Request](options.Changed, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, chain string) []reconcile.Request {
			return []reconcile.Request{bychain.Request(chain)}
		}))
	loop := builder.ControllerManagedBy(mgr).
		Named("chain").
		Watches(&olmv1alpha1.ClusterExtensionRevision{}, revisions{
			EventHandler: handler.EnqueueRequestsFromMapFunc(bychain.Requests), saw: r.saw,
		}).
		WatchesRawSource(changed).
		WatchesRawSource(source.TypedChannel[string, reconcile.Request](options.Freezes.Changed(),
			handler.TypedEnqueueRequestsFromMapFunc(r.everyChain))).
		WatchesRawSource(source.TypedChannel[string, reconcile.Request](options.Metrics.Changed(),
			handler.TypedEnqueueRequestsFromMapFunc(r.everyChain)))
	err := loop.WithOptions(controller.Options{MaxConcurrentReconciles: workers, SkipNameValidation: ptr.To(true)}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the chain controller: %w", err)
	}
	return nil
}

// revisions queues a chain when a revision is created, deleted, or changed in a way that concerns the
// controller.
type revisions struct {
	handler.EventHandler
	// saw is called with each changed revision, including changes by the controller itself.
	saw func(revision client.Object)
}

// Update implements handler.EventHandler. The cache has the revision by then.
func (r revisions) Update(ctx context.Context, update event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	r.saw(update.ObjectNew)
	if concerns(update) {
		r.EventHandler.Update(ctx, update, queue)
	}
}

// concerns is true for updates that may change what is to be done. Status, and the
// annotation that sums it up, do not: this controller writes them.
func concerns(update event.UpdateEvent) bool {
	before, after := update.ObjectOld, update.ObjectNew
	if before.GetGeneration() != after.GetGeneration() || len(before.GetFinalizers()) != len(after.GetFinalizers()) {
		return true
	}
	for _, name := range []string{
		olmv1alpha1.AllowCRDDeletionAnnotation, olmv1alpha1.TakeOverFromAnnotation, olmv1alpha1.AcknowledgeDeletionAnnotation, olmv1alpha1.ReleaseHoldAnnotation, olmv1alpha1.ChangeCauseAnnotation, olmv1alpha1.VersionAnnotation,
		olmv1alpha1.HelmReleaseAnnotation, olmv1alpha1.HandedToHelmAnnotation, olmv1alpha1.ReportDriftUntilAnnotation,
	} {
		if before.GetAnnotations()[name] != after.GetAnnotations()[name] {
			return true
		}
	}
	return false
}

// event records an event of a revision.
func (r *reconciler) event(revision *olmv1alpha1.ClusterExtensionRevision, warning bool, reason, message string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	r.Events.Event(revision, kind, reason, clip(message))
}
