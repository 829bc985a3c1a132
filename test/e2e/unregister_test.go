//go:build integration

package e2e_test

import (
	"strings"

	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// unregister: the objects keep running, without marks. Nothing in the cluster waits for Penstock,
// neither while it still runs nor after it has stopped.
func unregister(w sharedPlane) {
	w.MustKubectl("delete", "configmap", "penstock-store", "--namespace=penstock-system", "--ignore-not-found")
	server := w.program.Serve(w.t, w, penstock.DataDir(w.t))
	ns := w.namespace("leaving")
	in := "--namespace=" + ns
	draft := func(number int, image string) draft {
		return revision("leaving", number).Phase("crds", definition("Anchorage")).
			Phase("deploy", configMap(ns, "settings", "x=1"), secret(ns, "password", "hunter2"), deployment(ns, "server", image))
	}
	w.roll(draft(1, "example.com/server:v1"))
	w.roll(draft(2, "example.com/server:v2"))
	w.MustKubectlInput(instance("Anchorage", ns, "mine").String(), "create", "-f", "-")
	// A rollout that cannot finish.
	w.MustKubectlInput(revision("stuck", 1).Phase("all", deployment(ns, "stuck", "registry.invalid/stuck:v1"), configMap(ns, "late", "x=1")).String(), "create", "-f", "-")
	w.condition("stuck-1", "Progressing", "True", "Deployment.apps leaving/stuck")
	w.MustKubectlInput("{apiVersion: hco.kubevirt.io/v1alpha1, kind: ConfigurationPlan, metadata: {name: leaving-plan}, spec: {profile: LoadAwareRebalancing, action: DryRun}}", "create", "-f", "-")
	w.MustKubectlInput(`{apiVersion: hco.kubevirt.io/v1alpha1, kind: ConfigurationProfileDefinition, metadata: {name: leaving-profile}, spec: {description: Anchorages are there.,
		requirements: [{name: anchorages, definition: anchorages.anchorages.example.com, kind: Anchorage, access: Write, install: the example}],
		items: [{name: one, target: {requirement: anchorages, namespace: leaving, name: one}, object: '{"spec": {}}', impact: '"Low"', reason: '"it is there"'}]}}`, "create", "-f", "-")
	w.MustKubectl("wait", "--for=condition=AccessGranted", "configprofiledef/leaving-profile", poll.TimeoutFlag)
	running := func() string {
		return w.read(".items[*].metadata.uid} {.items[*].spec", "deployments", in) + " " +
			w.read(".items[*].metadata.uid", "pods", in) + " " +
			w.read(".items[*].metadata.uid", "anchorages.anchorages.example.com", in) + " " +
			w.read(".metadata.uid", "configmap/settings", in) + " " + w.read(".metadata.uid", "secret/password", in)
	}
	before := running()

	out := w.program.Run(w.t, "", "unregister", "--release-finalizers", "--kubeconfig", w.Kubeconfig())
	if out.ExitCode != 0 {
		w.t.Fatal(out)
	}
	if !strings.HasPrefix(out.Stdout, "1 plan: leaving-plan. Their changes in the cluster stay") {
		w.t.Errorf("the output does not begin with the plans:\n%s", out.Stdout)
	}
	w.says(out.Stdout, "3 revisions released; all objects stay as they are", "helm uninstall penstock --namespace penstock-system", "apiservice v1alpha1.olm.operatorframework.io deleted",
		"clusterrolebinding penstock-reader deleted", "clusterrolebinding penstock-profile-leaving-profile deleted",
		"serviceaccount penstock-system/penstock-profile-leaving-profile deleted", "role penstock-system/penstock-profile-leaving-profile deleted", "service penstock-system/penstock deleted", "kubectl delete namespace penstock-system", "kubectl delete --ignore-not-found -k artifacts/deploy/embedded")
	if got := running(); got != before {
		w.t.Errorf("the rolled-out objects have changed:\n%s\nbefore:\n%s", got, before)
	}
	for _, name := range []string{"configmap/settings", "secret/password", "deployment/server", "deployment/stuck", "crd/anchorages.anchorages.example.com"} {
		found := w.MustKubectl("get", name, in, "-o", "yaml", "--show-managed-fields")
		for _, mark := range []string{"penstock.dev/", "manager: penstock"} {
			if strings.Contains(found, mark) {
				w.t.Errorf("%s still has %s:\n%s", name, mark, found)
			}
		}
	}

	// Penstock still runs, and does not restore its registration.
	server.Await(w.t, "Not restoring an object that this process needs in the host cluster")
	deleteNamespace := func(name string) {
		w.MustKubectl("create", "namespace", name)
		w.MustKubectl("create", "configmap", "something", "--namespace="+name)
		w.MustKubectl("delete", "namespace", name, poll.TimeoutFlag)
	}
	deleteNamespace("while-it-runs")
	w.absent("apiservice", "v1alpha1.olm.operatorframework.io")
	w.absent("clusterrole", "penstock-reader")
	if left := w.MustKubectl("get", "clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts", "-A", "-l", "hco.kubevirt.io/profile-definition"); left != "" {
		w.t.Errorf("identities of profiles are left:\n%s", left)
	}
	server.Stop(w.t)
	deleteNamespace("when-it-is-gone")
	// A second run has no effect. Deleting the namespace deletes the rest.
	if again := w.program.Run(w.t, "", "unregister", "--release-finalizers", "--kubeconfig", w.Kubeconfig()); again.ExitCode != 0 {
		w.t.Error(again)
	}
	w.MustKubectl("delete", "namespace", "penstock-system", poll.TimeoutFlag)
	w.absent("validatingadmissionpolicy", "penstock-identities")
	if got := running(); got != before {
		w.t.Errorf("the rolled-out objects have changed:\n%s\nbefore:\n%s", got, before)
	}
}
