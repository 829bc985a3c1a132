package server

import (
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/features"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	storagemetrics "k8s.io/apiserver/pkg/storage/etcd3/metrics"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/registry/guardedstorage"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan"
	"github.com/penstock-project/penstock/pkg/requestbody"
	"github.com/penstock-project/penstock/pkg/server/filters"
	"github.com/penstock-project/penstock/pkg/server/initializers"
	"github.com/penstock-project/penstock/pkg/server/storeguard"
	"github.com/penstock-project/penstock/pkg/server/storehealth"
)

// configure makes the configuration of the generic API server, and of what a request goes
// through before it reaches an endpoint.
func (s *Server) configure() error {
	o := s.options
	s.config = genericapiserver.NewRecommendedConfig(s.codecs)
	addOpenAPI(s.config, s.scheme, o.Version)
	err := o.Run.ApplyTo(&s.config.Config)
	if err != nil {
		return fmt.Errorf("applying the generic options: %w", err)
	}
	if err := s.addHost(); err != nil {
		return err
	}
	s.api = &api{Server: s}
	if err := s.addAdmission(); err != nil {
		return err
	}
	reason := s.decision.Degraded
	etcd := o.Recommended.Etcd
	if reason != "" {
		// No record is served, so none is read, and nothing connects to an etcd
		// that might not even answer: health and readiness would wait for it.
		o.Recommended.Etcd = nil
	}
	if err := o.Recommended.ApplyTo(s.config); err != nil {
		return fmt.Errorf("applying the recommended options: %w", err)
	}
	// The library's metric of the store's size asks etcd in each scrape, which would wait for an etcd
	// that is away: 20 s for a connection of its own. etcd's own metrics have the size.
	storagemetrics.SetStorageMonitorGetter(func() ([]storagemetrics.Monitor, error) { return nil, nil })
	if reason != "" {
		s.config.RESTOptionsGetter = storeguard.NewClosedStorage(etcd, reason)
	} else {
		s.config.RESTOptionsGetter = s.health.Limited(guardedstorage.Resources(s.config.RESTOptionsGetter))
	}
	// We serve metrics of more than one registry, under the same path.
	s.config.EnableMetrics = false
	if s.config.BuildHandlerChainFunc, err = s.handlerChain(); err != nil {
		return err
	}
	s.config.LivezChecks = withoutStore(s.config.LivezChecks)
	if s.database.Embedded != nil {
		s.config.ReadyzChecks = withoutStore(s.config.ReadyzChecks)
	}
	s.config.AddReadyzChecks(storeguard.Check(reason, s.database.Down), s.health.Check(), storehealth.RecordsCheck(s.unreadable))
	return nil
}

// handlerChain returns the handlers of a request, the last line first.
func (s *Server) handlerChain() (func(http.Handler, *genericapiserver.Config) http.Handler, error) {
	compress, err := filters.Compression(utilfeature.DefaultFeatureGate.Enabled(features.APIResponseCompression))
	if err != nil {
		return nil, err
	}
	counted := webhook.NewMetrics(s.metrics)
	strangers := webhook.NewHandlers(slices.DeleteFunc(slices.Clone(s.webhooks), authenticated), counted)
	fromHost := webhook.NewHandlers(slices.DeleteFunc(slices.Clone(s.webhooks), anonymous), counted)
	return func(handler http.Handler, generic *genericapiserver.Config) http.Handler {
		handler = compress(handler)
		handler = configurationplan.NoteReviewed(handler)
		handler = s.api.withBodies(handler)
		handler = storeguard.WithDown(handler, s.database.Down, servedGroups(), s.codecs)
		handler = storehealth.WithReachable(handler, s.health.CutOff, servedGroups(), s.codecs)
		handler = storehealth.WithRoom(handler, s.health, servedGroups(), s.codecs)
		handler = storeguard.WithDegraded(handler, s.decision.Degraded, servedGroups(), s.codecs)
		handler = filters.WithVersion(handler, servedGroups(), s.options.Version)
		handler = withWebhooks(handler, fromHost)
		handler = genericapiserver.DefaultBuildHandlerChain(handler, generic)
		handler = request.MarkInternal(handler, generic.LoopbackClientConfig.BearerToken)
		// Webhooks have a time of their own for a body as a whole.
		return withWebhooks(requestbody.WithPatience(handler, requestbody.DefaultPatience), strangers)
	}, nil
}

// addAdmission gives our admission plugins what they need.
func (s *Server) addAdmission() error {
	ours, err := initializers.Checks{Host: s.host, Chains: s.api, Target: s.target.Name(), Metrics: s.metrics}.Initializer()
	if err != nil {
		return err
	}
	recommended := s.options.Recommended
	others := recommended.ExtraAdmissionInitializers
	recommended.ExtraAdmissionInitializers = func(generic *genericapiserver.RecommendedConfig) ([]admission.PluginInitializer, error) {
		initializers, err := others(generic)
		return append(initializers, ours), err
	}
	return nil
}

// addHost points everything that asks the host at the same kubeconfig, each
// with a name of its own.
func (s *Server) addHost() error {
	o, h := s.options, s.host
	s.config.ClientConfig = h.ConfigFor("admission")
	client, err := kubernetes.NewForConfig(s.config.ClientConfig)
	if err != nil {
		return fmt.Errorf("making a client for the host cluster: %w", err)
	}
	// Nothing here depends on being told the same again.
	s.config.SharedInformerFactory = informers.NewSharedInformerFactory(client, 0)

	authentication, authorization := o.Recommended.Authentication, o.Recommended.Authorization
	if authentication.RemoteKubeConfigFile == "" {
		authentication.RemoteKubeConfigFile = o.Kubeconfig
	}
	if authorization.RemoteKubeConfigFile == "" {
		authorization.RemoteKubeConfigFile = o.Kubeconfig
	}
	authentication.CustomRoundTripperFn = h.WithUserAgent("authentication")
	authorization.CustomRoundTripperFn = h.WithUserAgent("authorization")
	return nil
}

// withoutStore leaves out the checks of etcd that the library adds. A process that is
// restarted because of its liveness finds the same etcd, and takes discovery away. It
// is ready while the embedded one does not run, for the same reason; of one elsewhere
// readiness tells which replica is cut off.
func withoutStore(checks []healthz.HealthChecker) []healthz.HealthChecker {
	return slices.DeleteFunc(slices.Clone(checks), func(check healthz.HealthChecker) bool {
		return check.Name() == "etcd" || check.Name() == "etcd-readiness"
	})
}
