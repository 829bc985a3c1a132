package chartkind

import (
	"context"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/controller/rendering"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/right"
	"github.com/penstock-project/penstock/pkg/source/chart/template"
)

// Managers of the fields that the two loops write.
const (
	// FieldManager makes revisions, and writes what came of that.
	FieldManager = "penstock-chartkinds"
	// StatusManager writes what changes without a revision.
	StatusManager = "penstock-chartkinds-status"
)

// kindWorkers, passWorkers and statusWorkers are how many ChartKinds and custom resources
// are looked at at a time.
const kindWorkers, passWorkers, statusWorkers = 2, 4, 4

// Packs reads the manifests of a revision.
type Packs interface {
	Objects(ctx context.Context, root string) ([]manifest.Object, error)
}

// Charts pulls charts.
type Charts interface {
	// Chart returns the archive of a chart, and its reference with the digest. An error of type
	// *image.Refused will be the same next time.
	Chart(ctx context.Context, reference string) (archive []byte, pinned string, err error)
}

// Definitions reads CustomResourceDefinitions of the host. It returns nil for one that does
// not exist.
type Definitions interface {
	Definition(ctx context.Context, target, name string) (*apiextensionsv1.CustomResourceDefinition, error)
}

// Capabilities reads what charts see of the cluster that is rolled out into; target is empty.
type Capabilities interface {
	Capabilities(ctx context.Context, target string) (*template.Capabilities, error)
}

// Rights asks the host, now, whether somebody has a right.
type Rights interface {
	May(ctx context.Context, who user.Info, asked right.Right) (bool, error)
}

// Account is what a ServiceAccount does in the host.
type Account struct {
	Objects  dynamic.Interface
	Metadata metadata.Interface
}

// Options of a Controller; all but Releases are required.
type Options struct {
	// Kinds are for ChartKinds, and Metadata for CustomResourceDefinitions, in the name of this
	// process.
	Kinds    dynamic.Interface
	Metadata metadata.Interface
	// Workloads are for those of the cluster that is rolled out into, in the name of the engine.
	Workloads dynamic.Interface
	// Releases removes the finalizer from custom resources that no ServiceAccount serves any more, in
	// the name of the engine; nil, where the engine has no identity in the host, keeps it.
	Releases dynamic.Interface
	// Account is for custom resources and inputs, in the name of a ServiceAccount.
	Account func(chartkind.ServiceAccount) (Account, error)
	// Informer is that of revisions.
	Informer interface {
		AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	}
	// Store writes revisions in the name of ServiceAccounts, and none in that of this process.
	maker.Store
	Packs Packs
	// Key verifies the stamps of authors.
	Key         author.Key
	Rights      Rights
	Charts      Charts
	Definitions Definitions
	// Capabilities are read each time that a chart is rendered.
	Capabilities Capabilities
	// Pool bounds what is rendered at a time.
	Pool *rendering.Pool
	// Program renders charts; empty is the one that runs.
	Program string
	Clock   clock.WithTicker
}

// Controller is safe for concurrent use.
type Controller struct {
	Options
	queue     maker.Queue
	workloads *workloads

	mu sync.Mutex
	// kinds is nil while the host has no ChartKinds, or that is not known.
	kinds cache.SharedIndexInformer
	// running are the ChartKinds that are served, by name.
	running map[string]*served
	// renders is how often the charts of ChartKinds were rendered, by name.
	renders map[string]int
}

// New returns a controller that sends no request before Run.
func New(o Options) *Controller {
	c := &Controller{Options: o, running: map[string]*served{}, renders: map[string]int{}, queue: maker.NewQueue(o.Clock)}
	c.workloads = newWorkloads(o.Workloads, c.lookByChain)
	return c
}

// Run serves ChartKinds until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("chartkinds"))
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown()
	if err := c.watchRevisions(); err != nil {
		return err
	}
	running.Go(func() {
		objectwatch.WhileDefined(ctx, c.Metadata, chartkind.DefinitionName, func(bool) { c.setKinds(nil) }, c.watchKinds)
	})
	running.Go(func() { c.workloads.run(ctx) })
	for range kindWorkers {
		running.Go(func() { maker.Work(ctx, c.queue, c.reconcileKind, "A ChartKind could not be served; trying again") })
	}
	<-ctx.Done()
	c.stopAll()
	return nil
}

func (c *Controller) setKinds(informer cache.SharedIndexInformer) {
	c.mu.Lock()
	c.kinds = informer
	c.mu.Unlock()
	if informer == nil {
		c.stopAll()
	}
}

// watchKinds asks for a pass over each ChartKind that comes, changes or goes.
func (c *Controller) watchKinds(ctx context.Context) {
	informer := objectwatch.NewInformer(c.Kinds, c.Kinds.Resource(chartkind.Resource), &unstructured.Unstructured{},
		objectwatch.InformerOptions{Keep: ctrlcache.TransformStripManagedFields(), Failed: objectwatch.NotServedYet})
	add := func(object any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil || ctx.Err() != nil {
			return
		}
		c.queue.Add(key)
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		// Another one of its kind waits for it, or has to.
		if changed, ok := object.(*unstructured.Unstructured); ok {
			for _, other := range c.kindsOf(resourceOf(changed)) {
				c.queue.Add(other.GetName())
			}
		}
	}
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, DeleteFunc: add, UpdateFunc: func(before, now any) {
		if !sameButStatus(before, now) {
			add(now)
		}
	}})
	c.setKinds(informer)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { informer.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		for _, key := range informer.GetStore().ListKeys() {
			c.queue.Add(key)
		}
	}
}

// findKind returns a ChartKind, nil when there is none. known is false when that is not known.
func (c *Controller) findKind(name string) (object *unstructured.Unstructured, known bool) {
	c.mu.Lock()
	informer := c.kinds
	c.mu.Unlock()
	if informer == nil {
		return nil, false
	}
	return find(informer, name)
}

func find(informer cache.SharedIndexInformer, key string) (object *unstructured.Unstructured, known bool) {
	if !informer.HasSynced() {
		return nil, false
	}
	found, exists, err := informer.GetStore().GetByKey(key)
	if err != nil || !exists {
		return nil, err == nil
	}
	object, known = found.(*unstructured.Unstructured)
	return object, known
}

func (c *Controller) stopAll() {
	c.mu.Lock()
	all := c.running
	c.running = map[string]*served{}
	c.mu.Unlock()
	for _, one := range all {
		one.stop()
	}
}

func (c *Controller) servedBy(name string) *served {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[name]
}
