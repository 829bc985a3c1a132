package plane

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/framework/port"
)

// poll is the interval of readiness checks of a starting program. These programs do not announce
// when they are ready, so polling is the only way. On a machine under load a start takes half a
// minute, and each check delays it further.
const poll = 75 * time.Millisecond

// auditPolicy records the metadata of each request once when it is answered, and of each watch when
// it begins. It records no bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// startEtcd runs etcd on sockets in the folder, and waits until it listens. The sockets have
// relative names, because a socket's path must not exceed 107 bytes. etcd requires TCP addresses to
// advertise. They are never used: there is one member, and no client asks for members.
func (p *Plane) startEtcd(ctx context.Context, detached bool) error {
	etcd, err := p.spawn("etcd", detached,
		"--name=local",
		"--data-dir="+filepath.Join(p.dir, "etcd"),
		"--listen-client-urls=unix://etcd.sock",
		"--listen-peer-urls=unix://peer.sock",
		"--advertise-client-urls=http://127.0.0.1:2379",
		"--initial-advertise-peer-urls=http://127.0.0.1:2380",
		"--initial-cluster=local=http://127.0.0.1:2380",
		// Tests can lose the last writes, and fsync is slow.
		"--unsafe-no-fsync",
		"--log-level=warn",
		// A single member need not wait long for votes. A shorter heartbeat would only wake it up
		// more often.
		"--heartbeat-interval=50",
		"--election-timeout=250",
	)
	if err != nil {
		return err
	}
	return p.until(ctx, "etcd to listen", func(context.Context) error {
		_, err := os.Stat(filepath.Join(p.dir, "etcd.sock"))
		return err
	}, etcd)
}

// startAPIServer runs kube-apiserver on a free port and waits until it is ready.
func (p *Plane) startAPIServer(ctx context.Context, opts Options) error {
	policy := filepath.Join(p.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	if p.port = opts.Port; p.port == 0 {
		free, err := port.Free()
		if err != nil {
			return err
		}
		p.port = free
	}
	admin, err := p.newAccess(p.adminFile(), "admin", "system:masters")
	if err != nil {
		return err
	}
	if err := p.open(admin); err != nil {
		return err
	}
	apiserver, err := p.spawn("kube-apiserver", opts.Detached, p.apiServerArgs(opts)...)
	if err != nil {
		return err
	}
	return p.until(ctx, "kube-apiserver to become ready", p.ready, apiserver)
}

func (p *Plane) apiServerArgs(opts Options) []string {
	args := []string{
		"--etcd-servers=unix://etcd.sock",
		fmt.Sprintf("--secure-port=%d", p.port),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
		"--authorization-mode=Node,RBAC",
		"--tls-cert-file=" + p.pki.file("apiserver.crt"),
		"--tls-private-key-file=" + p.pki.file("apiserver.key"),
		"--client-ca-file=" + p.pki.file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.pki.file("sa.key"),
		"--service-account-signing-key-file=" + p.pki.file("sa.key"),
		"--requestheader-client-ca-file=" + p.pki.file("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.pki.file("front-proxy.crt"),
		"--proxy-client-key-file=" + p.pki.file("front-proxy.key"),
		"--audit-policy-file=" + filepath.Join(p.dir, "audit-policy.yaml"),
		"--audit-log-path=" + p.auditLog(),
		// In MB. Rotation would hide requests from the code that counts them.
		"--audit-log-maxsize=4096",
	}
	if opts.Node != "" {
		args = append(args, p.nodeAPIServerArgs()...)
	} else {
		args = append(args,
			"--bind-address=127.0.0.1",
			"--advertise-address=127.0.0.1",
			// The reconciler refuses loopback addresses. No program here connects to the Service
			// kubernetes.
			"--endpoint-reconciler-type=none",
		)
	}
	if !opts.Workloads {
		// Without controllers no ServiceAccounts are created, and this plugin would refuse every
		// Pod.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	return append(args, opts.APIServerArgs...)
}

// ready returns nil if kube-apiserver is ready.
func (p *Plane) ready(ctx context.Context) error {
	client, err := rest.HTTPClientFor(p.Config())
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url()+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answers %s", response.Status)
	}
	return nil
}

// until polls until the condition holds, one of the programs ends, or the context ends.
func (p *Plane) until(ctx context.Context, what string, condition func(context.Context) error, programs ...*Process) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		for _, program := range programs {
			select {
			case <-program.exited:
				return false, program.died()
			default:
			}
		}
		last = condition(ctx)
		return last == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("waiting for %s: %w (last seen: %w; logs are in %s)", what, ctx.Err(), last, p.dir)
	default:
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
}
