package plane

import (
	"context"
	"fmt"
	"path/filepath"
)

// Upgrade replaces kube-apiserver by the kube-apiserver of other tools, on the same port and etcd,
// like an upgrade of the control plane. It returns when the new kube-apiserver is ready. tools is a
// folder as Tools returns it, of any version of Kubernetes.
func (p *Plane) Upgrade(ctx context.Context, tools string) error { return p.restart(ctx, tools) }

// Reconfigure restarts kube-apiserver with additional arguments. It returns when kube-apiserver is
// ready.
func (p *Plane) Reconfigure(ctx context.Context, args ...string) error {
	p.options.APIServerArgs = append(p.options.APIServerArgs, args...)
	return p.restart(ctx, p.tools)
}

func (p *Plane) restart(ctx context.Context, tools string) error {
	for i, running := range p.processes {
		if running.name != "kube-apiserver" {
			continue
		}
		if err := running.Kill(); err != nil {
			return err
		}
		started, err := p.launch("kube-apiserver", filepath.Join(tools, "kube-apiserver"), false, p.apiServerArgs(p.options))
		if err != nil {
			return err
		}
		p.processes[i] = started
		return p.until(ctx, "kube-apiserver to become ready", p.ready, started)
	}
	return fmt.Errorf("no kube-apiserver runs in %s", p.dir)
}
