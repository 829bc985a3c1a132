package gitops

import (
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/kube"

	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// obstacles: other writers' changes to the objects are never reverted without --overwrite.
func obstacles(s *site) {
	name := s.namespace
	s.says(s.adopt().Stderr, "there is no Helm release "+name+"/"+name)
	s.MustKubectl("create", "configmap", "-n", name, "kept-elsewhere")
	s.MustKubectl("label", "configmap", "-n", name, "kept-elsewhere", "owner=helm", "name="+name)
	s.refuses(nil, "HELM_DRIVER=configmap", "not supported")
	s.MustKubectl("delete", "configmap", "-n", name, "kept-elsewhere")
	s.hooks = []string{
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hooked, annotations: {helm.sh/hook: pre-upgrade}}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: tested, annotations: {helm.sh/hook: test}}\n",
	}
	s.helms(1, 2)

	s.MustKubectl("set", "image", "-n", name, "deployment/web", "web=example.com/other")
	s.refuses(nil, "nothing adopted", "Deployment.apps "+name+"/web differs from the release in .spec.template.spec.containers[0].image", "--overwrite")
	s.says(s.adopt("--dry-run").Stdout, "differs   .spec.template.spec.containers[0].image")
	s.MustKubectl("set", "image", "-n", name, "deployment/web", "web=example.com/web:v2")

	s.MustKubectl("create", "configmap", "-n", name, "boss")
	uid := s.read(".metadata.uid", "configmap/boss")
	owned := func(owners string) {
		s.MustKubectl("patch", "-n", name, "configmap/settings", "--type=merge", "-p", `{"metadata":{"ownerReferences":`+owners+`}}`)
	}
	owned(`[{"apiVersion":"v1","kind":"ConfigMap","name":"boss","uid":"` + uid + `","controller":true}]`)
	s.refuses([]string{"--overwrite"}, "ConfigMap "+name+"/settings: is controlled by ConfigMap boss")
	owned("null")
	s.MustKubectl("annotate", "--overwrite", "-n", name, "service/web", "meta.helm.sh/release-name=other")
	s.refuses([]string{"--overwrite"}, "Service "+name+"/web: belongs to the Helm release "+name+"/other")
	s.MustKubectl("annotate", "--overwrite", "-n", name, "service/web", "meta.helm.sh/release-name="+name)

	// A failed release may have changed any object.
	broken := append(s.version(3)[3:4], "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 0}]}\n")
	if err := s.helm(3, append(s.version(2), broken[1])...); err == nil {
		s.t.Error("Helm succeeds with an invalid object")
	}
	s.refuses(nil, "revision 3 of Helm is failed", "helm rollback")
	back := action.NewRollback(s.configuration())
	back.Version, back.WaitStrategy, back.ServerSideApply, back.ForceConflicts = 2, kube.HookOnlyStrategy, fmt.Sprint(s.serverSide), s.serverSide
	if err := back.Run(s.release); err != nil {
		s.t.Fatal(err)
	}

	// Other writers may scale it, and an administrator may restore a deleted object.
	s.MustKubectl("scale", "-n", name, "deployment/web", "--replicas=3")
	s.MustKubectl("delete", "configmap", "-n", name, "more")
	s.refuses(nil, "ConfigMap "+name+"/more is missing")
	s.limited()
	before := s.read(".spec.template", "deployment/web")
	out := s.mustAdopt("--overwrite")
	s.says(out, "hooks are not part of a revision, and stay with Helm: ConfigMap hooked (pre-upgrade)", "test hooks are left out: 1", name+"-4 has succeeded")
	s.read(".metadata.uid", "configmap/more")
	if after := s.read(".spec.template", "deployment/web"); after != before || s.read(".spec.replicas", "deployment/web") != "3" {
		s.t.Errorf("the template was %s, and is %s; replicas %s", before, after, s.read(".spec.replicas", "deployment/web"))
	}
	// A name in use.
	other := *s
	other.release, other.installed = "second", false
	if err := other.helm(1, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: second}\n"); err != nil {
		s.t.Fatal(err)
	}
	other.refuses([]string{"--extension", name}, "the extension "+name+" was adopted from the Helm release "+name+"/"+name, "--extension")
	other.mustAdopt("--extension", name+"-second")
	other.says(other.mustAdopt("--extension", name+"-second", "--undo"), "is Helm's again")
}

// limited: the command has only the rights of the caller.
func (s *site) limited() {
	s.t.Helper()
	name := s.namespace
	user := s.User(name+"-user", name)
	run := func(flags ...string) penstock.Output {
		return s.program.Run(s.t, "", append([]string{"adopt", "helm", "--kubeconfig", user.Kubeconfig(), s.release, "-n", s.namespace, "--overwrite"}, flags...)...)
	}
	s.says(run().Stderr, `cannot list resource "secrets"`)
	s.MustKubectl("create", "role", "reader", "-n", name, "--verb=get,list,patch", "--resource=secrets,configmaps,services,deployments.apps")
	s.MustKubectl("create", "rolebinding", "reader", "-n", name, "--role=reader", "--group="+name)
	s.MustKubectl("create", "clusterrole", name+"-adopts", "--verb=get,list,create", "--resource=clusterextensionrevisions.olm.operatorframework.io,revisionhistories.olm.operatorframework.io/import")
	s.MustKubectl("create", "clusterrolebinding", name+"-adopts", "--clusterrole="+name+"-adopts", "--group="+name)
	// Rights become effective a moment after they are written.
	s.MustKubectl("wait", "-n", name, "--for=create", poll.TimeoutFlag, "rolebinding/reader")
	mark := s.Audit().Mark()
	var out penstock.Output
	for range 20 {
		if out = run("--dry-run"); strings.Contains(out.Stderr, name+"-user cannot") {
			break
		}
	}
	s.says(out.Stdout, "unknown", `cannot get resource "clusterroles"`)
	s.says(out.Stderr, "the adoption would be refused; nothing was written", "a revision may only do what its requester may do", name+"-user cannot")
	s.nothingWritten(mark)
}
