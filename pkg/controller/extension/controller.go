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

// FieldManager owns Penstock's fields of revisions and of the status of ClusterExtensions.
const FieldManager = "penstock-extensions"

// workers is the number of extensions that are reconciled in parallel. The image store bounds the
// pulls.
const workers = 8

// Manifests reads the manifests of a revision, in the order of rollout.
type Manifests func(ctx context.Context, revision string) ([][]byte, error)

// Images pulls the images of extensions. An error of type *image.Refused is permanent, unless it is
// Unverified.
type Images interface {
	// Pull pulls an image for a user. catalog is the catalog that offers the image, or empty. Slow
	// registries of other users do not delay a pull.
	Pull(ctx context.Context, user, catalog, reference string) (*Pulled, error)
}

// Pulled is an image on disk, until it is closed.
type Pulled struct {
	// Reference includes the digest.
	Reference string
	Kind      image.Kind
	FS        fs.FS
	// Signed is the verification by the signature policy; nil without a policy.
	Signed *signer.Record
	Close  func()
}

// Metrics records durations and failures.
type Metrics interface {
	Resolved(took time.Duration, err error)
	Pulled(took time.Duration, err error)
}

// Clients holds the clients of the host.
type Clients struct {
	Extensions  dynamic.Interface
	Definitions metadata.Interface
	// Leases is nil if this process cannot watch leases.
	Leases kubernetes.Interface
}

// Options of a Controller; all are required, except Certificates. Metrics measures the extensions
// that a function returns.
type Options struct {
	Clients
	maker.Store
	// Manifests reads manifests as this process.
	Manifests Manifests
	// Key verifies the author stamps.
	Key    author.Key
	Rights maker.Rights
	// RecentRights checks whether a user may create revisions, before each pull of an image. An
	// "allowed" answer may be some seconds old.
	RecentRights maker.Rights
	// OperatorControllerNamespaces lists the namespaces in which a lease of OLM's
	// operator-controller counts.
	OperatorControllerNamespaces []string
	// Target is the default target cluster; empty means the host.
	Target    string
	Inventory *inventory.Inventory
	Images    Images
	// Pool limits concurrent pulls and renderings.
	Pool *rendering.Pool
	// Definitions reads CustomResourceDefinitions, which Safety compares.
	Definitions maker.Definitions
	Safety      *crdsafety.Checker
	// Capabilities reads the capabilities of a cluster for each rendering of a chart.
	Capabilities maker.Capabilities
	// Versions returns the versions of clusters; nil if they are irrelevant.
	Versions Versions
	// Digester computes digests that are comparable with those in revisions.
	Digester manifest.Digester
	// Certificates is the provider of webhook certificates; empty refuses bundles with webhooks.
	Certificates bundle.CertificateProvider
	// Releases stores and applies Helm releases. Objects accesses the objects that Helm applied.
	// Both are nil if the default target is not the host.
	Releases Releases
	Objects  Objects
	// Stored lists the existing releases. Without it, each extension costs a request.
	Stored Stored
	// ByHelm makes Helm apply extensions (the feature gate BoxcutterRuntime is off). KeepReleases
	// keeps the Secrets of releases whose objects were taken back.
	ByHelm, KeepReleases bool
	// Windows decides whether an upgrade that no user has just requested may begin.
	Windows Windows
	// Inventories and Conditions show whether the installed operator is upgradeable.
	Inventories Inventories
	Conditions  Conditions
	// Values reads the Secrets and ConfigMaps from which extensions take values.
	Values ValueObjects
	// Freezes reports whether the cluster is frozen. It is checked before Helm writes, and before
	// the beginning of an upgrade that no user has just requested.
	Freezes Freezes
	// Looked is called with each extension before its pass, without a uid if it was deleted; nil to
	// disable.
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
	jobs     *rendering.Jobs[made]
	measured Metrics

	mu sync.Mutex
	// extensions is nil while the host does not serve ClusterExtensions, or this is unknown.
	extensions cache.SharedIndexInformer
	leases     *objectwatch.Watch[*coordinationv1.Lease]
	// waiting holds the extensions whose last pass waits for catalogs, for any change of a package.
	waiting map[string]bool
	// windowed holds the extensions whose last pass waits for a maintenance window.
	windowed map[string]bool
	// requiring holds, by extension, the packages that the bundle still required in the last pass.
	requiring map[string][]string
	// followed holds the objects from which extensions take values.
	followed map[valueObject]*followed
	// edited holds, by extension, the time of the first edit of such objects that no pass has used.
	edited    map[string]time.Time
	following sync.WaitGroup
	// orphaning holds the names of deleted extensions that orphan their revisions.
	orphaning map[types.UID]string
	// leftAlone holds, by name, the uids of extensions that operator-controller manages, after an
	// event has reported that.
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

// Run reconciles extensions until ctx ends.
func (c *Controller) Run(ctx context.Context) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithName("extensions"))
	var running sync.WaitGroup
	defer c.following.Wait()
	defer c.jobs.Wait()
	defer running.Wait()
	defer c.queue.ShutDown() // ends the workers
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
			maker.Work(ctx, c.queue, c.reconcile, "A ClusterExtension could not be reconciled; trying again")
		})
	}
	<-ctx.Done()
	return nil
}
