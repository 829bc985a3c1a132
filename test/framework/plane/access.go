package plane

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Access is one user's way into a plane, as a client configuration, as a
// kubeconfig file and as kubectl.
type Access struct {
	kubectl    *kubectls
	kubeconfig string
	config     *rest.Config
}

// newAccess signs a client certificate for the user and writes it into a
// kubeconfig file, replacing what is there.
func (p *Plane) newAccess(file, user string, groups ...string) (*Access, error) {
	signed, err := p.pki.ca.client(user, groups...)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of kubeconfigs: %w", err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["penstock-local"] = &clientcmdapi.Cluster{Server: p.url(), CertificateAuthorityData: p.pki.ca.certPEM}
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: signed.certPEM, ClientKeyData: signed.keyPEM}
	config.Contexts["penstock-local"] = &clientcmdapi.Context{Cluster: "penstock-local", AuthInfo: user}
	config.CurrentContext = "penstock-local"
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return nil, fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return p.openAccess(file)
}

// openAccess reads a kubeconfig file that newAccess wrote, now or in an earlier
// process.
func (p *Plane) openAccess(file string) (*Access, error) {
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", file, err)
	}
	// Client-side throttling would hide what a client really costs.
	config.QPS = -1
	return &Access{kubectl: p.kubectl, kubeconfig: file, config: config}, nil
}

// Config is a client configuration of this user without client-side
// throttling. It is a copy: change it freely.
func (a *Access) Config() *rest.Config { return rest.CopyConfig(a.config) }

// Kubeconfig is the path of the user's kubeconfig file.
func (a *Access) Kubeconfig() string { return a.kubeconfig }
