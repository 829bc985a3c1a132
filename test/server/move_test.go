//go:build integration

package server_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/pod"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// trialDefinition and trialProfile define a plan that creates an Anchorage.
const trialDefinition = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: anchorages.example.com},
	spec: {group: example.com, scope: Namespaced, names: {kind: Anchorage, plural: anchorages, singular: anchorage},
	versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`

const trialProfile = `{apiVersion: hco.kubevirt.io/v1alpha1, kind: ConfigurationProfileDefinition, metadata: {name: anchored}, spec: {description: An Anchorage is there.,
	requirements: [{name: anchorages, definition: anchorages.example.com, kind: Anchorage, access: Write, install: the example}],
	items: [{name: one, target: {requirement: anchorages, namespace: default, name: one}, object: '{"spec": {"depth": 12}}', impact: '"Low"', reason: '"it is there"'}]}}`

const trialCatalog = `{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog,
	metadata: {name: trial, annotations: {penstock.dev/catalog-image-template: "registry.invalid/catalog:v{kube_major_version}.{kube_minor_version}"}},
	spec: {availabilityMode: Unavailable, source: {type: Image, image: {ref: "registry.invalid/catalog:v0"}}}}`

// TestMove runs the steps of docs/operations/install.md that move a trial into the cluster.
// Afterwards, Penstock serves the same objects, and no object in the cluster has changed.
func TestMove(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Workloads())
	// No Pod of the Deployment can start. The program runs in this test instead.
	c.MustKubectl("taint", "nodes", "--all", "test.penstock.dev/empty=true:NoSchedule")
	program, dataDir := penstock.Build(t), penstock.DataDir(t)
	i := &installation{Cluster: c, t: t, program: program, dir: filepath.Dir(penstock.DataDir(t))}
	move := func(more ...string) penstock.Output {
		return program.Run(t, "", append([]string{"move", "--data-dir", dataDir, "--kubeconfig", c.Kubeconfig()}, more...)...)
	}
	refused := func(out penstock.Output, want string) {
		t.Helper()
		if out.ExitCode == 0 || !strings.Contains(out.Stderr, want) {
			t.Errorf("%s\nshould fail with %q", out, want)
		}
	}

	trial := program.Serve(t, administrator(c.Kubeconfig()), dataDir)
	for number := 1; number <= 2; number++ {
		c.MustKubectlInput(revision("argocd", number), "create", "-f", "-")
		c.MustKubectl("wait", fmt.Sprintf("cer/argocd-%d", number), "--for=condition=Ready", poll.TimeoutFlag)
	}
	c.MustKubectlInput(trialDefinition, "create", "-f", "-")
	c.MustKubectl("wait", "--for=condition=Established", "crd/anchorages.example.com", poll.TimeoutFlag)
	c.MustKubectlInput(trialProfile, "create", "-f", "-")
	c.MustKubectl("wait", "--for=condition=AccessGranted", "configprofiledef/anchored", poll.TimeoutFlag)
	c.MustKubectlInput("{apiVersion: hco.kubevirt.io/v1alpha1, kind: ConfigurationPlan, metadata: {name: anchor}, spec: {profile: anchored}}", "create", "-f", "-")
	c.MustKubectl("wait", "--for=jsonpath={.status.phase}=ReviewRequired", "configplan/anchor", poll.TimeoutFlag)
	approval := fmt.Sprintf(`{"apiVersion":"hco.kubevirt.io/v1alpha1","kind":"PlanApprovalRequest","spec":{"planHash":%q}}`,
		c.MustKubectl("get", "configplan/anchor", "-o", "jsonpath={.status.planHash}"))
	c.MustKubectlInput(approval, "create", "--raw", "/apis/hco.kubevirt.io/v1alpha1/configurationplans/anchor/approve", "-f", "-")
	c.MustKubectl("wait", "--for=jsonpath={.status.phase}=Completed", "configplan/anchor", poll.TimeoutFlag)
	c.MustKubectlInput(trialCatalog, "create", "-f", "-")
	eventually(t, "the template is resolved", func() error {
		if image := c.MustKubectl("get", "clustercatalog/trial", "-o", "jsonpath={.spec.source.image.ref}"); !strings.HasPrefix(image, "registry.invalid/catalog:v1.") {
			return missingError{image}
		}
		return nil
	})
	// objects returns the objects that Penstock has rolled out, with all field managers and
	// versions.
	objects := func() string {
		return c.MustKubectl("get", "configmaps,anchorages.example.com", "--namespace=default", "-o", "yaml", "--show-managed-fields") +
			c.MustKubectl("get", "clustercatalog/trial", "-o", "jsonpath={.spec} {.status}")
	}
	served := func() string {
		return c.MustKubectl("get", "cer,configplan,configprofiledef", "-o", "yaml", "--show-managed-fields") +
			c.MustKubectl("get", "revisionhistory", "argocd", "-o", "yaml") +
			c.MustKubectl("get", "--raw", "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/argocd-1/manifests") +
			c.MustKubectl("get", "--raw", "/apis/hco.kubevirt.io/v1alpha1/configurationplans/anchor/history")
	}
	objectsBefore, servedBefore := objects(), served()

	refused(move(), "penstock serve still runs: stop it")
	trial.Stop(t)
	refused(program.Run(t, "", "move", "--data-dir", penstock.DataDir(t), "--kubeconfig", c.Kubeconfig()), "has no store")
	// A Pod is reached by its Service's endpoints, a trial by a host name.
	if err := c.Plane().Reconfigure(t.Context(), pod.Routing); err != nil {
		t.Fatal(err)
	}
	// The installation does not start in time. Meanwhile, nothing in the cluster waits for it.
	install := []string{"-k", deployFolder + "embedded"}
	refused(move(append(install, "--timeout=1s")...), "no installation serves it yet: kubectl get pods --namespace penstock-system has the reason")
	i.namespacesGo("between")
	degraded := program.Launch(t, administrator(c.Kubeconfig()), dataDir, "--register=false")
	degraded.Await(t, "is a copy from before it was restored from a snapshot")
	degraded.Kill(t)

	moved := make(chan penstock.Output, 1)
	go func() { moved <- move(install...) }()
	var deployment appsv1.Deployment
	decode(t, []byte(c.MustKubectl("get", "deployment/penstock", system, "-o", "yaml")), &deployment)
	i.begin(deployment)
	out := <-moved
	if out.ExitCode != 0 || !strings.Contains(out.Stdout, "The installation serves 2 revisions and 1 plan") {
		t.Fatalf("%s\n%s", out, i.running[0].Log())
	}
	if secrets := c.MustKubectl("get", "secrets", system, "-o", "name"); strings.Contains(secrets, "moved-store") {
		t.Errorf("Secrets with the store are left:\n%s", secrets)
	}
	refused(move(), "the store was moved already")
	if diff := cmp.Diff(servedBefore, served()); diff != "" {
		t.Errorf("the installation serves other content (-trial +installation):\n%s", diff)
	}
	if diff := cmp.Diff(objectsBefore, objects()); diff != "" {
		t.Errorf("objects have changed (-before +after):\n%s", diff)
	}
	// The installation repairs and deletes objects that the trial rolled out.
	c.MustKubectl("delete", "configmap", "first")
	eventually(t, "a deleted object is back", func() error {
		if found := c.Kubectl("get", "configmap", "first"); found.ExitCode != 0 {
			return missingError{found.Stderr}
		}
		return nil
	})
	c.MustKubectl("delete", "cer", "--all", poll.TimeoutFlag)
	if left := c.MustKubectl("get", "configmaps", "--ignore-not-found", "-o", "name", "first", "second"); left != "" {
		t.Errorf("objects of the trial are left: %s", left)
	}
}

// administrator is the path of an administrator's kubeconfig.
type administrator string

// Kubeconfig implements penstock.Host.
func (a administrator) Kubeconfig() string { return string(a) }
