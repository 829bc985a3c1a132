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

// configure creates the configuration of the generic API server, including the chain of handlers.
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
		// A degraded server reads no records. Without this line, health and readiness would wait
		// for an etcd that might not answer.
		o.Recommended.Etcd = nil
	}
	if err := o.Recommended.ApplyTo(s.config); err != nil {
		return fmt.Errorf("applying the recommended options: %w", err)
	}
	// The library's metric of the store's size asks etcd in each scrape. A scrape would wait up to
	// 20 s for an etcd that does not answer. etcd's own metrics have the size.
	storagemetrics.SetStorageMonitorGetter(func() ([]storagemetrics.Monitor, error) { return nil, nil })
	if reason != "" {
		s.config.RESTOptionsGetter = storeguard.NewClosedStorage(etcd, reason)
	} else {
		s.config.RESTOptionsGetter = s.health.Limited(guardedstorage.Resources(s.config.RESTOptionsGetter))
	}
	// Penstock serves metrics of several registries under the same path.
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
		// Webhooks have their own time limit for a whole body.
		return withWebhooks(requestbody.WithPatience(handler, requestbody.DefaultPatience), strangers)
	}, nil
}

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

// addHost gives all clients of the host the same kubeconfig, each with its own user agent.
func (s *Server) addHost() error {
	o, h := s.options, s.host
	s.config.ClientConfig = h.ConfigFor("admission")
	client, err := kubernetes.NewForConfig(s.config.ClientConfig)
	if err != nil {
		return fmt.Errorf("making a client for the host cluster: %w", err)
	}
	// No handler here needs a resync.
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

// withoutStore removes the library's checks of etcd. If liveness failed, a restarted process would
// find the same etcd, and discovery would be unavailable meanwhile. For the same reason, this
// process stays ready while the embedded etcd does not run. For an external etcd, another readiness
// check reports a replica that is cut off.
func withoutStore(checks []healthz.HealthChecker) []healthz.HealthChecker {
	return slices.DeleteFunc(slices.Clone(checks), func(check healthz.HealthChecker) bool {
		return check.Name() == "etcd" || check.Name() == "etcd-readiness"
	})
}
