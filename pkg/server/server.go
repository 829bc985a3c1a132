package server

import (
	"context"
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-base/metrics"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/server/clusterreads"
	"github.com/penstock-project/penstock/pkg/server/crdconflict"
	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/server/host"
	"github.com/penstock-project/penstock/pkg/server/leadership"
	servermetrics "github.com/penstock-project/penstock/pkg/server/metrics"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
	"github.com/penstock-project/penstock/pkg/server/snapshots"
	"github.com/penstock-project/penstock/pkg/server/storeguard"
	"github.com/penstock-project/penstock/pkg/server/storehealth"
	"github.com/penstock-project/penstock/pkg/server/targetcluster"
	"github.com/penstock-project/penstock/pkg/store"
)

// Server holds the parts of one run of the process, in the order of their creation by newServer.
type Server struct {
	// The inputs: options, the cluster, and etcd.
	options  *Options
	host     *host.Host
	database *database.Database

	// Set by prepare.
	scheme        *runtime.Scheme
	codecs        serializer.CodecFactory
	metrics       metrics.KubeRegistry // of this server, not of a library
	redactor      *redact.Redactor
	webhooks      []webhook.Webhook    // for kinds of the host
	health        *storehealth.Health  // whether the store takes writes
	unreadable    *store.Unreadable    // the records that cannot be read
	snapshots     *snapshots.Snapshots // nil without a snapshot directory
	trust         *registration.Trust  // the certificate and its CA bundle
	decision      storeguard.Decision  // the verdict on the identity of the store
	records       database.Records
	shares        *clusterextensionrevision.Shares // shares of users and chains in the store
	targetClients *clusterreads.TargetClients      // for clusters that revisions name; nil when degraded
	target        *targetcluster.Cluster           // nil when revisions are rolled out into the host
	accounts      *serviceaccounts.Accounts
	crdConflict   *crdconflict.Watch // finds another resource with the name of ours

	// The servers, set by configure and assemble.
	config       *genericapiserver.RecommendedConfig
	api          *api
	generic      *genericapiserver.GenericAPIServer
	registration *registration.Registration // nil without --register
	keeper       *registration.Keeper
	liveness     *leadership.Liveness
	term         *leadership.Metrics
	process      *prometheus.Registry // metrics of this replica
	listeners    []net.Listener       // of companions; nil for a companion without a port
	companions   []func(context.Context)
}

// newServer is the composition root: it creates the parts in order.
//
// The order ensures that a failed start leaves nothing behind. The host remembers the store's
// identity for ever, so newServer checks the options, ports and rights before.
func newServer(ctx context.Context, o *Options, h *host.Host, db *database.Database) (*Server, error) {
	s := &Server{options: o, host: h, database: db, metrics: metrics.NewKubeRegistry(), liveness: &leadership.Liveness{}, term: &leadership.Metrics{}, process: prometheus.NewRegistry()}
	s.scheme, s.codecs = newScheme()
	started := false
	defer func() {
		if !started {
			s.closeListeners()
		}
	}()
	client, err := kubernetes.NewForConfig(h.ConfigFor("start"))
	if err != nil {
		return nil, fmt.Errorf("making a client for the host cluster: %w", err)
	}
	if err := s.prepare(ctx, client); err != nil {
		return nil, err
	}
	if err := s.configure(); err != nil {
		return nil, err
	}
	if err := host.PrimeClientCAs(ctx, s.config, client); err != nil {
		return nil, err
	}
	if err := s.assemble(); err != nil {
		return nil, err
	}
	// 13. The goroutines beside the API.
	if err := s.prepareCompanions(ctx); err != nil {
		return nil, err
	}
	started = true
	return s, nil
}

func (s *Server) prepare(ctx context.Context, client kubernetes.Interface) error {
	o, h, db := s.options, s.host, s.database
	var err error
	// 1. The options.
	if s.redactor, err = o.redactor(); err != nil {
		return err
	}
	access, err := s.newTemplateAccess()
	if err != nil {
		return err
	}
	extensions, err := s.listExtensions()
	if err != nil {
		return err
	}
	if s.webhooks, err = o.Webhooks(s.stampKey, access, extensions); err != nil {
		return err
	}
	// 2. The ports, all of them before anything is written to the host.
	if err := s.listen(); err != nil {
		return err
	}
	// 3. The state of etcd, and copies of it.
	s.health, s.unreadable = newStoreHealth(o, db), store.NewUnreadable(db.Client)
	if s.snapshots, err = newSnapshots(o, db, s.metrics); err != nil {
		return err
	}
	// 4. The features and rights of the host.
	if err := switchOff(ctx, o, client); err != nil {
		return err
	}
	// 5. The namespace, and the certificate in it.
	if o.Register {
		if err := registration.EnsureNamespace(ctx, client, o.Namespace); err != nil {
			return err
		}
	}
	if s.trust, err = newTrust(ctx, o, client); err != nil {
		return err
	}
	// 6. The store's identity: serve, or be degraded.
	if s.decision, err = establish(ctx, o, h, db); err != nil {
		return err
	}
	s.records = db.Records(s.decision.Identity, s.unreadable)
	s.records.Upkeep.Raised = s.decision.Raised
	s.shares = &clusterextensionrevision.Shares{Room: s.health.Room, Size: s.records.Packs.Size}
	// 7. The default target cluster of revisions.
	if err := s.findTarget(ctx); err != nil {
		return err
	}
	// 8. The identities of jobs.
	if s.accounts, err = newAccounts(o, h); err != nil {
		return err
	}
	// 9. Conflicts of our resource names in kubectl.
	s.crdConflict, err = newCRDConflict(h, s.metrics)
	return err
}

func (s *Server) assemble() error {
	// 10. The registration. It maintains its objects, and reports a changed certificate to the
	// server.
	if err := s.addRegistration(); err != nil {
		return err
	}
	// 11. The generic API server, with our groups.
	var err error
	if s.generic, err = s.config.Complete().New("penstock", genericapiserver.NewEmptyDelegate()); err != nil {
		return fmt.Errorf("making the generic API server: %w", err)
	}
	if err := s.api.install(s.generic, s.config.RESTOptionsGetter); err != nil {
		return err
	}
	// 12. Liveness and metrics, including those of the controllers, which begin with Run.
	if err := s.generic.AddLivezChecks(0, s.liveness.Checker()); err != nil {
		return fmt.Errorf("adding the check of the controllers: %w", err)
	}
	measured, err := s.measured()
	if err != nil {
		return err
	}
	s.generic.Handler.NonGoRestfulMux.Handle("/metrics", servermetrics.Handler(s.metrics, measured))
	return nil
}
