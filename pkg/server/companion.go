package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/server/registration"
)

// Companion runs beside the API on every replica, whether or not it leads.
type Companion interface {
	// Listen opens the port of the companion; it returns nil if the companion needs no port. It is
	// called before this process writes to the host.
	Listen() (net.Listener, error)
	// Prepare returns a function that serves on the listener until its context ends.
	Prepare(ctx context.Context, with Surroundings, listener net.Listener) (run func(context.Context), err error)
}

// Surroundings are the parts of the server that a Companion uses.
type Surroundings struct {
	// Host returns a configuration for clients of the host cluster in the name of this process. The
	// user agent contains the component.
	Host func(component string) *rest.Config
	// Namespace is the namespace of this process's objects in the host.
	Namespace string
	// ReachedAt is the name of this process for clients in the cluster. The certificate is for this
	// name.
	ReachedAt string
	// Certificate returns the serving certificate of the API as PEM. The certificate changes over
	// time.
	Certificate func() (certificate, key []byte)
	// TLS has the versions, cipher suites and curves of the API, and no certificate.
	TLS *tls.Config
	// Metrics registers metrics of this replica.
	Metrics prometheus.Registerer
}

func (s *Server) prepareCompanions(ctx context.Context) error {
	o, serving := s.options, s.generic.SecureServingInfo
	with := Surroundings{
		Host: s.host.ConfigFor, Namespace: o.Namespace, ReachedAt: o.RegisterHost,
		Certificate: serving.Cert.CurrentCertKeyContent, Metrics: s.process,
		TLS: &tls.Config{MinVersion: serving.MinTLSVersion, CipherSuites: serving.CipherSuites, CurvePreferences: serving.CurvePreferences},
	}
	if o.RegisterServicePort != 0 {
		with.ReachedAt = registration.ServiceName + "." + o.Namespace + ".svc"
	}
	for i, companion := range o.Companions {
		run, err := companion.Prepare(ctx, with, s.listeners[i])
		if err != nil {
			return fmt.Errorf("preparing what runs beside the API: %w", err)
		}
		s.companions = append(s.companions, run)
	}
	return nil
}

func (s *Server) listen() error {
	if err := listen(s.options); err != nil {
		return err
	}
	for _, companion := range s.options.Companions {
		listener, err := companion.Listen()
		if err != nil {
			return err
		}
		s.listeners = append(s.listeners, listener)
	}
	return nil
}

// closeListeners closes the ports of a run that does not begin, so that the next run can open them.
// Serving closes them, too.
func (s *Server) closeListeners() {
	for _, listener := range append(s.listeners, s.options.Recommended.SecureServing.Listener) {
		if listener == nil {
			continue
		}
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			klog.Background().Error(err, "A port could not be closed", "address", listener.Addr().String())
		}
	}
}
