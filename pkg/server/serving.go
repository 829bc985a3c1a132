package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/server/registration"
)

// Serving describes a server that is ready.
type Serving struct {
	// Port is the port on which the server listens.
	Port int
	// Loopback is a client configuration for the server, with all rights.
	Loopback *rest.Config
	// CABundle verifies the server's certificate, as PEM. It is empty for a certificate from files
	// without a bundle.
	CABundle []byte
}

// listen opens the port itself, so that 0 means any free port. For the library, 0 means "do not
// serve".
func listen(o *Options) error {
	serving := o.Recommended.SecureServing
	if serving.Listener != nil {
		return nil
	}
	address := net.JoinHostPort(serving.BindAddress.String(), strconv.Itoa(serving.BindPort))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listening on --secure-port %d: %w", serving.BindPort, err)
	}
	serving.Listener = listener
	return nil
}

// newTrust returns the trust for the serving certificate, from files or from the shared authority.
func newTrust(ctx context.Context, o *Options, client kubernetes.Interface) (*registration.Trust, error) {
	if !o.ownCertificates() {
		return registration.NewFileTrust(o.RegisterCAFile)
	}
	names, ips := certificateNames(o)
	trust, err := registration.NewSharedTrust(ctx, client, o.Namespace, names, ips)
	if err != nil {
		return nil, err
	}
	o.Recommended.SecureServing.ServerCert.GeneratedCert = trust.Leaf()
	return trust, nil
}

// certificateNames returns the names and addresses of this process. kube-apiserver verifies the
// first name, for any address.
func certificateNames(o *Options) (names []string, ips []net.IP) {
	service := registration.ServiceName + "." + o.Namespace
	names = []string{service + ".svc", service + ".svc.cluster.local", service, registration.ServiceName, "localhost"}
	ips = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	others := []string{o.RegisterHost, o.Run.ExternalHost}
	if hostname, err := os.Hostname(); err == nil {
		others = append(others, hostname)
	}
	for _, name := range others {
		if ip := net.ParseIP(name); ip != nil {
			if !slices.ContainsFunc(ips, ip.Equal) {
				ips = append(ips, ip)
			}
		} else if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, ips
}
