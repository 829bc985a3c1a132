//go:build integration

package server_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/pod"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// TestLeave: an installation by manifests never blocks the deletion of namespaces. This holds if
// its program never starts, and after its objects are deleted in any order. As in OpenShift, an
// admission plugin restricts who may set owners.
func TestLeave(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Workloads(), cluster.APIServerArgs(pod.Routing, "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"))
	// No Pod of the Deployment can start. The program runs in this test instead.
	c.MustKubectl("taint", "nodes", "--all", "test.penstock.dev/empty=true:NoSchedule")
	kustomized := c.MustKubectl("kustomize", deployFolder+"embedded")
	chart := "{apiVersion: v1, kind: Namespace, metadata: {name: penstock-system}}\n---\n" + rendered(t, "v1.0.0", values{})
	remove := func(manifests string) []step {
		return []step{{stdin: manifests, args: []string{"delete", "--ignore-not-found", poll.TimeoutFlag, "-f", "-"}}}
	}
	do := func(args ...string) step { return step{args: args} }
	for _, tc := range []struct {
		name, manifests string
		// starts reports whether the program starts.
		starts bool
		leave  []step
	}{
		{name: "NeverReady", manifests: kustomized, leave: remove(kustomized)},
		{name: "Kustomize", manifests: kustomized, starts: true, leave: remove(kustomized)},
		{name: "Chart", manifests: chart, starts: true, leave: remove(chart)},
		{name: "NamespaceFirst", manifests: kustomized, starts: true, leave: append([]step{do("delete", "namespace", "penstock-system", "--wait=false")}, remove(kustomized)...)},
		{name: "RoleFirst", manifests: kustomized, starts: true, leave: append([]step{do("delete", "clusterrole", "penstock-server")}, remove(kustomized)...)},
		{name: "DeploymentFirst", manifests: kustomized, starts: true, leave: append([]step{do("delete", "deployment", "penstock", system), {stop: true}}, remove(kustomized)...)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i := &installation{Cluster: c.In(t), t: t, program: penstock.Build(t), dir: filepath.Dir(penstock.DataDir(t))}
			if tc.starts {
				i.apply(tc.manifests)
				i.owned()
			} else {
				i.MustKubectlInput(tc.manifests, "apply", "--server-side", "-f", "-")
				i.namespacesGo("never-ready")
			}
			for _, s := range tc.leave {
				if s.stop {
					i.kill()
					continue
				}
				i.MustKubectlInput(s.stdin, s.args...)
			}
			i.nothingLeft()
			i.kill()
			i.namespacesGo("left")
		})
	}
}

// step is a kubectl command, or the end of the program.
type step struct {
	stdin string
	args  []string
	stop  bool
}

// registered lists the objects that the program creates so that the host sends requests to it.
var registered = []string{"apiservice/v1alpha1.olm.operatorframework.io", "apiservice/v1alpha1.hco.kubevirt.io", "apiservice/v1alpha1.catalog.penstock.dev",
	"validatingwebhookconfiguration/penstock", "mutatingwebhookconfiguration/penstock"}

// owned: all registered objects get an owner, even if they were made without one. An example is
// penstock serve --register outside of the cluster.
func (i *installation) owned() {
	i.t.Helper()
	for _, name := range registered {
		i.MustKubectl("patch", name, "--type=json", `-p=[{"op":"remove","path":"/metadata/ownerReferences"}]`)
	}
	for _, name := range registered {
		eventually(i.t, name+" is owned", func() error {
			if owner := i.MustKubectl("get", name, "-o", "jsonpath={.metadata.ownerReferences[*].name}"); owner != "penstock-server" {
				return missingError{owner}
			}
			return nil
		})
	}
}

// nothingLeft waits until no registered object is left.
func (i *installation) nothingLeft() {
	i.t.Helper()
	eventually(i.t, "the registration is deleted", func() error {
		if left := i.MustKubectl(append([]string{"get", "--ignore-not-found", "-o", "name"}, registered...)...); left != "" {
			return missingError{left}
		}
		return nil
	})
}

// namespacesGo: a namespace with an object in it can be deleted.
func (i *installation) namespacesGo(name string) {
	i.t.Helper()
	name += "-" + strings.ToLower(filepath.Base(i.t.Name()))
	i.MustKubectl("create", "namespace", name)
	i.MustKubectl("create", "configmap", "something", "--namespace="+name)
	i.MustKubectl("delete", "namespace", name, poll.TimeoutFlag)
}

// kill ends the Pods as abruptly as the loss of a node.
func (i *installation) kill() {
	i.t.Helper()
	for _, server := range i.running {
		server.Kill(i.t)
	}
	i.running = nil
}
