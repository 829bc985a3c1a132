package catalog

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/catalog/content"
	"github.com/penstock-project/penstock/pkg/catalog/contentserver"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/catalog/index"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

// FieldManager owns Penstock's fields of the status of ClusterCatalogs.
const FieldManager = "penstock-catalogs"

const (
	// workers is the number of catalogs that are reconciled in parallel. The image store bounds the
	// pulls.
	workers    = 4
	retryFirst = 5 * time.Second
	retryMost  = 15 * time.Minute
)

// Images pulls and stores images. *image.Store implements it.
type Images interface {
	Fetch(ctx context.Context, request image.Request) (*image.Image, error)
	Collect(digests []string) error
}

// Credentials returns a file with credentials for registries, or "" for none. done removes the
// file.
type Credentials interface {
	File(ctx context.Context) (file string, done func(), err error)
}

// Clients holds the clients of the host.
type Clients struct {
	Catalogs    dynamic.Interface
	Definitions metadata.Interface
	Leases      kubernetes.Interface
}

// Options of a Controller; all are required except the last three.
type Options struct {
	Clients
	Images      Images
	Indexes     *index.Store
	Contents    *content.Store
	Inventory   *inventory.Inventory
	Credentials Credentials
	Clock       clock.WithTicker
	// Catalogd returns a client for catalogd. It must not follow redirects.
	Catalogd func() (*http.Client, error)
	// SeesLeases is true if the leases of catalogd can be watched. Otherwise Penstock writes
	// nothing, because catalogd may be running.
	SeesLeases bool
	// CatalogdNamespaces lists the namespaces of leases of catalogd. Leases in other namespaces are
	// ignored, because any user with the right to create one could stop Penstock.
	CatalogdNamespaces []string
	// TakeOver lets this process write ClusterCatalogs although catalogd's lease exists, unless
	// catalogd holds the lease.
	TakeOver bool
	// Base is the URL below which catalogs are served; empty if no server listens.
	Base string
}

// Controller is safe for concurrent use.
type Controller struct {
	Options
	queue   workqueue.TypedRateLimitingInterface[string]
	leading atomic.Bool

	mu sync.Mutex
	// watching is nil while the host does not serve ClusterCatalogs, or this is unknown.
	watching *objectwatch.Watch[*unstructured.Unstructured]
	leases   *objectwatch.Watch[*coordinationv1.Lease]
	known    map[string]*known
	// told holds the catalogs in the inventory. complete is true after the inventory was marked as
	// complete.
	told     map[string]bool
	complete bool
	// kept counts, by digest, the temporary users of files.
	kept  map[string]int
	pulls map[string]pull

	collecting sync.Mutex
}

type pull struct {
	uid        string
	generation int64
	cancel     context.CancelFunc
}

// New returns a controller that sends no request before Run.
func New(o Options) *Controller {
	return &Controller{
		Options: o, known: map[string]*known{}, told: map[string]bool{}, kept: map[string]int{}, pulls: map[string]pull{},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Minute),
			workqueue.TypedRateLimitingQueueConfig[string]{Clock: o.Clock}),
	}
}

// Run reconciles catalogs until ctx ends.
func (c *Controller) Run(ctx context.Context) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("catalogs"))
	var running sync.WaitGroup
	defer c.close()
	defer running.Wait()
	defer c.queue.ShutDown() // ends the workers
	if c.SeesLeases {
		leases := objectwatch.New(c.Leases, c.Leases.CoordinationV1().Leases(metav1.NamespaceAll), &coordinationv1.Lease{},
			objectwatch.Options{Name: clustercatalog.CatalogdLease, Changed: c.requeueWhenOwnerChanged()})
		c.mu.Lock()
		c.leases = leases
		c.mu.Unlock()
		running.Go(func() { leases.Run(ctx) })
	}
	running.Go(func() { c.watchDefinition(ctx) })
	for range workers {
		running.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
}

// Lead lets this replica write until ctx ends.
func (c *Controller) Lead(ctx context.Context) {
	c.leading.Store(true)
	defer c.leading.Store(false)
	c.requeueAll()
	<-ctx.Done()
}

func (c *Controller) next(ctx context.Context) bool {
	name, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(name)
	again, err := c.reconcile(ctx, name)
	switch {
	case ctx.Err() != nil:
		return true
	case apierrors.IsConflict(err):
		// The watch will report the present object.
		c.queue.AddRateLimited(name)
		return true
	case err != nil:
		klog.FromContext(ctx).Error(err, "A catalog could not be reconciled; trying again", "catalog", name)
		c.queue.AddRateLimited(name)
		return true
	}
	c.queue.Forget(name)
	if again > 0 {
		c.queue.AddAfter(name, again)
	}
	return true
}

func (c *Controller) requeueAll() {
	c.mu.Lock()
	watching := c.watching
	names := map[string]bool{}
	for name := range c.known {
		names[name] = true
	}
	c.mu.Unlock()
	if watching != nil {
		objects, err := watching.List()
		if err != nil {
			return // the catalogs are unknown
		}
		for _, object := range objects {
			names[object.GetName()] = true
		}
		c.endOutdated(objects)
	}
	// Content on disk can belong to a catalog that was deleted while this process did not run.
	for _, name := range c.Indexes.Catalogs() {
		names[name] = true
	}
	for name := range names {
		c.queue.Add(name)
	}
	c.notifyComplete()
}

// notifyComplete reports once that the inventory has all existing catalogs.
func (c *Controller) notifyComplete() {
	c.mu.Lock()
	watching, complete := c.watching, c.complete
	c.mu.Unlock()
	if complete || watching == nil {
		return
	}
	objects, err := watching.List()
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, object := range objects {
		if !c.told[object.GetName()] {
			return
		}
	}
	c.complete, c.told = true, nil
	c.Inventory.MarkComplete()
}

// endOutdated ends attempts whose catalog was deleted, switched off or changed.
func (c *Controller) endOutdated(objects []*unstructured.Unstructured) {
	wanted := map[string]*unstructured.Unstructured{}
	for _, object := range objects {
		wanted[object.GetName()] = object
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, running := range c.pulls {
		object := wanted[name]
		if object == nil || object.GetDeletionTimestamp() != nil || string(object.GetUID()) != running.uid || object.GetGeneration() != running.generation {
			running.cancel()
		}
	}
}

// find returns the object of a catalog, or nil if it does not exist. An error means that the answer
// is unknown.
func (c *Controller) find(name string) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	watching := c.watching
	c.mu.Unlock()
	if watching == nil {
		return nil, objectwatch.ErrUnknown
	}
	objects, err := watching.List()
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if object.GetName() == name {
			return object, nil
		}
	}
	return nil, nil
}

// Served returns the content that is served for a catalog, or nil.
func (c *Controller) Served(name string) *contentserver.Served {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.known[name]; known != nil && known.content != nil {
		return &contentserver.Served{Content: known.content, Modified: known.unpacked}
	}
	return nil
}

func (c *Controller) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, known := range c.known {
		known.closeImage()
	}
}

// pause returns the delay after a number of failures. It differs on each replica.
func pause(failures int) time.Duration {
	wait := retryFirst
	for range min(failures, 16) - 1 {
		wait = min(2*wait, retryMost)
	}
	return wait + time.Duration(rand.Int64N(int64(wait)/5+1))
}
