// Package plane runs a real Kubernetes control plane on loopback as child processes of the caller:
// etcd and kube-apiserver, and on request the controllers, a scheduler and a node. It does not
// depend on tests: package cluster wraps it for tests, hack/cluster for users, and the demo uses it
// directly.
//
// A plane has one folder with its certificates, sockets, data and logs. Every process has the
// folder in its arguments. So the process table shows which processes belong to a plane, without
// pid files.
//
// Only kube-apiserver listens on a TCP port. etcd uses a socket in the folder, and the other
// programs serve nothing. So two planes can conflict only about one port.
package plane

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// StartTimeout bounds the start of a plane. An idle machine needs 2 to 6 seconds. The bound is for
// machines under full load.
const StartTimeout = 3 * time.Minute

// Options configure a plane.
type Options struct {
	// Dir is the folder of this plane. It is created, and must be missing or empty.
	Dir string

	// Tools is the folder of the programs, as Tools finds it.
	Tools string

	// Workloads adds the controller manager, the scheduler, kwok and one ready Node, so that
	// Deployments become Available.
	Workloads bool

	// Node is the folder of a real node's programs, as NodeTools returns it. With it and Workloads,
	// the node is real: its kubelet runs containers. The caller must then run in its own
	// namespaces: see RunIsolated.
	Node string

	// Port is the port of kube-apiserver. 0 chooses a free port.
	Port int

	// Detached lets the processes outlive the caller. Otherwise they end with the caller, even if
	// it is killed.
	Detached bool

	// APIServerArgs are appended to the arguments of kube-apiserver, for
	// instance "--emulated-version=1.34".
	APIServerArgs []string

	// Processors is the number of processors that each program and each kubectl uses at the same
	// time. 0 means all. With 1, several planes take an eighth less processor time, because a
	// program with several processors searches for work on each.
	Processors int

	// Progress, if set, is called with short messages about the start.
	Progress func(string)
}

func (o Options) say(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// Plane is a running control plane. The embedded Access is a cluster administrator's.
type Plane struct {
	*Access

	dir       string
	tools     string
	port      int
	pki       *pki
	processes []*Process
	kubectl   *kubectls
	audit     *Audit
	options   Options

	// hasNode is true once this process, the first in its namespaces, has prepared a real node.
	hasNode bool
	// formerMounts are the mounts that existed before the node.
	formerMounts []mount
}

// Start runs a control plane and returns when it is ready: /readyz succeeds, and with Workloads a
// Deployment can become Available. After an error no process remains, and the folder with its logs
// stays.
func Start(ctx context.Context, opts Options) (*Plane, error) {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()

	dir, err := prepare(opts.Dir)
	if err != nil {
		return nil, err
	}
	p := &Plane{dir: dir, tools: opts.Tools, kubectl: &kubectls{dir: dir, tools: opts.Tools, processors: opts.Processors}, options: opts}
	if err := p.start(ctx, opts); err != nil {
		// err already names a process that ended by itself.
		_ = p.Stop()
		return nil, err
	}
	return p, nil
}

// start starts the programs in the order of their dependencies.
func (p *Plane) start(ctx context.Context, opts Options) (err error) {
	if err := p.save(); err != nil {
		return err
	}
	if p.pki, err = newPKI(filepath.Join(p.dir, "pki")); err != nil {
		return err
	}
	if opts.Node != "" {
		if err := p.prepareNode(); err != nil {
			return fmt.Errorf("preparing a real node: %w", err)
		}
	}
	opts.say("starting etcd")
	if err := p.startEtcd(ctx, opts.Detached); err != nil {
		return err
	}
	opts.say("starting kube-apiserver")
	if err := p.startAPIServer(ctx, opts); err != nil {
		return err
	}
	if err := p.save(); err != nil {
		return err
	}
	if !opts.Workloads {
		return nil
	}
	opts.say("starting controller-manager, scheduler and a node")
	if err := p.startWorkloads(opts.Detached); err != nil {
		return err
	}
	if opts.Node == "" {
		err = p.startKwok(opts.Detached)
	} else {
		err = p.startNode(ctx)
	}
	if err != nil {
		return err
	}
	opts.say("waiting for a node that takes pods")
	return p.waitForNode(ctx)
}

// prepare creates the folder and returns its canonical name. Processes are found by this name, so a
// folder must not have two spellings.
func prepare(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("making the folder of the control plane: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("reading the folder of the control plane: %w", err)
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("folder %s is not empty: a control plane starts in a folder of its own", dir)
	}
	return canonical(dir)
}

// canonical returns the absolute name of a folder without symbolic links. The folder need not
// exist.
func canonical(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("finding the absolute name of %s: %w", dir, err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, os.ErrNotExist) {
		real, err = filepath.EvalSymlinks(filepath.Dir(abs))
		real = filepath.Join(real, filepath.Base(abs))
	}
	if err != nil {
		return "", fmt.Errorf("resolving %s: %w", dir, err)
	}
	return real, nil
}

// Stop kills every process, the last started first, and returns when they have ended. A stopped
// plane cannot be started again, so nothing is saved. Stop reports programs that had ended before.
// The folder stays.
func (p *Plane) Stop() error {
	p.kubectl.close()
	var errs []error
	for i := len(p.processes) - 1; i >= 0; i-- {
		if err := p.processes[i].Kill(); err != nil {
			errs = append(errs, err)
		}
	}
	p.processes = nil
	if p.hasNode {
		errs = append(errs, p.stopNode())
	}
	return errors.Join(errs...)
}

// Dir returns the folder of the plane. It contains a log of each program (*.log), audit.log and
// pki.
func (p *Plane) Dir() string { return p.dir }

// Address returns the address for programs beside the plane. Pods of a real node can reach it.
func (p *Plane) Address() string {
	if p.options.Node != "" {
		return nodeIP
	}
	return "127.0.0.1"
}

// Audit returns the log of requests to kube-apiserver.
func (p *Plane) Audit() *Audit { return p.audit }

// User returns the access of a user with a client certificate. RBAC grants its rights to the name,
// to the groups and to system:authenticated. A second call for the same name replaces the groups in
// the kubeconfig file.
func (p *Plane) User(name string, groups ...string) (*Access, error) {
	// Names may contain colons and slashes: system:serviceaccount:a:b.
	return p.newAccess(filepath.Join(p.dir, "users", url.QueryEscape(name)+".kubeconfig"), name, groups...)
}

func (p *Plane) url() string       { return fmt.Sprintf("https://127.0.0.1:%d", p.port) }
func (p *Plane) auditLog() string  { return filepath.Join(p.dir, "audit.log") }
func (p *Plane) adminFile() string { return filepath.Join(p.dir, "kubeconfig") }

// open sets the administrator's access and opens the audit log.
func (p *Plane) open(admin *Access) error {
	audit, err := newAudit(p.auditLog(), admin.Config())
	if err != nil {
		return err
	}
	p.Access, p.audit = admin, audit
	return nil
}
