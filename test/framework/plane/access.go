package plane

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Access is a user's access to a plane: a client configuration, a kubeconfig file and kubectl.
type Access struct {
	kubectl    *kubectls
	kubeconfig string
	config     *rest.Config
}

// newAccess signs a client certificate for the user and writes it into a kubeconfig file. It
// replaces an existing file.
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

// openAccess reads a kubeconfig file that newAccess wrote, also in an earlier process.
func (p *Plane) openAccess(file string) (*Access, error) {
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", file, err)
	}
	// Client-side throttling would hide the real number of a client's requests.
	config.QPS = -1
	return &Access{kubectl: p.kubectl, kubeconfig: file, config: config}, nil
}

// Config returns a client configuration of this user without client-side throttling. It is a copy
// that the caller can change.
func (a *Access) Config() *rest.Config { return rest.CopyConfig(a.config) }

// Kubeconfig returns the path of the user's kubeconfig file.
func (a *Access) Kubeconfig() string { return a.kubeconfig }
