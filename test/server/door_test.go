//go:build integration

package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// door is a cluster with the program, for tests of unauthorized users.
type door struct {
	t *testing.T
	*cluster.Cluster
	server *penstock.Server
}

func (d door) in(t *testing.T) door { return door{t, d.Cluster.In(t), d.server} }

// TestDoor tests the rights of all callers with the real program on one cluster.
func TestDoor(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	c.MustKubectlInput(proxies, "create", "-f", "-")
	c.MustKubectl("wait", "--for=condition=Established", "crd/proxies.config.openshift.io", poll.TimeoutFlag)
	c.MustKubectlInput(proxy("old", `release.openshift.io/install-level: "7"`), "create", "-f", "-")
	d := door{t, c, penstock.Build(t).Serve(t, c, penstock.DataDir(t))}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the server complained of:\n%s", d.server.Complaints())
		}
	})
	t.Run("Manifests", func(t *testing.T) { d.in(t).manifests() })
	t.Run("Governed", func(t *testing.T) { d.in(t).governed() })
	t.Run("Deputy", func(t *testing.T) { d.in(t).deputy() })
	t.Run("Owners", func(t *testing.T) { d.in(t).owners() })
	t.Run("Subresources", func(t *testing.T) { d.in(t).subresources() })
	t.Run("InstallLevels", func(t *testing.T) { d.in(t).installLevels() })
	t.Run("Threats", func(t *testing.T) { d.in(t).threats() })
	t.Run("Bombs", func(t *testing.T) { d.in(t).bombs() })
	t.Run("ImportBombs", func(t *testing.T) { d.in(t).importBombs() })
	t.Run("SlowWatches", func(t *testing.T) { d.in(t).slowWatches() })
	// Down runs last: it stops the server.
	t.Run("Down", func(t *testing.T) { d.in(t).down() })
}

// tries runs kubectl as a user. It fails the test unless the error contains says. With says "" the
// command must succeed.
func (d door) tries(reason, who, stdin, says string, args ...string) {
	d.t.Helper()
	if who != "" {
		args = append(args, "--as="+who)
	}
	out := d.KubectlInput(stdin, args...)
	if (out.ExitCode == 0) != (says == "") || !strings.Contains(out.Stderr, says) {
		d.t.Errorf("%s: want %q: %.2000s", reason, says, out)
	}
}

// editors grants all rights to the objects of a namespace.
const editors = `apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, labels: {policy.penstock.dev/protect: "%[2]t"}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: editor}
rules:
- {apiGroups: [""], resources: [configmaps, services, namespaces], verbs: ["*"]}
- {apiGroups: [config.openshift.io], resources: ["*"], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: editor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: editor}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: eddie}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: brenda}
`

// governed: in protected namespaces only users with the right to bypass can delete rolled-out
// objects.
func (d door) governed() {
	d.MustKubectlInput(fmt.Sprintf(editors, "guarded", true), "apply", "-f", "-")
	d.MustKubectlInput(fmt.Sprintf(editors, "open", false), "apply", "-f", "-")
	d.MustKubectlInput(roleFor("brenda", "[{apiGroups: [policy.penstock.dev], resources: [privilegechecks], resourceNames: [tower], verbs: [bypass]}]"), "create", "-f", "-")
	objects := ""
	for _, ns := range []string{"guarded", "open"} {
		for _, name := range []string{"a", "b", "c"} {
			objects += fmt.Sprintf("    - object: {apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: {k: v}}\n", name, ns)
		}
	}
	objects += "    - object: {apiVersion: v1, kind: Namespace, metadata: {name: brought, labels: {policy.penstock.dev/protect: \"true\"}}}\n"
	d.MustKubectlInput("apiVersion: olm.operatorframework.io/v1alpha1\nkind: ClusterExtensionRevision\nmetadata: {name: tower-1}\nspec:\n  revision: 1\n  phases:\n  - name: all\n    objects:\n"+objects, "create", "-f", "-")
	d.MustKubectl("wait", "--for=condition=Succeeded", "cer/tower-1", poll.TimeoutFlag)

	refused := `admission webhook "governed.penstock.dev" denied the request: `
	deleting := refused + `deleting ConfigMap guarded/a is not allowed: extension "tower"`
	unmarking := refused + `removing the marks of Penstock from ConfigMap guarded/a`
	in := "--namespace=guarded"
	eventually(d.t, "the webhook", func() error {
		return missing(d.Kubectl("delete", "configmap", "a", in, "--dry-run=server", "--as=eddie").Stderr, []string{deleting})
	})
	d.tries("deleting", "eddie", "", deleting, "delete", "configmap", "a", in)
	d.tries("giving it an owner that is not there", "eddie", "", refused+"giving an owner to ConfigMap guarded/a", "patch", "configmap", "a", in, "--type=merge",
		"-p", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"0b0e6f0e-0000-4000-8000-000000000000"}]}}`)
	d.tries("deleting all", "eddie", "", deleting, "delete", "configmaps", "--all", in)
	d.tries("taking the label off", "eddie", "", unmarking, "label", "configmap", "a", in, "penstock.dev/chain-")
	d.tries("moving it to another chain", "eddie", "", unmarking, "label", "configmap", "a", in, "penstock.dev/chain=other", "--overwrite")
	d.tries("wiping managedFields", "eddie", "", unmarking, "patch", "configmap", "a", in, "--type=merge", "-p", `{"metadata":{"managedFields":[{}]}}`)
	d.tries("a namespace that came with it", "eddie", "", refused+"deleting Namespace brought", "delete", "namespace", "brought", "--wait=false")
	d.MustKubectl("create", "configmap", "mine", in)
	d.tries("what is no extension's", "eddie", "", "", "delete", "configmap", "mine", in)
	d.tries("a namespace that did not ask for it", "eddie", "", "", "delete", "configmap", "a", "--namespace=open")
	d.tries("somebody with the right", "brenda", "", "", "delete", "configmap", "b", in)
	d.tries("an administrator", "", "", "", "delete", "configmap", "c", in)

	mark := d.Audit().Mark()
	d.tries("another change", "eddie", "", "", "patch", "configmap", "a", in, "--type=merge", "-p", `{"data":{"more":"x"}}`)
	// No controller deletes the namespace's content here, so do not wait.
	d.tries("what goes with the extension", "", "", "", "delete", "cer", "tower-1", "--wait=false")
	eventually(d.t, "the teardown", func() error {
		if got := d.MustKubectl("get", "configmap", "-A", "-l", "penstock.dev/chain=tower", "-o", "name"); got != "" {
			return missingError{got}
		}
		return nil
	})
	if denied := d.Audit().Since(mark, plane.ByUser("system:serviceaccount:penstock-system:penstock-engine"), func(r plane.Request) bool { return r.Code == 403 }); len(denied) > 0 {
		d.t.Errorf("the engine's writes were refused:\n%s", denied)
	}
}

// proxies is a kind as in OpenShift.
const proxies = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: proxies.config.openshift.io, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: config.openshift.io
  scope: Cluster
  names: {kind: Proxy, listKind: ProxyList, plural: proxies, singular: proxy}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

func proxy(name, annotations string) string {
	return fmt.Sprintf("{apiVersion: config.openshift.io/v1, kind: Proxy, metadata: {name: %s, annotations: {%s}}}", name, annotations)
}

// installLevels: invalid install levels are refused when they are set.
func (d door) installLevels() {
	d.MustKubectlInput(fmt.Sprintf(editors, "levels", false), "apply", "-f", "-")
	const (
		level      = "release.openshift.io/install-level"
		createOnly = `release.openshift.io/create-only: "true", `
	)
	wrong := `admission webhook "install-level.penstock.dev" denied the request: Proxy.config.openshift.io `
	create := []string{"create", "-f", "-"}
	eventually(d.t, "the webhook", func() error {
		return missing(d.KubectlInput(proxy("a", level+`: "2"`), "create", "--dry-run=server", "-f", "-").Stderr, []string{wrong})
	})
	d.tries("neither 0 nor 1", "", proxy("a", createOnly+level+`: "2"`), wrong+`a: annotation `+level+` is "2", want "0" or "1"`, create...)
	d.tries("not create-only", "", proxy("a", level+`: "1"`), wrong+`a: annotation `+level+` is "1", which needs`, create...)
	d.tries("right", "eddie", proxy("a", createOnly+level+`: "1"`), "", create...)
	d.tries("none", "eddie", proxy("plain", ""), "", create...)
	d.tries("set later", "eddie", "", wrong+"plain", "annotate", "proxy", "plain", level+"=first")
	d.tries("changed", "eddie", "", wrong+"a", "annotate", "proxy", "a", level+"=01", "--overwrite")

	// An object with an earlier invalid level can still be changed and deleted.
	d.MustKubectl("patch", "proxy", "old", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/wait"]}}`)
}

// down: while Penstock is down, everything can be repaired. Only deletions in protected namespaces
// wait.
func (d door) down() {
	d.MustKubectlInput(fmt.Sprintf(editors, "guarded", true), "apply", "-f", "-")
	d.MustKubectlInput(revisionOf("beacon", "guarded"), "create", "-f", "-")
	d.MustKubectl("wait", "--for=condition=Succeeded", "cer/beacon-1", poll.TimeoutFlag)
	d.server.Kill(d.t)
	in := "--namespace=guarded"
	d.tries("the protection holds", "eddie", "", `failed calling webhook "governed.penstock.dev"`, "delete", "configmap", "kept", in)
	d.tries("other changes go on", "eddie", "", "", "label", "configmap", "kept", in, "a=b")
	d.tries("somebody with the right goes on", "", "", "", "delete", "configmap", "kept", in)
	d.tries("our namespace", "", "", "", "create", "configmap", "repair", "--namespace=penstock-system")
	d.MustKubectl("label", "configmap", "repair", "--namespace=penstock-system", "penstock.dev/chain=penstock")
	d.tries("our namespace, all of it", "", "", "", "delete", "configmap", "repair", "--namespace=penstock-system")
	d.tries("finalizers", "eddie", "", "", "delete", "proxy", "old", "--wait=false")
	d.tries("finalizers", "eddie", "", "", "patch", "proxy", "old", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
}

func revisionOf(chain, namespace string) string {
	return fmt.Sprintf(`apiVersion: olm.operatorframework.io/v1alpha1
kind: ClusterExtensionRevision
metadata: {name: %s-1}
spec:
  revision: 1
  phases:
  - name: all
    objects:
    - object: {apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: %s}, data: {k: v}}
`, chain, namespace)
}
