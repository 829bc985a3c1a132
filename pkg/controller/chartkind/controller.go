package chartkind

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/controller/rendering"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/signer"
)

// Managers of the fields that the two loops write.
const (
	// FieldManager is the field manager of revisions and of the status of custom resources.
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
	// Chart pulls a chart. An error of type
	// *image.Refused will be the same next time, unless it is Unverified.
	Chart(ctx context.Context, reference string) (*Pulled, error)
}

// Pulled is a chart that was pulled.
type Pulled struct {
	Archive []byte
	// Reference has the digest.
	Reference string
	// Signed says what the policies about signatures verified, and is nil without one.
	Signed *signer.Record
}

// Account has the actions of a ServiceAccount in the host.
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
	// Store writes revisions in the name of ServiceAccounts, and none in that of this process.
	maker.Store
	Packs Packs
	// Key verifies the stamps of authors.
	Key         author.Key
	Rights      maker.Rights
	Charts      Charts
	Definitions maker.Definitions
	// Capabilities are read each time that a chart is rendered.
	Capabilities maker.Capabilities
	// Pool limits concurrent renderings.
	Pool *rendering.Pool
	// Program is the program that renders charts; empty is the running one.
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
	// renders counts the renderings of the charts of ChartKinds, by name.
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

// watchKinds queues each ChartKind that is created, changed or deleted.
func (c *Controller) watchKinds(ctx context.Context) {
	informer := objectwatch.NewInformer(c.Kinds, c.Kinds.Resource(chartkind.Resource), &unstructured.Unstructured{},
		objectwatch.InformerOptions{Keep: ctrlcache.TransformStripManagedFields(), Failed: objectwatch.NotServedYet})
	add := func(object any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil || ctx.Err() != nil {
			return
		}
		c.queue.Add(key)
		// Another one of its kind waits for it, or has to.
		if changed, ok := objectwatch.Told[*unstructured.Unstructured](object); ok {
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
	objectwatch.Follow(ctx, func() {
		for _, key := range informer.GetStore().ListKeys() {
			c.queue.Add(key)
		}
	}, informer)
}

// informer returns the informer of ChartKinds; nil while the host has none, or that is unknown.
func (c *Controller) informer() cache.SharedIndexInformer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kinds
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

// Counts are numbers of a ChartKind that is served.
type Counts struct {
	// Name is the name of the ChartKind.
	Name string
	// States counts its custom resources by the reason of Progressing, which is empty before there
	// is one.
	States map[string]int
	// Renders is the number of times that its chart was rendered.
	Renders int
}

// Counts returns the numbers of all ChartKinds that are served, from caches.
func (c *Controller) Counts() []Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Counts
	for name, s := range c.running {
		one := Counts{Name: name, States: map[string]int{}, Renders: c.renders[name]}
		for _, object := range objectwatch.All[*unstructured.Unstructured](s.resources) {
			one.States[report.ProgressOf(object)]++
		}
		all = append(all, one)
	}
	return all
}

// countRender notes that a chart is rendered.
func (s *served) countRender() {
	s.Controller.mu.Lock()
	defer s.Controller.mu.Unlock()
	s.Controller.renders[s.name]++
}
