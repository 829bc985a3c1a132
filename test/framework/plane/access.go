package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Access is one user's way into a plane, as a client configuration, as a
// kubeconfig file and as kubectl.
type Access struct {
	dir        string
	tools      string
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
	return &Access{dir: p.dir, tools: p.tools, kubeconfig: file, config: config}, nil
}

// Config is a client configuration of this user without client-side
// throttling. It is a copy: change it freely.
func (a *Access) Config() *rest.Config { return rest.CopyConfig(a.config) }

// Kubeconfig is the path of the user's kubeconfig file.
func (a *Access) Kubeconfig() string { return a.kubeconfig }

// Output is what a run of kubectl printed and how it ended.
type Output struct {
	Stdout, Stderr string
	ExitCode       int
}

// Kubectl runs the kubectl of the plane's own release as this user. stdin may
// be nil. A non-zero exit is in Output, not an error; an error means that
// kubectl did not run to its end.
func (a *Access) Kubectl(ctx context.Context, stdin io.Reader, args ...string) (Output, error) {
	return a.KubectlEnv(ctx, nil, stdin, args...)
}

// KubectlEnv is Kubectl with more variables in its environment, as "NAME=value".
func (a *Access) KubectlEnv(ctx context.Context, env []string, stdin io.Reader, args ...string) (Output, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(a.tools, "kubectl"), args...)
	// A discovery cache of its own: the default one in $HOME is shared by all
	// clusters that ever had this port.
	cmd.Env = append(os.Environ(), "KUBECONFIG="+a.kubeconfig, "KUBECACHEDIR="+filepath.Join(a.dir, "kubectl-cache"))
	cmd.Env = append(cmd.Env, env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	err := cmd.Run()
	out := Output{Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: cmd.ProcessState.ExitCode()}
	if exit := new(exec.ExitError); errors.As(err, &exit) && ctx.Err() == nil {
		err = nil
	}
	if err != nil {
		return out, fmt.Errorf("running kubectl %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}
