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
	workers = 4
	// retryFirst and retryMost bound the time between attempts that fail.
	retryFirst, retryMost = time.Second, time.Minute
	// retryDenied is the wait before asking again for rights that an author lacks, and for kinds
	// that no definition announces: no event tells when that changes.
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
	// Kinds are those whose objects this process may watch.
	Kinds []annotated.Kind
	// Catalogs reads and writes objects of the kinds, and Definitions watches
	// CustomResourceDefinitions, in the name of this process.
	Catalogs    dynamic.Interface
	Definitions metadata.Interface
	// Reader and Objects read and watch what templates name, in the name of penstock-templates.
	Reader  Reader
	Objects metadata.Interface
	Rights  Rights
	Key     author.Key
	Events  Events
	Clock   clock.WithTicker
}

// key is an object of a kind.
type key struct {
	// definition is the definition of the kind.
	definition string
	types.NamespacedName
}

// Controller is safe for concurrent use.
type Controller struct {
	Options
	queue   workqueue.TypedRateLimitingInterface[key]
	kinds   map[string]annotated.Kind
	version *versions
	// running counts the watches, and the passes that may begin one.
	running sync.WaitGroup

	mu sync.Mutex
	// informers have the objects of kinds that the cluster has, by definition.
	informers map[string]cache.SharedIndexInformer
	// settled has the state of each object after its last pass. An object gets another pass when
	// its state differs. It also gets one when it is in unsettled, because something that it needs
	// has changed.
	settled   map[key]string
	unsettled map[key]bool
	// behind are the resource versions of objects that were written over: the watch brings
	// them late.
	behind map[key][]string
	// needs has the needs of each object.
	needs map[key]needs
	// sources are the watched objects that templates name.
	sources map[imagetemplate.Object]*source
	// definitions ends the watch of all definitions, which there is while a kind is missing.
	definitions context.CancelFunc
	// announced is until when the kinds of a group are expected to be served.
	announced map[string]time.Time
	// states are for the metrics.
	states map[key]state
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

// Run follows templates until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("image-templates"))
	defer c.running.Wait()
	defer c.queue.ShutDown() // the workers wait for it
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
		// The watch is about to bring the object as it is now.
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

// lookAgain queues objects even if they did not change.
func (c *Controller) lookAgain(all ...key) {
	c.unsettle(all...)
	for _, k := range all {
		c.queue.Add(k)
	}
}
