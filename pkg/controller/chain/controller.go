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

// workers is the number of chains that are reconciled in parallel. Their writes share one limiter
// (see package targetclient).
const workers = 8

// compiledLayers bounds the cache of compiled revisions. It holds the chains with recent events. A
// compiled revision of 60 objects takes 15 KB. Compiling again takes less time than a pass.
const compiledLayers = 256

// Options of the controller. All are required, except Passes.
type Options struct {
	// Client accesses Penstock's own API, and reads from a cache.
	Client client.Client
	// Reader reads Penstock's own API without the cache.
	Reader client.Reader
	// Engine rolls out revisions that name no target.
	Engine *rollout.Engine
	// Targets resolves the clusters that chains name.
	Targets Targets
	// Events records events for users in the host. It knows the kinds of Penstock's own API.
	Events      record.EventRecorder
	Packs       Packs
	Heads       Heads
	Inventories Inventories
	// Rollbacks requests rollbacks from Penstock's own API.
	Rollbacks Rollbacks
	// Owners watches the owners that a rollback holds.
	Owners Owners
	// Freezes reports whether the cluster is frozen.
	Freezes Freezes
	// Metrics runs MetricChecks.
	Metrics Metrics
	Clock   clock.PassiveClock
	// Changed receives the name of a chain when one of its objects changed.
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

// revisions enqueues a chain when a revision is created, deleted, or changed in a way that concerns
// the controller.
type revisions struct {
	handler.EventHandler
	// saw is called with each changed revision, also if the controller itself changed it.
	saw func(revision client.Object)
}

// Update implements handler.EventHandler. The cache already holds the revision.
func (r revisions) Update(ctx context.Context, update event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	r.saw(update.ObjectNew)
	if concerns(update) {
		r.EventHandler.Update(ctx, update, queue)
	}
}

// concerns reports whether an update may need a pass. Changes of status, and of the annotation that
// summarises it, do not: this controller writes them.
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

func (r *reconciler) event(revision *olmv1alpha1.ClusterExtensionRevision, warning bool, reason, message string) {
	kind := corev1.EventTypeNormal
	if warning {
		kind = corev1.EventTypeWarning
	}
	r.Events.Event(revision, kind, reason, clip(message))
}
