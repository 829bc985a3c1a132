package server

import (
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/penstock-project/penstock/pkg/server/managedobject"
	"github.com/penstock-project/penstock/pkg/server/registration"
)

// addRegistration prepares the registration and its keeper. The keeper distributes the bundle when
// the certificate authority changes.
func (s *Server) addRegistration() error {
	o := s.options
	config := s.host.ConfigFor("registration")
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for registration: %w", err)
	}
	metadatas, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for registration: %w", err)
	}
	var kept []managedobject.Object
	if o.Register {
		services, err := aggregator.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("making a client for registration: %w", err)
		}
		objects, err := dynamic.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("making a client for registration: %w", err)
		}
		wanted := registration.Options{
			Core: core, Aggregator: services, Dynamic: objects, Accounts: s.accounts, Jobs: s.target.HostJobs(), Namespace: o.Namespace,
			Host: o.RegisterHost, Port: o.Recommended.SecureServing.BindPort,
			Trust: s.trust, Versions: registration.Versions(), Webhooks: s.webhooks,
		}
		if o.RegisterServicePort != 0 {
			wanted.ExternalService, wanted.Port = true, o.RegisterServicePort
		}
		s.registration = registration.New(wanted)
		kept = s.registration.Objects()
	}
	s.keeper = registration.NewKeeper(core, metadatas, o.Namespace, kept, s.trust)
	s.trust.AddListener(s.keeper)
	return nil
}
