package server

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan"
	"github.com/penstock-project/penstock/pkg/registry/olm/sharing"
	"github.com/penstock-project/penstock/pkg/requestbody"
	"github.com/penstock-project/penstock/pkg/server/managedobject"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
	"github.com/penstock-project/penstock/pkg/server/storeguard"
	"github.com/penstock-project/penstock/pkg/server/storehealth"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/identity"
)

// Config is what follows from the options, the host and the store.
type Config struct {
	Generic *genericapiserver.RecommendedConfig
	Extra   ExtraConfig
}

// ExtraConfig is what the generic API server does not know of.
type ExtraConfig struct {
	scheme   *runtime.Scheme
	codecs   serializer.CodecFactory
	host     *host
	database *database
	health   *storehealth.Health
	// unreadable knows which records cannot be read.
	unreadable *store.Unreadable
	// decision is what the identity of the store means for this run.
	decision storeguard.Decision
	accounts *serviceaccounts.Accounts
	// target is nil when revisions are rolled out into the host.
	target *targetCluster
	// targetReads are for revisions that name a cluster themselves.
	targetReads *targetReads
	// webhooks for kinds of the host.
	webhooks []webhook.Webhook
	// registration is nil when nothing is to be registered.
	registration *registration.Registration
	namespace    string
	// identity of this replica, for the lease.
	identity    string
	lease       LeaseTimes
	trust       *registration.Trust
	keeper      *registration.Keeper
	controllers []Controller
	profiles    []profile.Profile
	// entries are shared by the caches of the server and of the controllers.
	entries  *sharing.Entries
	redactor *redact.Redactor
	ready    func(Serving)
	api      *api
	// snapshots is nil when none are wanted.
	snapshots *snapshots
	// metrics of this server that belong to no library.
	metrics metrics.KubeRegistry
}

// newConfig prepares everything that can go wrong, in an order in which a start
// that fails leaves nothing behind: the store's identity, which the host
// remembers for ever, comes when nothing else is missing.
//
//  1. The port.
//  2. What the host offers and allows.
//  3. The namespace and the certificate.
//  4. The store's identity: serve, or be degraded.
//  5. The generic API server's configuration.
func newConfig(ctx context.Context, o *Options, host *host, db *database) (*Config, error) {
	redactor, err := o.redactor()
	if err != nil {
		return nil, err
	}
	if err := listen(o); err != nil {
		return nil, err
	}
	scheme, codecs := newScheme()
	c := &Config{
		Generic: genericapiserver.NewRecommendedConfig(codecs),
		Extra: ExtraConfig{
			scheme: scheme, codecs: codecs, host: host, database: db, health: newStoreHealth(o, db), unreadable: store.NewUnreadable(db.client),
			namespace: o.Namespace, lease: o.leaseTimes(),
			controllers: o.Controllers, profiles: o.Profiles, entries: sharing.NewEntries(), redactor: redactor, ready: o.Ready,
			metrics: metrics.NewKubeRegistry(),
		},
	}
	if c.Extra.snapshots, err = newSnapshots(o, db, c.Extra.metrics); err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(host.configFor("start"))
	if err != nil {
		return nil, fmt.Errorf("making a client for the host cluster: %w", err)
	}
	if err := switchOff(ctx, o, client); err != nil {
		return nil, err
	}
	if o.Register {
		if err := registration.EnsureNamespace(ctx, client, o.Namespace); err != nil {
			return nil, err
		}
	}
	if c.Extra.trust, err = newTrust(ctx, o, client); err != nil {
		return nil, err
	}
	guard, err := newGuard(o, host, db)
	if err != nil {
		return nil, err
	}
	if c.Extra.decision, err = guard.Establish(ctx); err != nil {
		return nil, err
	}
	c.Extra.identity = replicaIdentity(o, c.Extra.decision.Identity)
	if err := c.aim(ctx, o, host, db); err != nil {
		return nil, err
	}
	if err := c.applyOptions(o); err != nil {
		return nil, err
	}
	if err := primeClientCAs(ctx, c.Generic, client); err != nil {
		return nil, err
	}
	if c.Extra.accounts, err = newAccounts(o, host); err != nil {
		return nil, err
	}
	return c, c.addRegistration(o)
}

// newAccounts makes the identities of jobs in the host.
func newAccounts(o *Options, host *host) (*serviceaccounts.Accounts, error) {
	client, err := kubernetes.NewForConfig(host.configFor("identities"))
	if err != nil {
		return nil, fmt.Errorf("making a client for the identities of jobs: %w", err)
	}
	return serviceaccounts.New(serviceaccounts.Options{
		Client: client, Config: host.config, UserAgent: host.userAgent, Namespace: o.Namespace, Create: o.Register,
	}), nil
}

// newGuard returns what compares the store of this process with what the host
// remembers.
func newGuard(o *Options, host *host, db *database) (*storeguard.Guard, error) {
	client, err := kubernetes.NewForConfig(host.configFor("identity"))
	if err != nil {
		return nil, fmt.Errorf("making a client for the store's witness: %w", err)
	}
	return storeguard.New(storeguard.Options{
		Store:      identity.NewStore(db.client, storagePrefix),
		ConfigMaps: client.CoreV1().ConfigMaps(o.Namespace),
		Namespace:  o.Namespace,
		Forget:     chain.NewInventories(db.client, storagePrefix).ForgetAll,
		Down:       db.down,
		Accept:     o.AcceptIdentity,
	}), nil
}

// aim finds out which cluster revisions are rolled out into.
func (c *Config) aim(ctx context.Context, o *Options, host *host, db *database) error {
	if c.Extra.decision.Degraded != "" {
		return nil // nothing is rolled out
	}
	var err error
	if c.Extra.targetReads, err = newTargetReads(host, o.Namespace, newVisitor(host, c.Extra.decision)); err != nil {
		return err
	}
	if c.Extra.target, err = newTargetCluster(o, host, db, c.Extra.decision); err != nil || c.Extra.target != nil {
		return err
	}
	if err := aimAtHost(ctx, o, db); err != nil {
		c.Extra.decision = storeguard.Decision{Degraded: storeguard.DegradedMessage(err.Error(), "start it again with one of these")}
	}
	return nil
}

// switchOff disables what this host does not offer, and says so.
func switchOff(ctx context.Context, o *Options, client kubernetes.Interface) error {
	disabled := o.Recommended.Admission.DisablePlugins
	if !o.Recommended.Features.EnablePriorityAndFairness {
		disabled = append(disabled, priorityAndFairness)
	}
	found, err := find(ctx, client, features())
	if err != nil {
		return err
	}
	without, err := decide(features(), disabled, found)
	if err != nil {
		return err
	}
	for _, off := range without {
		klog.FromContext(ctx).Info("Going without a feature", "feature", off.name, "reason", off.reason)
		if off.name == priorityAndFairness {
			o.Recommended.Features.EnablePriorityAndFairness = false
			continue
		}
		o.Recommended.Admission.DisablePlugins = append(o.Recommended.Admission.DisablePlugins, off.name)
	}
	return nil
}

func (c *Config) applyOptions(o *Options) error {
	c.addOpenAPI(o.Version)
	if err := o.Run.ApplyTo(&c.Generic.Config); err != nil {
		return fmt.Errorf("applying the generic options: %w", err)
	}
	if err := c.addHost(o); err != nil {
		return err
	}
	if err := c.addPrivilege(o); err != nil {
		return err
	}
	var err error
	if c.Extra.webhooks, err = o.webhooks(); err != nil {
		return err
	}
	reason := c.Extra.decision.Degraded
	etcd := o.Recommended.Etcd
	if reason != "" {
		// No record is served, so none is read, and nothing connects to an etcd
		// that may not even answer: health and readiness would wait for it.
		o.Recommended.Etcd = nil
	}
	if err := o.Recommended.ApplyTo(c.Generic); err != nil {
		return fmt.Errorf("applying the recommended options: %w", err)
	}
	if reason != "" {
		c.Generic.RESTOptionsGetter = storeguard.NewClosedStorage(etcd, reason)
	} else {
		c.Generic.RESTOptionsGetter = c.Extra.health.Limited(judgedStorage{c.Generic.RESTOptionsGetter})
	}
	// We serve metrics of more than one registry, under the same path.
	c.Generic.EnableMetrics = false
	c.Extra.api = newAPI(c)
	webhooks := webhook.NewHandlers(c.Extra.webhooks, webhook.NewMetrics(c.Extra.metrics))
	c.Generic.BuildHandlerChainFunc = func(handler http.Handler, generic *genericapiserver.Config) http.Handler {
		handler = configurationplan.NoteReviewed(handler)
		handler = c.Extra.api.withBodies(handler)
		handler = storeguard.WithDown(handler, c.Extra.database.down, servedGroups(), c.Extra.codecs)
		handler = storehealth.WithReachable(handler, c.Extra.health.CutOff, servedGroups(), c.Extra.codecs)
		handler = storehealth.WithRoom(handler, c.Extra.health, servedGroups(), c.Extra.codecs)
		handler = storeguard.WithDegraded(handler, reason, servedGroups(), c.Extra.codecs)
		handler = genericapiserver.DefaultBuildHandlerChain(handler, generic)
		handler = request.MarkInternal(handler, generic.LoopbackClientConfig.BearerToken)
		// Webhooks have a time of their own for a body as a whole.
		return withWebhooks(requestbody.WithPatience(handler, requestbody.DefaultPatience), webhooks)
	}
	c.Generic.LivezChecks = withoutStore(c.Generic.LivezChecks)
	if c.Extra.database.embedded != nil {
		c.Generic.ReadyzChecks = withoutStore(c.Generic.ReadyzChecks)
	}
	c.Generic.AddReadyzChecks(storeguard.Check(reason, c.Extra.database.down), c.Extra.health.Check(), recordsCheck(c.Extra.unreadable))
	return nil
}

// addHost points everything that asks the host at the same kubeconfig, each
// with a name of its own.
func (c *Config) addHost(o *Options) error {
	host := c.Extra.host
	c.Generic.ClientConfig = host.configFor("admission")
	client, err := kubernetes.NewForConfig(c.Generic.ClientConfig)
	if err != nil {
		return fmt.Errorf("making a client for the host cluster: %w", err)
	}
	// Nothing here depends on being told the same again.
	c.Generic.SharedInformerFactory = informers.NewSharedInformerFactory(client, 0)

	authentication, authorization := o.Recommended.Authentication, o.Recommended.Authorization
	if authentication.RemoteKubeConfigFile == "" {
		authentication.RemoteKubeConfigFile = o.Kubeconfig
	}
	if authorization.RemoteKubeConfigFile == "" {
		authorization.RemoteKubeConfigFile = o.Kubeconfig
	}
	authentication.CustomRoundTripperFn = host.withUserAgent("authentication")
	authorization.CustomRoundTripperFn = host.withUserAgent("authorization")
	return nil
}

// addRegistration prepares what makes and keeps the registration, and who tells
// all concerned when the certificate authority is another.
func (c *Config) addRegistration(o *Options) error {
	config := c.Extra.host.configFor("registration")
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for registration: %w", err)
	}
	metadatas, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for registration: %w", err)
	}
	var objects []managedobject.Object
	if o.Register {
		services, err := aggregator.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("making a client for registration: %w", err)
		}
		wanted := registration.Options{
			Core: core, Aggregator: services, Accounts: c.Extra.accounts, Jobs: c.Extra.hostJobs(), Namespace: o.Namespace,
			Host: o.RegisterHost, Port: o.Recommended.SecureServing.BindPort,
			Trust: c.Extra.trust, Versions: servedVersions(), Webhooks: c.Extra.webhooks,
		}
		if o.RegisterServicePort != 0 {
			wanted.ExternalService, wanted.Port = true, o.RegisterServicePort
		}
		c.Extra.registration = registration.New(wanted)
		objects = c.Extra.registration.Objects()
	}
	c.Extra.keeper = registration.NewKeeper(core, metadatas, o.Namespace, objects, c.Extra.trust)
	c.Extra.trust.AddListener(c.Extra.keeper)
	return nil
}

// CompletedConfig can only be made by Complete.
type CompletedConfig struct {
	*completedConfig
}

type completedConfig struct {
	generic genericapiserver.CompletedConfig
	extra   *ExtraConfig
}

// Complete fills in what can be derived.
func (c *Config) Complete() CompletedConfig {
	return CompletedConfig{&completedConfig{generic: c.Generic.Complete(), extra: &c.Extra}}
}
