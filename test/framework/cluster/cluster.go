// Package cluster starts a real Kubernetes control plane for a test:
//
//	c := cluster.Start(t)                      // etcd and kube-apiserver, 2 to 3 s
//	c := cluster.Start(t, cluster.Workloads()) // and Deployments become Available
//
// It fails the test instead of returning errors, and always stops its processes, however the test
// ends. It wraps package plane, which other programs use directly.
package cluster

import (
	"os"
	"testing"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// Cluster is a running control plane. The embedded Access is a cluster administrator's: c.Config(),
// c.Kubeconfig(), c.Kubectl(…).
type Cluster struct {
	*Access
	plane *plane.Plane
}

// Option changes the programs that Start runs.
type Option func(*plane.Options)

// Workloads adds the controller manager, the scheduler, kwok and one ready Node.
func Workloads() Option {
	return func(o *plane.Options) { o.Workloads = true }
}

// Node is like Workloads with a real node, whose kubelet runs containers. The test must run in
// separate namespaces: its TestMain calls plane.RunIsolated. tools is the folder that
// plane.NodeTools returns.
func Node(tools string) Option {
	return func(o *plane.Options) { o.Workloads, o.Node = true, tools }
}

// APIServerArgs appends arguments of kube-apiserver, for instance "--emulated-version=1.34".
func APIServerArgs(args ...string) Option {
	return func(o *plane.Options) { o.APIServerArgs = append(o.APIServerArgs, args...) }
}

// AllProcessors lets each program of the control plane use all processors, for measurements. By
// default each program uses one at a time.
func AllProcessors() Option {
	return func(o *plane.Options) { o.Processors = 0 }
}

// Start runs a control plane until the test ends. Any number can run at the same time.
//
// Without Workloads no controller runs: nothing is garbage collected, deleted namespaces stay, and
// no ServiceAccounts are created. The ClusterRoles admin, edit and view, which a controller fills,
// grant nothing.
func Start(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	tools, err := plane.Tools(t.Context(), os.Stderr)
	if err != nil {
		t.Fatalf("cluster: %v", err)
	}
	options := optionsFor(folder(t), tools)
	for _, opt := range opts {
		opt(&options)
	}
	running, err := plane.Start(t.Context(), options)
	if err != nil {
		t.Fatalf("cluster: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what kube-apiserver complained of:\n%s", running.Complaints())
		}
		if err := running.Stop(); err != nil {
			t.Errorf("cluster: %v", err)
		}
	})
	return &Cluster{Access: &Access{t: t, access: running.Access}, plane: running}
}

// optionsFor returns the options that all control planes of tests share.
func optionsFor(dir, tools string) plane.Options {
	return plane.Options{Dir: dir, Tools: tools, Processors: 1}
}

// In returns the same cluster for a subtest, so that failures belong to the subtest.
func (c *Cluster) In(t testing.TB) *Cluster {
	return &Cluster{Access: &Access{t: t, access: c.access}, plane: c.plane}
}

// Plane returns the underlying control plane, for code that programs other than tests use too.
func (c *Cluster) Plane() *plane.Plane { return c.plane }

// User returns the access of a user with a client certificate. RBAC grants rights to the name and
// the groups. A new grant takes effect after a few milliseconds, when kube-apiserver has observed
// it.
func (c *Cluster) User(name string, groups ...string) *Access {
	c.t.Helper()
	access, err := c.plane.User(name, groups...)
	if err != nil {
		c.t.Fatalf("cluster: %v", err)
	}
	return &Access{t: c.t, access: access}
}

// Audit returns the requests to kube-apiserver.
func (c *Cluster) Audit() *Audit { return &Audit{t: c.t, audit: c.plane.Audit()} }
