// Package plane runs a real Kubernetes control plane on loopback as child
// processes of the caller: etcd and kube-apiserver, and on request the
// controllers, a scheduler and one simulated node. It knows nothing of tests:
// package cluster wraps it for them, hack/cluster for people, the demo uses it
// as it is.
//
// One plane is one folder. Certificates, sockets, data and logs live below it,
// and every process names the folder in its arguments. So the process table
// itself says what belongs to a plane, and there are no pid files to go stale.
//
// Only kube-apiserver listens on a TCP port. etcd is reached over a socket in
// the folder and the other programs serve nothing, which leaves one port that
// two planes could fight over.
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

// StartTimeout bounds how long a plane may take to become ready. On an idle
// machine it takes 2 to 6 seconds; the bound is for machines under full load.
const StartTimeout = 3 * time.Minute

// Options say what to run and where.
type Options struct {
	// Dir is the folder of this plane; it is created, and must be absent or
	// empty.
	Dir string

	// Tools is the folder of the programs, as Tools finds it.
	Tools string

	// Workloads adds controller-manager, scheduler, kwok and one ready Node,
	// so that Deployments become Available.
	Workloads bool

	// Node is the folder of a real node's programs, as NodeTools returns it. With it, and
	// with Workloads, the node is real and not simulated: its kubelet runs containers. The
	// caller is in namespaces of its own then: see RunIsolated.
	Node string

	// Port of kube-apiserver; 0 chooses one that is free.
	Port int

	// Detached lets the processes outlive the caller. Otherwise they die with
	// it, however it ends.
	Detached bool

	// APIServerArgs are appended to the arguments of kube-apiserver, for
	// instance "--emulated-version=1.34".
	APIServerArgs []string

	// Processors is the number of processors that each program and each kubectl uses at the same
	// time; 0 is all. With 1, several planes take an eighth less processor time: a program with
	// several processors looks for work on each of them.
	Processors int

	// Progress, when set, is told in a few words what happens.
	Progress func(string)
}

func (o Options) say(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// Plane is a running control plane. The embedded Access is that of a cluster
// administrator.
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

	// hasNode is true once this process, the first in its namespaces, has a real node.
	hasNode bool
	// formerMounts are the mounts from before the node.
	formerMounts []mount
}

// Start runs a control plane and returns when it is ready: /readyz answers,
// and with Workloads a Deployment could become Available. When it fails,
// nothing is left running; the folder with its logs stays for a look.
func Start(ctx context.Context, opts Options) (*Plane, error) {
	ctx, cancel := context.WithTimeout(ctx, StartTimeout)
	defer cancel()

	dir, err := prepare(opts.Dir)
	if err != nil {
		return nil, err
	}
	p := &Plane{dir: dir, tools: opts.Tools, kubectl: &kubectls{dir: dir, tools: opts.Tools, processors: opts.Processors}, options: opts}
	if err := p.start(ctx, opts); err != nil {
		// A process that ended by itself is the error already.
		_ = p.Stop()
		return nil, err
	}
	return p, nil
}

// start brings the programs up in the order in which they need each other.
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

// prepare makes the folder and returns its one absolute name: processes are
// recognised by it, so two spellings of the same folder must not exist.
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

// canonical is the absolute name of a folder, which need not exist, without
// symbolic links.
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

// Stop ends every process, the last started first, and returns when they are
// gone: there is nothing to save, as a plane that was stopped is never started
// again. It reports programs that had ended before they were asked to. The
// folder stays.
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

// Dir is the folder of the plane: *.log of each program, audit.log, pki.
func (p *Plane) Dir() string { return p.dir }

// Address is the address for programs beside the plane. Pods of a real node can reach it.
func (p *Plane) Address() string {
	if p.options.Node != "" {
		return nodeIP
	}
	return "127.0.0.1"
}

// Audit reads what kube-apiserver was asked.
func (p *Plane) Audit() *Audit { return p.audit }

// User returns the access of a user with a client certificate of its own: what
// RBAC grants to that name and to the groups (and to system:authenticated), and
// no impersonation involved. Asked again for the same name, the kubeconfig file
// holds the groups given last.
func (p *Plane) User(name string, groups ...string) (*Access, error) {
	// Names may hold colons and slashes: system:serviceaccount:a:b.
	return p.newAccess(filepath.Join(p.dir, "users", url.QueryEscape(name)+".kubeconfig"), name, groups...)
}

func (p *Plane) url() string       { return fmt.Sprintf("https://127.0.0.1:%d", p.port) }
func (p *Plane) auditLog() string  { return filepath.Join(p.dir, "audit.log") }
func (p *Plane) adminFile() string { return filepath.Join(p.dir, "kubeconfig") }

// open takes the administrator's access and opens the audit log with it.
func (p *Plane) open(admin *Access) error {
	audit, err := newAudit(p.auditLog(), admin.Config())
	if err != nil {
		return err
	}
	p.Access, p.audit = admin, audit
	return nil
}
