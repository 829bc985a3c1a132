// Package initializers gives admission plugins their dependencies in the host and in this process.
package initializers

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/admission"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/openapi"
)

const servePoll = 50 * time.Millisecond

// ownSchemas gives the MutatingAdmissionPolicy plugin the schemas of Penstock's kinds from this
// process. The plugin admits no other kinds here. Without ownSchemas, it would ask the host for the
// list of all schemas every five seconds, for ever. It would not know Penstock's kinds before the
// host has aggregated them.
type ownSchemas struct {
	client  openapi.Client
	stopped <-chan struct{}

	mu    sync.Mutex
	paths map[string]openapi.GroupVersion
}

var _ openapi.Client = &ownSchemas{}

// Paths implements openapi.Client. The first call waits until this process serves. The paths never
// change after that.
func (s *ownSchemas) Paths() (map[string]openapi.GroupVersion, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.paths) == 0 {
		paths, err := s.client.Paths()
		if err == nil && len(paths) > 0 {
			s.paths = paths
			break
		}
		select {
		case <-s.stopped:
			return nil, fmt.Errorf("reading our own schemas: the server stops (last error: %w)", err)
		case <-time.After(servePoll):
		}
	}
	return s.paths, nil
}

// Schemas returns initializers that complete the library's own initializers: they give admission
// plugins the schemas and manifests that the plugins need.
func Schemas(c *genericapiserver.RecommendedConfig) ([]admission.PluginInitializer, error) {
	host, err := kubernetes.NewForConfig(c.ClientConfig)
	if err != nil {
		return nil, fmt.Errorf("making a client for admission: %w", err)
	}
	hostDiscovery, err := discovery.NewDiscoveryClientForConfig(c.ClientConfig)
	if err != nil {
		return nil, fmt.Errorf("making a client for admission: %w", err)
	}
	ours, err := discovery.NewDiscoveryClientForConfig(c.LoopbackClientConfig)
	if err != nil {
		return nil, fmt.Errorf("making a loopback client for admission: %w", err)
	}
	schemas := &ownSchemas{client: ours.OpenAPIV3(), stopped: c.DrainedNotify()}
	client := clientWithSchemas{Interface: host, discovery: discoveryWithSchemas{DiscoveryClient: hostDiscovery, schemas: schemas}}
	return []admission.PluginInitializer{schemaInitializer{client}, manifestInitializer{}}, nil
}

// schemaInitializer replaces the client that k8s.io/apiserver has given to mutating policies. The
// new client also returns the schemas of this process.
type schemaInitializer struct {
	client kubernetes.Interface
}

// Initialize implements admission.PluginInitializer.
func (i schemaInitializer) Initialize(plugin admission.Interface) {
	if policies, ok := plugin.(*mutatingpolicy.Plugin); ok {
		policies.SetExternalKubeClientSet(i.client)
	}
}

type clientWithSchemas struct {
	kubernetes.Interface
	discovery discovery.DiscoveryInterfaces
}

// Discovery implements kubernetes.Interface.
func (c clientWithSchemas) Discovery() discovery.DiscoveryInterfaces { return c.discovery }

type discoveryWithSchemas struct {
	*discovery.DiscoveryClient
	schemas openapi.Client
}

// OpenAPIV3 implements discovery.OpenAPIV3SchemaInterface.
func (d discoveryWithSchemas) OpenAPIV3() openapi.Client { return d.schemas }
