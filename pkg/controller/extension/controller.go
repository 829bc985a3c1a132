package extension

import (
	"context"
	"io/fs"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/controller/rendering"
	"github.com/penstock-project/penstock/pkg/crdsafety"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/signer"
	"github.com/penstock-project/penstock/pkg/source/bundle"
)

// FieldManager writes revisions and the status of ClusterExtensions.
const FieldManager = "penstock-extensions"

// workers is the number of extensions that are reconciled at the same time. The store of images
// bounds the pulls.
const workers = 8

// Manifests reads the manifests of a revision, in the order of rollout.
type Manifests func(ctx context.Context, revision string) ([][]byte, error)

// Images pulls what is installed. An error of type *image.Refused will be the same next time,
// unless it is Unverified.
type Images interface {
	// Pull pulls an image for a user, which a catalog offers; catalog is empty for any other image.
	// Users do not wait for the registries of others.
	Pull(ctx context.Context, user, catalog, reference string) (*Pulled, error)
}

// Pulled is an image on disk, until it is closed.
type Pulled struct {
	// Reference has the digest.
	Reference string
	Kind      image.Kind
	FS        fs.FS
	// Signed says what the signature policy verified, and is nil without a policy.
	Signed *signer.Record
	Close  func()
}

// Metrics records durations and failures.
type Metrics interface {
	Resolved(took time.Duration, err error)
	Pulled(took time.Duration, err error)
}

// Clients are the clients of the host.
type Clients struct {
	Extensions  dynamic.Interface
	Definitions metadata.Interface
	// Leases is nil when this process cannot watch leases.
	Leases kubernetes.Interface
}

// Options of a Controller; all are required, but for Certificates. Metrics begins to measure
// the extensions that a function returns.
type Options struct {
	Clients
	maker.Store
	// Manifests reads in the name of this process.
	Manifests Manifests
	// Key verifies the stamps of authors.
	Key    author.Key
	Rights maker.Rights
	// RecentRights is asked whether somebody may create revisions, for each image that is pulled:
	// that something is allowed it may say some seconds after it was.
	RecentRights maker.Rights
	// OperatorControllerNamespaces are the namespaces in which a lease of OLM's operator-controller
	// counts.
	OperatorControllerNamespaces []string
	// Target names the cluster of extensions that name none, empty for the host.
	Target    string
	Inventory *inventory.Inventory
	Images    Images
	// Pool limits concurrent pulls and renderings.
	Pool *rendering.Pool
	// Definitions are compared by Safety.
	Definitions maker.Definitions
	Safety      *crdsafety.Checker
	// Capabilities are read each time that a chart is rendered.
	Capabilities maker.Capabilities
	// Versions are those of the clusters; nil when they do not matter.
	Versions Versions
	// Digester makes digests of manifests that are comparable with those of revisions.
	Digester manifest.Digester
	// Certificates names the provider of webhook certificates; empty refuses bundles with webhooks.
	Certificates bundle.CertificateProvider
	// Releases are those of Helm, and Objects are in the cluster where they are applied. Both
	// are nil where extensions are not rolled out into the host.
	Releases Releases
	Objects  Objects
	// Stored returns the existing releases. Without it, each extension costs a request.
	Stored Stored
	// ByHelm has Helm apply extensions (the feature gate BoxcutterRuntime is off), and
	// KeepReleases keeps the Secrets of releases whose objects were taken back.
	ByHelm, KeepReleases bool
	// Windows decides whether an upgrade may begin that no user has just requested.
	Windows Windows
	// Inventories and Conditions say whether the operator that is installed can be upgraded.
	Inventories Inventories
	Conditions  Conditions
	// Values has what extensions take values from.
	Values ValueObjects
	// Freezes reports whether the cluster is frozen. It is checked before Helm writes, and before an
	// upgrade begins that no user has just requested.
	Freezes Freezes
	// Looked is called with each extension as it is before a pass, and without a uid when it is
	// gone; nil for nobody.
	Looked func(*extension.Extension)
	// Events records events for users.
	Events  record.EventRecorder
	Metrics func(all func() []*unstructured.Unstructured) (Metrics, error)
	Clock   clock.WithTicker
}

// Controller is safe for concurrent use.
type Controller struct {
	Options
	queue    maker.Queue
	rendered renderings
	// jobs pull and render.
	jobs     *rendering.Jobs[made]
	measured Metrics

	mu sync.Mutex
	// extensions is nil while the host has no ClusterExtensions, or that is not known.
	extensions cache.SharedIndexInformer
	leases     *objectwatch.Watch[*coordinationv1.Lease]
	// waiting are the extensions whose last pass waits for catalogs, whatever package changes.
	waiting map[string]bool
	// windowed are the extensions whose last pass waits for a maintenance window.
	windowed map[string]bool
	// requiring has the packages that bundles of extensions waited for when a pass looked last.
	requiring map[string][]string
	// followed are the objects that extensions take values from.
	followed map[valueObject]*followed
	// edited has the time of the first edit of such objects that an extension has not used yet.
	edited map[string]time.Time
	// following is for the watches of these objects.
	following sync.WaitGroup
	// orphaning are the names of extensions that are being deleted and leave their revisions.
	orphaning map[types.UID]string
	// leftAlone are the uids of the extensions of which people were told that
	// operator-controller has them, by name.
	leftAlone map[string]types.UID
}

// New returns a controller that sends no request before Run.
func New(o Options) *Controller {
	if o.Looked == nil {
		o.Looked = func(*extension.Extension) {}
	}
	return &Controller{
		Options: o, rendered: newRenderings(), jobs: rendering.NewJobs[made](), waiting: map[string]bool{}, windowed: map[string]bool{}, requiring: map[string][]string{}, followed: map[valueObject]*followed{}, edited: map[string]time.Time{}, leftAlone: map[string]types.UID{}, orphaning: map[types.UID]string{},
		queue: maker.NewQueue(o.Clock),
	}
}

// Run follows extensions until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("extensions"))
	var running sync.WaitGroup
	defer c.following.Wait()
	defer c.jobs.Wait()
	defer running.Wait()
	defer c.queue.ShutDown() // the workers wait for it
	var err error
	if c.measured, err = c.Metrics(c.all); err != nil {
		return err
	}
	if c.Releases != nil {
		klog.FromContext(ctx).Info("ClusterExtensions are applied by this replica while it leads, as its feature gate says. Replicas with another gate move all of them when they lead",
			"BoxcutterRuntime", !c.ByHelm)
	}
	if c.Leases != nil {
		running.Go(func() { c.watchLeases(ctx) })
	}
	if c.Stored != nil && !c.ByHelm {
		running.Go(func() { c.Stored.Run(ctx, c.addStored) })
	}
	if err := c.watchRevisions(); err != nil {
		return err
	}
	running.Go(func() { c.watchDefinition(ctx) })
	running.Go(func() { c.watchCatalogs(ctx) })
	running.Go(func() { c.watchVersions(ctx) })
	c.Windows.OnChange(c.windowsChanged)
	for range workers {
		running.Go(func() {
			maker.Work(ctx, c.queue, c.reconcile, "A ClusterExtension could not be brought up to date; trying again")
		})
	}
	<-ctx.Done()
	return nil
}
