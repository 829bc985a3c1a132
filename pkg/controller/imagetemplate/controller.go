package imagetemplate

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/imagetemplate"
	"github.com/penstock-project/penstock/pkg/imagetemplate/annotated"
	"github.com/penstock-project/penstock/pkg/imagetemplate/lookup"
)

// FieldManager is the field manager of images and conditions. GitOps tools must ignore its fields.
const FieldManager = "penstock-image-templates"

const (
	// workers is the number of objects that are reconciled at the same time.
	workers               = 4
	retryFirst, retryMost = time.Second, time.Minute
	// retryDenied is the delay before rights that an author lacks, and kinds without a definition,
	// are checked again: no event reports their arrival.
	retryDenied = 2 * time.Minute
)

// Reader reads the values of variables. *lookup.Reader implements it.
type Reader interface {
	Version(ctx context.Context) (string, error)
	Find(ctx context.Context, object imagetemplate.Object) (lookup.Resource, error)
	Read(ctx context.Context, resource lookup.Resource, field imagetemplate.Field) (string, error)
}

// Rights checks the rights of an author.
type Rights interface {
	May(ctx context.Context, who user.Info, asked authz.Right) (bool, error)
}

// Events records events of an object.
type Events interface {
	Event(object runtime.Object, eventType, reason, message string)
}

// Options of a Controller; all are required.
type Options struct {
	// Kinds lists the kinds whose objects this process may watch.
	Kinds []annotated.Kind
	// Catalogs reads and writes objects of the kinds. Definitions watches
	// CustomResourceDefinitions. Both act as this process.
	Catalogs    dynamic.Interface
	Definitions metadata.Interface
	// Reader reads and Objects watches the objects that templates name, as penstock-templates.
	Reader  Reader
	Objects metadata.Interface
	Rights  Rights
	Key     author.Key
	Events  Events
	Clock   clock.WithTicker
}

type key struct {
	// definition is the name of the kind's CustomResourceDefinition.
	definition string
	types.NamespacedName
}

// Controller is safe for concurrent use.
type Controller struct {
	Options
	queue   workqueue.TypedRateLimitingInterface[key]
	kinds   map[string]annotated.Kind
	version *versions
	// running counts the watches, and the passes that may start one.
	running sync.WaitGroup

	mu sync.Mutex
	// informers hold the objects of served kinds, by definition.
	informers map[string]cache.SharedIndexInformer
	// settled has the state of each object after its last pass. An object gets another pass if its
	// state differs. It also gets one if it is in unsettled, because an object or version that it
	// needs has changed.
	settled   map[key]string
	unsettled map[key]bool
	// behind holds the resourceVersions that this controller has replaced: the watch may still
	// report them.
	behind  map[key][]string
	needs   map[key]needs
	sources map[imagetemplate.Object]*source
	// definitions ends the watch of all definitions, which runs only while a kind is missing.
	definitions context.CancelFunc
	// announced holds the time until which the kinds of a new definition are expected to be served,
	// by group.
	announced map[string]time.Time
	states    map[key]state
}

// New returns a controller that sends no request before Run.
func New(o Options) *Controller {
	c := &Controller{
		Options: o, kinds: map[string]annotated.Kind{}, informers: map[string]cache.SharedIndexInformer{}, settled: map[key]string{}, unsettled: map[key]bool{}, behind: map[key][]string{}, needs: map[key]needs{},
		sources: map[imagetemplate.Object]*source{}, announced: map[string]time.Time{}, states: map[key]state{},
		version: newVersions(o.Reader, o.Clock),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[key](retryFirst, retryMost), workqueue.TypedRateLimitingQueueConfig[key]{Clock: o.Clock}),
	}
	for _, kind := range o.Kinds {
		c.kinds[kind.Definition()] = kind
	}
	return c
}

// Run reconciles templates until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("image-templates"))
	defer c.running.Wait()
	defer c.queue.ShutDown() // ends the workers
	c.running.Go(func() { c.version.run(ctx, c.versionChanged) })
	for _, kind := range c.Kinds {
		c.running.Go(func() { c.watchDefinition(ctx, kind) })
	}
	for range workers {
		c.running.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

// next reconciles the next object of the queue. It returns false when the queue is shut down.
func (c *Controller) next(ctx context.Context) bool {
	k, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(k)
	again, err := c.reconcile(ctx, k)
	switch {
	case ctx.Err() != nil:
		return true
	case apierrors.IsConflict(err):
		// The watch will report the present object.
		c.unsettle(k)
		c.queue.AddRateLimited(k)
		return true
	case err != nil:
		klog.FromContext(ctx).Error(err, "The template of an image could not be followed; trying again", "definition", k.definition, "object", k.NamespacedName)
		c.unsettle(k)
		c.queue.AddRateLimited(k)
		return true
	}
	c.queue.Forget(k)
	if again > 0 {
		c.unsettle(k)
		c.queue.AddAfter(k, again)
	}
	return true
}

// unsettle makes the next pass reconcile objects even if they did not change.
func (c *Controller) unsettle(all ...key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range all {
		c.unsettled[k] = true
	}
}

// requeue enqueues objects even if they did not change.
func (c *Controller) requeue(all ...key) {
	c.unsettle(all...)
	for _, k := range all {
		c.queue.Add(k)
	}
}
