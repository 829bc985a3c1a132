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

// Field managers of the two loops.
const (
	// FieldManager is the field manager of revisions and of the status of custom resources.
	FieldManager = "penstock-chartkinds"
	// StatusManager owns the fields that change without a revision.
	StatusManager = "penstock-chartkinds-status"
)

// kindWorkers, passWorkers and statusWorkers are the numbers of ChartKinds and custom resources
// that are reconciled in parallel.
const kindWorkers, passWorkers, statusWorkers = 2, 4, 4

// Packs reads the manifests of a revision.
type Packs interface {
	Objects(ctx context.Context, root string) ([]manifest.Object, error)
}

// Charts pulls charts.
type Charts interface {
	// Chart pulls a chart. An error of type *image.Refused is permanent, unless it is Unverified.
	Chart(ctx context.Context, reference string) (*Pulled, error)
}

// Pulled is a pulled chart.
type Pulled struct {
	Archive []byte
	// Reference includes the digest.
	Reference string
	// Signed is the verification by the signature policies; nil without a policy.
	Signed *signer.Record
}

// Account acts as a ServiceAccount in the host.
type Account struct {
	Objects  dynamic.Interface
	Metadata metadata.Interface
}

// Options of a Controller; all are required, except Releases.
type Options struct {
	// Kinds accesses ChartKinds. Metadata accesses CustomResourceDefinitions. Both act as this
	// process.
	Kinds    dynamic.Interface
	Metadata metadata.Interface
	// Workloads accesses workloads of the default target cluster, with the engine's identity.
	Workloads dynamic.Interface
	// Releases removes the finalizer, with the engine's identity, from custom resources that no
	// ServiceAccount serves any more. If the engine has no identity in the host, Releases is nil
	// and the finalizer stays.
	Releases dynamic.Interface
	// Account returns access to custom resources and inputs as a ServiceAccount.
	Account func(chartkind.ServiceAccount) (Account, error)
	// Store writes revisions as ServiceAccounts, never as this process.
	maker.Store
	Packs Packs
	// Key verifies the author stamps.
	Key         author.Key
	Rights      maker.Rights
	Charts      Charts
	Definitions maker.Definitions
	// Capabilities reads the capabilities of a cluster for each rendering.
	Capabilities maker.Capabilities
	// Pool limits concurrent renderings.
	Pool *rendering.Pool
	// Program is the program that renders charts; empty means the running program.
	Program string
	Clock   clock.WithTicker
}

// Controller is safe for concurrent use.
type Controller struct {
	Options
	queue     maker.Queue
	workloads *workloads

	mu sync.Mutex
	// kinds is nil while the host does not serve ChartKinds, or this is unknown.
	kinds   cache.SharedIndexInformer
	running map[string]*served
	renders map[string]int
}

// New returns a controller that sends no request before Run.
func New(o Options) *Controller {
	c := &Controller{Options: o, running: map[string]*served{}, renders: map[string]int{}, queue: maker.NewQueue(o.Clock)}
	c.workloads = newWorkloads(o.Workloads, c.enqueueByChain)
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

func (c *Controller) watchKinds(ctx context.Context) {
	informer := objectwatch.NewInformer(c.Kinds, c.Kinds.Resource(chartkind.Resource), &unstructured.Unstructured{},
		objectwatch.InformerOptions{Keep: ctrlcache.TransformStripManagedFields(), Failed: objectwatch.NotServedYet})
	add := func(object any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil || ctx.Err() != nil {
			return
		}
		c.queue.Add(key)
		// Another ChartKind of the same kind may have to take over, or to wait.
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

// informer returns the informer of ChartKinds, or nil while the host does not serve them, or this
// is unknown.
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

// Counts holds the numbers of a served ChartKind.
type Counts struct {
	// Name is the name of the ChartKind.
	Name string
	// States counts its custom resources by the reason of Progressing; empty before that condition
	// exists.
	States map[string]int
	// Renders counts the renderings of its chart.
	Renders int
}

// Counts returns the numbers of all served ChartKinds, from caches.
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

func (s *served) countRender() {
	s.Controller.mu.Lock()
	defer s.Controller.mu.Unlock()
	s.Controller.renders[s.name]++
}
