//go:build integration

// Package chartkind_test tests custom resources that are installed with charts. It uses plain
// kubectl, the real program, a control plane whose Deployments become Available, a registry on
// loopback, and the example in artifacts/examples/central.
//
// All scenarios share one control plane, one server and one registry. Each has its own namespace:
//
//	go test ./test/chartkind -run 'TestChartKinds/Design'
package chartkind_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/test/framework/await"
	"github.com/penstock-project/penstock/test/framework/client"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// shared is the control plane with Penstock, for one scenario.
type shared struct {
	*cluster.Cluster
	t      *testing.T
	server *penstock.Server
	host   dynamic.Interface
	// kinds are the ChartKinds of the example, with references to the pushed charts.
	kinds string
	// name is the name of the scenario in lower case, and of its namespace.
	name string
}

var (
	centrals    = schema.GroupVersionResource{Group: "platform.stackrox.io", Version: "v1alpha1", Resource: "centrals"}
	secured     = schema.GroupVersionResource{Group: "platform.stackrox.io", Version: "v1alpha1", Resource: "securedclusters"}
	revisions   = schema.GroupVersionResource{Group: "olm.operatorframework.io", Version: "v1alpha1", Resource: "clusterextensionrevisions"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// operator is the ServiceAccount that installs Centrals.
const operator = "system:serviceaccount:rhacs-operator:rhacs-operator"

func TestChartKinds(t *testing.T) {
	w := start(t)
	for name, do := range map[string]func(shared){
		"Design": considerations, "RaceConditionHandling": races, "ScaleTesting": scale,
		"Approval": approval, "Inputs": inputs, "Deletion": deletion, "Others": others, "Refused": refused, "Lent": lent, "Trouble": trouble, "Columns": columns, "HowTo": howTo, "Hostile": hostile,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			do(w.in(t, strings.ToLower(name)))
		})
	}
}

// start starts the control plane, the registry and Penstock. They run until the test ends.
func start(t *testing.T) shared {
	t.Helper()
	w := shared{Cluster: cluster.Start(t, cluster.Workloads()), t: t}
	images, program := registry.Serve(t), penstock.Build(t)
	root, err := plane.Root()
	if err != nil {
		t.Fatal(err)
	}
	example := filepath.Join(root, "artifacts", "examples", "central")
	central := images.Push(t, filepath.Join(example, "chart"), "charts/central-services:4.9.0")
	cluster := images.Push(t, filepath.Join(example, "secured-chart"), "charts/secured-cluster-services:4.9.0")
	kinds, err := os.ReadFile(filepath.Join(example, "chartkinds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	w.kinds = strings.NewReplacer("registry.example.com/charts/central-services:4.9.0", central,
		"registry.example.com/charts/secured-cluster-services:4.9.0", cluster).Replace(string(kinds))
	if w.host, err = dynamic.NewForConfig(w.Config()); err != nil {
		t.Fatal(err)
	}
	w.server = program.Serve(t, w.Cluster, penstock.DataDir(t),
		"--registry-cas-dir="+images.Dir, "--registry-auth-file="+filepath.Join(images.Dir, registry.AuthFile))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what the server complained of:\n%s", w.server.Complaints())
		}
		if strings.Contains(w.server.Log(), "panic") {
			t.Errorf("the server panicked:\n%s", w.server.Log())
		}
	})
	w.MustKubectl("apply", "--server-side", "-f", filepath.Join(example, "crds.yaml"), "-f", filepath.Join(example, "operator.yaml"))
	client.New(t, w.Config(), "default").Stamped(w.kinds)
	w.MustKubectlInput(w.kinds, "apply", "--server-side", "-f", "-")
	for _, name := range []string{"central", "securedcluster"} {
		w.await(chartkind.Resource, "", name, "it is served", is("Accepted", "True", ""))
	}
	return w
}

// in returns the cluster for a scenario, and creates the scenario's namespace.
func (w shared) in(t *testing.T, name string) shared {
	t.Helper()
	w.Cluster, w.t, w.name = w.Cluster.In(t), t, name
	w.MustKubectl("create", "namespace", name)
	return w
}

// await waits until done returns true for an object, and returns the object. For an absent object,
// done is called with nil.
func (w shared) await(resource schema.GroupVersionResource, namespace, name, what string, done func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	w.t.Helper()
	var client dynamic.ResourceInterface = w.host.Resource(resource)
	if namespace != "" {
		client = w.host.Resource(resource).Namespace(namespace)
	}
	return await.Object(w.t, client, name, what, func(object *unstructured.Unstructured) (bool, error) { return done(object), nil })
}

func absent(object *unstructured.Unstructured) bool { return object == nil }

// is reports whether a condition has a status, and a reason unless it is empty.
func is(kind, status, reason string) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		return object != nil && conditionOf(object, kind, status, reason) != nil
	}
}

// all reports whether all checks hold for an object.
func all(checks ...func(*unstructured.Unstructured) bool) func(*unstructured.Unstructured) bool {
	return func(object *unstructured.Unstructured) bool {
		for _, check := range checks {
			if !check(object) {
				return false
			}
		}
		return true
	}
}

func conditionOf(object *unstructured.Unstructured, kind, status, reason string) *metav1.Condition {
	for _, one := range report.StatusOf(object).Conditions {
		if one.Type == kind && string(one.Status) == status && (reason == "" || one.Reason == reason) {
			return &one
		}
	}
	return nil
}

func observed(object *unstructured.Unstructured) bool {
	return object != nil && report.StatusOf(object).ObservedGeneration == object.GetGeneration()
}

// settled reports whether the current generation of a Central is installed and ready.
func settled(object *unstructured.Unstructured) bool {
	return all(is(report.Progressing, "False", report.ReasonReconcileSuccessful), is(report.Ready, "True", ""), is(report.Deployed, "True", ""), observed)(object)
}

func (w shared) awaitCentral(name, what string, done func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	w.t.Helper()
	return w.await(centrals, w.name, name, what, done)
}

func (w shared) central(name, spec string) *unstructured.Unstructured {
	w.t.Helper()
	w.MustKubectlInput(fmt.Sprintf("{apiVersion: platform.stackrox.io/v1alpha1, kind: Central, metadata: {name: %s, namespace: %s}, spec: {%s}}", name, w.name, spec), "create", "-f", "-")
	return w.awaitCentral(name, "it is installed", settled)
}

func (w shared) patch(name, patch string) {
	w.t.Helper()
	w.MustKubectl("-n", w.name, "patch", "central", name, "--type=merge", "-p", patch)
}

// written counts the status writes of a field manager to the scenario's Centrals.
func (w shared) written(mark plane.Mark, manager string) int {
	w.t.Helper()
	return len(w.Audit().Since(mark, plane.ByUser(operator), plane.ByVerb("patch"), func(r plane.Request) bool {
		return r.Resource == "centrals" && r.Subresource == "status" && r.Namespace == w.name && strings.Contains(r.URI, "fieldManager="+manager+"&")
	}))
}

func (w shared) renders() int {
	return strings.Count(w.server.Log(), `"Rendering a chart" extension="central-`+w.name+`"`)
}

func (w shared) has() int {
	w.t.Helper()
	return len(strings.Fields(w.MustKubectl("get", "cer", "-l", "penstock.dev/chain=central-"+w.name, "-o", "name")))
}

// eventually polls a check: changed rights take effect some milliseconds later, and no watch
// reports that.
func (w shared) eventually(what string, so func() bool) {
	w.t.Helper()
	err := poll.Until(w.t.Context(), func(context.Context) bool { return so() })
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}
