package server

import (
	"context"
	"crypto/tls"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/server/registration"
)

// Companion is prepared with a server, and runs beside its API on every replica, whether or
// not it leads, until its context ends.
type Companion func(ctx context.Context, with Surroundings) (run func(context.Context), err error)

// Surroundings are what a Companion has of the server.
type Surroundings struct {
	// Host is for clients of the host cluster, in the name of this process. The component
	// is told in the user agent.
	Host func(component string) *rest.Config
	// Namespace of the host for everything that belongs to this process.
	Namespace string
	// DataDir is the directory of the embedded store, empty with an etcd elsewhere.
	DataDir string
	// ReachedAt is the name at which clients in the cluster reach this process. The
	// certificate is for it.
	ReachedAt string
	// Certificate is what the API is served with, PEM. It changes.
	Certificate func() (certificate, key []byte)
	// TLS has the versions, cipher suites and curves that the API is served with, and no
	// certificate.
	TLS *tls.Config
	// Metrics takes metrics of this replica.
	Metrics prometheus.Registerer
}

// prepareCompanions makes what runs beside the API.
func (s *Server) prepareCompanions(ctx context.Context) error {
	o, serving := s.options, s.generic.SecureServingInfo
	with := Surroundings{
		Host: s.host.ConfigFor, Namespace: o.Namespace, DataDir: o.DataDir, ReachedAt: o.RegisterHost,
		Certificate: serving.Cert.CurrentCertKeyContent, Metrics: s.process,
		TLS: &tls.Config{MinVersion: serving.MinTLSVersion, CipherSuites: serving.CipherSuites, CurvePreferences: serving.CurvePreferences},
	}
	if o.RegisterServicePort != 0 {
		with.ReachedAt = registration.ServiceName + "." + o.Namespace + ".svc"
	}
	for _, prepare := range o.Companions {
		run, err := prepare(ctx, with)
		if err != nil {
			return fmt.Errorf("preparing what runs beside the API: %w", err)
		}
		s.companions = append(s.companions, run)
	}
	return nil
}
