package registration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/server/accessreview"
	"github.com/penstock-project/penstock/pkg/server/managedobject"
)

// unregisteredAnnotation on the namespace holds the time when a user removed the registration.
// While it exists, no process registers or restores the registration.
const unregisteredAnnotation = "penstock.dev/unregistered-at"

const (
	// keepRetry and keepRetryMax bound the time between two tries to restore an
	// object.
	keepRetry    = 250 * time.Millisecond
	keepRetryMax = time.Minute
	// settle is the time that kube-apiservers may take to read a new CA bundle. A leaf of a new
	// authority is served only after that.
	settle = 10 * time.Second
)

// Keeper restores objects that another user changed or deleted. It watches each object by name. It
// compares our entry in managedFields with the entry after our last apply. While they are equal, no
// value of ours has changed, and Keeper sends no request.
type Keeper struct {
	client    kubernetes.Interface
	metadata  metadata.Interface
	namespace string
	objects   []managedobject.Object
	trust     *Trust

	queue   workqueue.TypedRateLimitingInterface[string]
	mu      sync.Mutex
	written map[string]writtenObject
}

type writtenObject struct {
	// entry is our entry in managedFields. version is the resourceVersion.
	entry, version string
}

// These keys of the queue are not names of objects.
const (
	// distributeKey writes the present bundle to all objects that have a bundle.
	distributeKey = "distribute"
	// adoptKey signs our leaf with the present authority.
	adoptKey = "adopt"
)

// NewKeeper returns a keeper of objects. Add it as a listener of trust, so that it applies changed
// bundles (see Trust.AddListener).
func NewKeeper(client kubernetes.Interface, metadatas metadata.Interface, namespace string, objects []managedobject.Object, trust *Trust) *Keeper {
	return &Keeper{
		client: client, metadata: metadatas, namespace: namespace, objects: objects, trust: trust,
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](keepRetry, keepRetryMax)),
		written: map[string]writtenObject{},
	}
}

// Enqueue implements dynamiccertificates.Listener. It is called when the trusted certificates have
// changed.
func (k *Keeper) Enqueue() { k.queue.Add(distributeKey) }

// Run keeps the objects until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("registration"))
	defer context.AfterFunc(ctx, k.queue.ShutDown)()
	var watching sync.WaitGroup
	defer watching.Wait()
	for _, p := range k.objects {
		if !accessreview.MayWatch(ctx, k.client, p.Resource, p.Namespace, p.Name, "Restore "+p.String()) {
			continue
		}
		watching.Go(func() { k.watch(ctx, p) })
	}
	// The bundle may have changed before the watch began.
	k.queue.Add(distributeKey)
	for {
		key, shutdown := k.queue.Get()
		if shutdown {
			return
		}
		if err := k.do(ctx, key); err != nil && ctx.Err() == nil {
			k.queue.AddRateLimited(key)
			klog.FromContext(ctx).Error(err, "An object that this process needs in the host cluster could not be restored; trying again", "what", key)
		} else {
			k.queue.Forget(key)
		}
		k.queue.Done(key)
	}
}

func (k *Keeper) watch(ctx context.Context, p managedobject.Object) {
	var watching *objectwatch.Watch[*metav1.PartialObjectMetadata]
	look := func() {
		object, err := watching.Get()
		if err == nil && (object == nil || !k.untouched(p, object)) {
			k.queue.Add(p.String())
		}
	}
	watching = objectwatch.New(k.metadata, k.metadata.Resource(p.Resource).Namespace(p.Namespace), &metav1.PartialObjectMetadata{},
		objectwatch.Options{Name: p.Name, Changed: look})
	watching.Run(ctx)
}

// untouched is true if no other writer has changed a value of ours since our last write.
func (k *Keeper) untouched(p managedobject.Object, object metav1.Object) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	written, known := k.written[p.String()]
	return known && written.entry == ownEntry(object)
}

func ownEntry(object metav1.Object) string {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == managedobject.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.FieldsV1 != nil {
			return entry.FieldsV1.GetRawString()
		}
	}
	return ""
}

func (k *Keeper) do(ctx context.Context, key string) error {
	switch key {
	case distributeKey:
		return k.distribute(ctx)
	case adoptKey:
		if rest := k.trust.adopt(time.Now()); rest > 0 {
			k.queue.AddAfter(adoptKey, rest)
		}
		return nil
	}
	i := slices.IndexFunc(k.objects, func(p managedobject.Object) bool { return p.String() == key })
	return k.restore(ctx, k.objects[i])
}

// distribute writes the bundle to all objects that have one, and then schedules a new leaf.
func (k *Keeper) distribute(ctx context.Context) error {
	authority := k.trust.Authority()
	for _, p := range k.objects {
		if !p.HasCABundle {
			continue
		}
		if err := k.restore(ctx, p); err != nil {
			return err
		}
	}
	if k.trust.distributed(authority, time.Now()) {
		k.queue.AddAfter(adoptKey, settle)
	}
	return nil
}

func (k *Keeper) restore(ctx context.Context, p managedobject.Object) error {
	leaving, err := whyLeaving(ctx, k.client, k.namespace)
	if err != nil {
		return err
	}
	if leaving != "" {
		klog.FromContext(ctx).Info("Not restoring an object that this process needs in the host cluster", "what", p.String(), "reason", leaving)
		return nil
	}
	if p.HasCABundle {
		// Another replica may have written a newer bundle.
		if err := k.trust.refresh(ctx); err != nil {
			return err
		}
	}
	object, err := p.Apply(ctx)
	if err != nil {
		return fmt.Errorf("restoring %s: %w", p, err)
	}
	k.noteWritten(ctx, p, object)
	return nil
}

func (k *Keeper) noteWritten(ctx context.Context, p managedobject.Object, object metav1.Object) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := writtenObject{entry: ownEntry(object), version: object.GetResourceVersion()}
	if before, known := k.written[p.String()]; known && before.version != now.version {
		klog.FromContext(ctx).Info("Restored an object that this process needs in the host cluster", "what", p.String())
	}
	k.written[p.String()] = now
}

// whyLeaving returns the reason why our objects do not belong into the host any more, or "".
func whyLeaving(ctx context.Context, client kubernetes.Interface, namespace string) (string, error) {
	found, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "namespace " + namespace + " is gone", nil
	case err != nil:
		return "", fmt.Errorf("reading namespace %s: %w", namespace, err)
	case found.DeletionTimestamp != nil:
		return "namespace " + namespace + " is being deleted", nil
	}
	if at, ok := found.Annotations[unregisteredAnnotation]; ok {
		return fmt.Sprintf("Penstock was unregistered at %s; to allow registration again: kubectl annotate namespace %s %s-", at, namespace, unregisteredAnnotation), nil
	}
	return "", nil
}
