package leadership

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/target"
)

// termGrace is the time that controllers have to finish their current work when the term ends.
const termGrace = 5 * time.Second

// Controller is a loop that runs on the leader.
type Controller struct {
	// Name is for logs and errors.
	Name string
	// Start adds the loop to the term's manager, which starts the loop. Each term calls it again
	// with a new manager.
	Start func(ctx context.Context, term Term) error
}

// Term holds the parts for controllers while this replica leads. After the term, only the store may
// be used.
type Term struct {
	// Manager has clients and caches for our own API. Its runnables run until the term
	// ends.
	Manager manager.Manager
	// Host is for clients of the host cluster in the name of this process. It has no rate limit.
	Host *rest.Config
	// Namespace is the namespace of this process's objects in the host.
	Namespace string
	// Target is for clients of the default target cluster, in the name of the engine.
	Target *rest.Config
	// TargetName is the name of the default target in the right to use it, empty for the host.
	TargetName string
	// Visitor identifies other target clusters and claims them.
	Visitor target.Visitor
	// Executor is the configuration for clients of the host that execute plans. It has only the
	// rights that profiles need.
	Executor *rest.Config
	// Templates is the configuration for clients of the host that read the fields of image
	// templates. It has only the rights that administrators granted.
	Templates *rest.Config
	// Profiles are the identities of profiles that users define.
	Profiles Profiles
	// Account returns a configuration for clients of the host in the name of a user's
	// ServiceAccount. Penstock needs the right to request its tokens.
	Account func(namespace, name string) *rest.Config
	// Skew returns by how much this machine's clock is ahead of the host's.
	Skew func() time.Duration
	// Redactor removes confidential values from messages, events and logs.
	Redactor *redact.Redactor
	// Liveness registers checks that fail when a loop hangs.
	Liveness *Liveness
	// Metrics registers metrics of the term. They are not served after the term.
	Metrics prometheus.Registerer
	// Records are the part of the store that is not behind our API.
	database.Records
}

// Profiles manages the identities that execute the plans of user-defined profiles.
type Profiles interface {
	// Grant gives the identity of a profile exactly the given rights.
	Grant(ctx context.Context, name string, rules []rbacv1.PolicyRule) error
	// Withdraw removes the identity of a profile. Granted lists the profiles with identities.
	Withdraw(ctx context.Context, name string) error
	Granted(ctx context.Context) ([]string, error)
	// Account returns the ServiceAccount of a profile as namespace/name. ConfigFor returns the
	// configuration for its clients.
	Account(name string) string
	ConfigFor(name string) *rest.Config
}

// runTerm runs one term with a new manager, because a manager cannot be started twice. It returns
// when ctx has ended and everything has stopped, or with the error that ended the term before.
func (l *Leadership) runTerm(ctx context.Context) error {
	defer l.Term.Liveness.reset()
	term := l.Term
	term.Metrics = l.Metrics.begin()
	defer l.Metrics.end()
	// Parts of controller-runtime use its global logger instead of the manager's. Only the first
	// call has an effect.
	ctrllog.SetLogger(klog.Background())
	mgr, err := manager.New(l.Loopback, manager.Options{
		Scheme:   l.Scheme,
		Cache:    ctrlcache.Options{NewInformer: l.newInformer},
		NewCache: newTermCache(ctx, l.Revisions),
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			own, err := client.New(config, options)
			return ownClient{own, l.Own}, err
		},
		Logger: klog.FromContext(ctx),
		// The API server serves metrics and health of the whole process.
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:  "0",
		GracefulShutdownTimeout: ptr.To(termGrace),
		// Otherwise the names of the last term's controllers would be rejected as duplicates.
		Controller: ctrlconfig.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return fmt.Errorf("making the controllers' manager: %w", err)
	}
	term.Manager = mgr
	for _, controller := range l.Controllers {
		if err := controller.Start(ctx, term); err != nil {
			return fmt.Errorf("starting controller %s: %w", controller.Name, err)
		}
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}

// newInformer reads revisions, of which there may be thousands, from this process. It reads other
// kinds from the given server.
func (l *Leadership) newInformer(from cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	if _, ok := example.(*v1alpha1.ClusterExtensionRevision); ok {
		from = l.Revisions
	}
	return cache.NewSharedIndexInformer(from, example, resync, indexers)
}
