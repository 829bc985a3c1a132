package fleet

import (
	"context"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/controller/extension"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extensionset"
	rollouts "github.com/penstock-project/penstock/pkg/generated/clientset/versioned/typed/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// FieldManager owns Penstock's fields of children, rollouts and the status of sets.
const FieldManager = "penstock-fleet"

const (
	// workers is the number of sets that are reconciled in parallel.
	workers = 2
	// lookEvery is the interval between two reads of a cluster while its rollout is in progress.
	// lookTimeout bounds one read. lookers is the number of reads that run in parallel.
	lookEvery   = 5 * time.Second
	lookTimeout = 5 * time.Second
	lookers     = 16
	// maxChanging bounds the changing clusters of all sets together.
	maxChanging = 64
)

// Extensions reads ClusterExtensions. *extension.Controller implements it.
type Extensions interface {
	Find(name string) (object *unstructured.Unstructured, known bool)
	Children(set string) (children []*unstructured.Unstructured, known bool)
	Diff(ctx context.Context, found *extension.Preview) (*olmv1alpha1.RevisionDiff, *maker.Outcome)
	Preview(ctx context.Context, child *unstructured.Unstructured, who user.Info) (*extension.Preview, *maker.Outcome)
}

// Windows reads the maintenance windows of the host.
type Windows interface {
	Decide(labels map[string]string) maintenancewindow.Decision
	OnChange(tell func())
}

// Freezes reports whether the host is frozen.
type Freezes interface {
	Frozen() (*rollout.Freeze, error)
	Follow(ctx context.Context, tell func())
}

// Options of a Controller; all are required.
type Options struct {
	// Host reads and writes sets and ClusterExtensions. Definitions watches the
	// CustomResourceDefinition of sets.
	Host        dynamic.Interface
	Definitions metadata.Interface
	// Core reads the Secrets of clusters in Namespace.
	Core      kubernetes.Interface
	Namespace string
	// Rollouts reads and writes the rollouts, which Penstock serves itself.
	Rollouts rollouts.ClusterExtensionRolloutInterface
	// Store reads revisions, and writes as this process.
	maker.Store
	Extensions Extensions
	Catalogs   *inventory.Inventory
	Windows    Windows
	Freezes    Freezes
	// Key verifies the author stamps of sets, and signs the stamps of children.
	Key    author.Key
	Rights maker.Rights
	// Look returns the uid of the cluster of a configuration.
	Look  func(ctx context.Context, config *rest.Config) (string, error)
	Clock clock.WithTicker
}

// Controller is safe for concurrent use.
type Controller struct {
	Options
	queue maker.Queue

	mu sync.Mutex
	// known is nil while the host does not serve ClusterExtensionSets.
	known *known
	// looks holds the last read of each cluster, by Secret.
	looks    map[string]look
	previews map[string]map[string]preview
	changing map[string]int
}

// New returns a controller that sends no request before Run.
func New(o Options) *Controller {
	return &Controller{Options: o, queue: maker.NewQueue(o.Clock), looks: map[string]look{}, previews: map[string]map[string]preview{}, changing: map[string]int{}}
}

// known holds the watches that run while the host serves ClusterExtensionSets.
type known struct {
	sets     cache.SharedIndexInformer
	secrets  *objectwatch.Watch[*corev1.Secret]
	rollouts cache.SharedIndexInformer
}

// withoutData keeps only the metadata of Secrets. Each look reads the content from the host.
func withoutData(object any) (any, error) {
	if secret, ok := object.(*corev1.Secret); ok {
		secret.Data, secret.ManagedFields, secret.Annotations = nil, nil, nil
	}
	return object, nil
}

// Run reconciles sets until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("fleet"))
	var running sync.WaitGroup
	defer running.Wait()
	defer c.queue.ShutDown() // ends the workers
	add := func(object any) {
		if revision, ok := objectwatch.Told[*olmv1alpha1.ClusterExtensionRevision](object); ok {
			if set, _, child := strings.Cut(revision.Labels[olmv1alpha1.ChainLabel], "."); child {
				c.addSet(set)
			}
		}
	}
	if _, err := c.Informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, now any) { add(now) }, DeleteFunc: add}); err != nil {
		return err
	}
	c.Windows.OnChange(c.addAll)
	running.Go(func() { c.watchCatalogs(ctx) })
	running.Go(func() { c.Freezes.Follow(ctx, c.addAll) })
	running.Go(func() {
		objectwatch.WhileDefined(ctx, c.Definitions, extensionset.DefinitionName, func(bool) { c.set(nil) }, c.watchSets)
	})
	for range workers {
		running.Go(func() {
			maker.Work(ctx, c.queue, c.reconcile, "A ClusterExtensionSet could not be reconciled; trying again")
		})
	}
	<-ctx.Done()
	return nil
}

func (c *Controller) set(watches *known) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = watches
}

func (c *Controller) watches() *known {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

// informer returns the informer of sets, or nil while the host does not serve them.
func (c *Controller) informer() cache.SharedIndexInformer {
	if watches := c.watches(); watches != nil {
		return watches.sets
	}
	return nil
}

// watchSets watches sets, clusters and rollouts while the host has the definition.
func (c *Controller) watchSets(ctx context.Context) {
	informer := objectwatch.NewInformer(c.Host, c.Host.Resource(extensionset.Resource), &unstructured.Unstructured{}, objectwatch.InformerOptions{Failed: objectwatch.NotServedYet})
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil && ctx.Err() == nil {
			c.queue.Add(key)
		}
	}
	// AddEventHandler cannot fail before the informer runs.
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, DeleteFunc: add, UpdateFunc: func(_, now any) { add(now) }})
	watches := &known{
		sets:     informer,
		secrets:  objectwatch.New(c.Core, c.Core.CoreV1().Secrets(c.Namespace), &corev1.Secret{}, objectwatch.Options{Selector: extensionset.ClusterLabel, Changed: c.addAll, Keep: withoutData, Failed: func() {}}),
		rollouts: objectwatch.NewInformer(c.Rollouts, c.Rollouts, &olmv1alpha1.ClusterExtensionRollout{}, objectwatch.InformerOptions{Failed: objectwatch.NotServedYet}),
	}
	ofSet := func(object any) {
		if rollout, ok := objectwatch.Told[*olmv1alpha1.ClusterExtensionRollout](object); ok && ctx.Err() == nil {
			c.addSet(rollout.Spec.Set.Name)
		}
	}
	_, _ = watches.rollouts.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: ofSet, UpdateFunc: func(_, now any) { ofSet(now) }, DeleteFunc: ofSet})
	c.set(watches)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { watches.secrets.Run(ctx) })
	objectwatch.Follow(ctx, c.addAll, informer, watches.rollouts)
}

func (c *Controller) addAll() {
	for _, set := range objectwatch.All[*unstructured.Unstructured](c.informer()) {
		c.queue.Add(set.GetName())
	}
}

func (c *Controller) addSet(name string) {
	if set, known := objectwatch.Find[*unstructured.Unstructured](c.informer(), name); known && set != nil {
		c.queue.Add(name)
	}
}

func (c *Controller) watchCatalogs(ctx context.Context) {
	for {
		outdated := c.Catalogs.Snapshot().Outdated()
		c.addAll()
		select {
		case <-ctx.Done():
			return
		case <-outdated:
		}
	}
}
