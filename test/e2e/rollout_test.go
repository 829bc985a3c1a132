//go:build integration

package e2e_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// example renders a version of the operator in artifacts/examples.
func (w sharedPlane) example(version string, number int) string {
	w.t.Helper()
	return w.program.MustRun(w.t, "", "render", "../../artifacts/examples/lighthouse/"+version, "--extension=lighthouse", fmt.Sprintf("--revision=%d", number))
}

// lighthouse installs, upgrades and removes the example. One upgrade gets stuck and is archived.
func lighthouse(w sharedPlane) {
	image := func() string {
		return w.read(".spec.template.spec.containers[0].image", "deployment", "lighthouse-controller", "--namespace=lighthouse-system")
	}
	// An install.
	w.MustKubectlInput(w.example("v1.0.0", 1), "create", "-f", "-")
	w.succeeded("lighthouse-1")
	// The Deployments are available already, not a moment later.
	if got := w.read(`.items[*].status.conditions[?(@.type=="Available")].status`, "deployments", "--namespace=lighthouse-system"); got != "True True" {
		w.t.Errorf("the revision has succeeded, and its two Deployments are Available: %s", got)
	}
	w.MustKubectl("get", "configmap", "lighthouse-legacy-beams", "--namespace=lighthouse-system")

	// An upgrade: objects that the new version lacks are deleted when it has succeeded.
	w.MustKubectlInput(w.example("v1.1.0", 2), "create", "-f", "-")
	w.succeeded("lighthouse-2")
	w.value("Archived", ".spec.lifecycleState", "cer/lighthouse-1")
	w.gone("configmap/lighthouse-legacy-beams", "--namespace=lighthouse-system")
	w.MustKubectl("get", "poddisruptionbudget", "lighthouse-webhook", "--namespace=lighthouse-system")
	w.says(image(), "controller:v1.1.0")
	w.event("lighthouse-1", "Archived", "revision 2 has succeeded")
	w.condition("lighthouse-2", "Ready", "True")
	w.condition("lighthouse-1", "Progressing", "False")

	// For an upgrade that cannot finish, the first screen of kubectl describe shows the cause.
	w.MustKubectlInput(w.example("v1.2.0-stuck", 3), "create", "-f", "-")
	w.condition("lighthouse-3", "Progressing", "True", "phase deploy", "Deployment.apps lighthouse-system/lighthouse-controller", "1 of 2 replicas updated")
	first := firstLines(w.MustKubectl("describe", "cer", "lighthouse-3"), 24)
	w.says(first, "phase deploy (", "Deployment.apps lighthouse-system/lighthouse-controller", "1 of 2 replicas updated")
	w.says(w.MustKubectl("get", "cer", "lighthouse-3", "-o", "wide"), "Active", "False", "True", "RollingOut", "phase deploy")
	w.says(w.MustKubectl("get", "cer", "lighthouse-2", "--no-headers"), "Active")
	w.says(image(), "registry.invalid")

	// Archiving it returns its objects to the revision before.
	w.MustKubectl("patch", "cer", "lighthouse-3", "--type=merge", "-p", `{"spec":{"lifecycleState":"Archived"}}`)
	w.condition("lighthouse-3", "Progressing", "False")
	w.condition("lighthouse-3", "Ready", "True", "no object in the cluster belongs to it any more")
	w.condition("lighthouse-2", "Ready", "True", "phases are as rolled out")
	w.says(image(), "controller:v1.1.0")
	w.MustKubectl("wait", "--for=condition=Available", "deployment", "--all", "--namespace=lighthouse-system", poll.TimeoutFlag)

	// Deleting the revisions deletes all objects.
	w.MustKubectl("delete", "cer", "--selector=penstock.dev/chain=lighthouse", poll.TimeoutFlag)
	w.absent("crd", "beacons.lighthouse.example.com")
	w.absent("namespace", "lighthouse-system")
	w.absent("validatingwebhookconfiguration", "lighthouse-webhook")
}

func firstLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// paused: a paused revision writes nothing, and its status shows the differences.
func paused(w sharedPlane) {
	ns := w.namespace("paused")
	one := revision("paused", 1).Phase("all", configMap(ns, "a", "x=1"), configMap(ns, "b", "x=1"))
	w.MustKubectlInput(one.With("lifecycleState", "Paused").String(), "create", "-f", "-")
	w.condition("paused-1", "Progressing", "False", "paused")
	w.absent("configmap", "a", "--namespace="+ns)
	lifecycle := func(state string) {
		w.t.Helper()
		w.MustKubectl("patch", "cer", "paused-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"`+state+`"}}`)
	}
	lifecycle("Active")
	w.succeeded("paused-1")

	// Penstock reports drift of a paused revision and does not repair it.
	lifecycle("Paused")
	w.condition("paused-1", "Progressing", "False", "paused")
	w.MustKubectl("patch", "configmap", "a", "--namespace="+ns, "--type=merge", "-p", `{"data":{"x":"drifted"}}`)
	w.condition("paused-1", "Available", "False", "ConfigMap paused/a", "differs from the manifest")
	w.MustKubectl("delete", "configmap", "b", "--namespace="+ns)
	w.until(revisionsResource(), "", "paused-1", func(o *unstructured.Unstructured) error { return failing(o, "b") })
	w.absent("configmap", "b", "--namespace="+ns)
	if x := w.read(".data.x", "configmap", "a", "--namespace="+ns); x != "drifted" {
		w.t.Errorf("a paused revision repaired a change: x is %s", x)
	}
	lifecycle("Active")
	w.condition("paused-1", "Available", "True")
	w.value("1", ".data.x", "configmap/a", "configmap/b", "--namespace="+ns)

	// While the newest revision is paused, the revision before keeps its objects.
	two := revision("paused", 2).Phase("all", configMap(ns, "a", "x=2")).With("lifecycleState", "Paused")
	w.MustKubectlInput(two.String(), "create", "-f", "-")
	w.condition("paused-2", "Progressing", "False", "paused")
	w.MustKubectl("patch", "configmap", "a", "--namespace="+ns, "--type=merge", "-p", `{"data":{"x":"drifted"}}`)
	w.value("1", ".data.x", "configmap/a", "--namespace="+ns)
	w.MustKubectl("patch", "cer", "paused-2", "--type=merge", "-p", `{"spec":{"lifecycleState":"Active"}}`)
	w.succeeded("paused-2")
	w.value("2", ".data.x", "configmap/a", "--namespace="+ns)
	w.gone("configmap/b", "--namespace="+ns)
}

// failing returns nil if a revision's status lists an object as failing.
func failing(o *unstructured.Unstructured, name string) error {
	phases, _, err := unstructured.NestedSlice(o.Object, "status", "phases")
	if err != nil {
		return err
	}
	for _, phase := range phases {
		list, _, _ := unstructured.NestedSlice(phase.(map[string]any), "failing")
		for _, item := range list {
			if item.(map[string]any)["name"] == name {
				return nil
			}
		}
	}
	return fmt.Errorf("%s is not among the failing objects: %v", name, phases)
}

// refusedByHost: an object that kube-apiserver refuses blocks its whole phase.
func refusedByHost(w sharedPlane) {
	ns := w.namespace("refusedbyhost")
	bad := deployment(ns, "bad", "example.com/image:v1")
	bad["spec"].(map[string]any)["replicas"] = -1
	d := revision("refusedbyhost", 1).
		Phase("first", configMap(ns, "first", "x=1")).
		Phase("second", configMap(ns, "second", "x=1"), bad)
	w.MustKubectlInput(d.String(), "create", "-f", "-")
	w.condition("refusedbyhost-1", "Failing", "True", "Deployment.apps refusedbyhost/bad", "spec.replicas", "must be greater than or equal to 0")
	w.condition("refusedbyhost-1", "Stalled", "True", "Deployment.apps refusedbyhost/bad")
	w.MustKubectl("get", "configmap", "first", "--namespace="+ns)
	w.absent("configmap", "second", "--namespace="+ns)
	w.says(w.read(`.status.phases[?(@.name=="second")].state`, "cer", "refusedbyhost-1"), "Failing")

	good := revision("refusedbyhost", 2).
		Phase("first", configMap(ns, "first", "x=2")).
		Phase("second", configMap(ns, "second", "x=2"), deployment(ns, "bad", "example.com/image:v1"))
	w.roll(good)
	w.value("Archived", ".spec.lifecycleState", "cer/refusedbyhost-1")
	w.value("2", ".data.x", "configmap/first", "configmap/second", "--namespace="+ns)
}

// namespaceMissing: when a user creates the missing namespace, the rollout continues by itself.
func namespaceMissing(w sharedPlane) {
	w.MustKubectlInput(revision("missing", 1).Phase("all", configMap("missing", "a", "x=1")).String(), "create", "-f", "-")
	w.condition("missing-1", "Failing", "True", "ConfigMap missing/a", `namespaces "missing" not found`)
	w.namespace("missing")
	w.succeeded("missing-1")
	w.condition("missing-1", "Failing", "False")
}

// retention: Penstock keeps five archived revisions.
func retention(w sharedPlane) {
	const last = 8
	for n := 1; n <= last; n++ {
		w.roll(revision("retention", n).Phase("all", configMap("default", "retention", fmt.Sprintf("number=%d", n))))
	}
	w.gone("cer/retention-1", "cer/retention-2")
	w.value("Archived", ".spec.lifecycleState", "cer/retention-7")
	names := w.MustKubectl("get", "cer", "--selector=penstock.dev/chain=retention", "-o", "jsonpath={.items[*].metadata.name}")
	if want := "retention-3 retention-4 retention-5 retention-6 retention-7 retention-8"; names != want {
		w.t.Errorf("the revisions are %s, want %s", names, want)
	}
	w.value("8", ".data.number", "configmap/retention", "--namespace=default")
	w.event("retention-1", "Removed", "removed by retention: of the archived revisions the newest 5 are kept")
	w.refused(small("retention", 1).String(), []string{"create", "-f", "-"}, "the next one is 9")
}

// onePhase: Penstock orders objects by kind, so one phase is enough.
func onePhase(w sharedPlane) {
	const ns = "onephase"
	crd := definition("Harbour")
	w.roll(revision("onephase", 1).Phase("all",
		deployment(ns, "server", "example.com/server:v1"), instance("Harbour", ns, "mine"), configMap(ns, "settings", "x=1"),
		crd, manifest("v1", "Namespace", "", ns)))
	w.MustKubectl("get", "harbour/mine", "configmap/settings", "deployment/server", "--namespace="+ns)
	w.says(w.read(".status.phases[*].state", "cer", "onephase-1"), "Available")
	w.MustKubectl("delete", "cer", "onephase-1", poll.TimeoutFlag)
	w.absent("namespace", ns)
	w.absent("crd", "harbours.harbours.example.com")
}

// burst: if several revisions are created at once, the last revision is rolled out.
func burst(w sharedPlane) {
	ns := w.namespace("burst")
	const last = 5
	var all []string
	for n := 1; n <= last; n++ {
		all = append(all, revision("burst", n).Phase("all",
			configMap(ns, "settings", fmt.Sprintf("x=%d", n)), configMap(ns, fmt.Sprintf("only-%d", n), "x=1"),
			deployment(ns, "server", fmt.Sprintf("example.com/server:v%d", n))).String())
	}
	w.MustKubectlInput(strings.Join(all, "\n---\n"), "create", "-f", "-")
	w.succeeded("burst-5")
	w.value("Archived", ".spec.lifecycleState", "cer/burst-1", "cer/burst-2", "cer/burst-3", "cer/burst-4")
	w.gone("configmap/only-1", "configmap/only-2", "configmap/only-3", "configmap/only-4", "--namespace="+ns)
	w.value("5", ".data.x", "configmap/settings", "--namespace="+ns)
	w.MustKubectl("rollout", "status", "deployment/server", "--namespace="+ns, poll.TimeoutFlag)
	w.says(w.read(".spec.template.spec.containers[0].image", "deployment", "server", "--namespace="+ns), "server:v5")
	w.condition("burst-5", "Ready", "True")
}

// kindMissing: when a user installs the missing kind, the rollout continues by itself.
func kindMissing(w sharedPlane) {
	ns := w.namespace("kindmissing")
	w.MustKubectlInput(revision("kindmissing", 1).Phase("all", instance("Raft", ns, "mine"), configMap(ns, "settings", "x=1")).String(), "create", "-f", "-")
	w.condition("kindmissing-1", "Progressing", "True", "Raft.rafts.example.com kindmissing/mine", `the cluster serves no kind "Raft"`)
	w.absent("configmap", "settings", "--namespace="+ns)
	w.MustKubectlInput(definition("Raft").String(), "create", "-f", "-")
	w.succeeded("kindmissing-1")
	w.MustKubectl("get", "raft/mine", "configmap/settings", "--namespace="+ns)
	// Delete the revision first. The definition belongs to the user, who deletes it.
	w.MustKubectl("delete", "cer", "kindmissing-1", poll.TimeoutFlag)
	w.MustKubectl("delete", "crd", "rafts.rafts.example.com", poll.TimeoutFlag)
}

// scope: the error of an object with the wrong scope says so.
func scope(w sharedPlane) {
	ns := w.namespace("scope")
	for name, tc := range map[string]struct {
		object object
		want   string
	}{
		"without": {configMap("", "lost", "x=1"), "metadata.namespace is missing"},
		"with":    {manifest("rbac.authorization.k8s.io/v1", "ClusterRole", ns, "scope"), "must be absent"},
	} {
		extension := "scope-" + name
		w.MustKubectlInput(revision(extension, 1).Phase("all", configMap(ns, extension, "x=1"), tc.object).String(), "create", "-f", "-")
		w.condition(extension+"-1", "Failing", "True", tc.object["kind"].(string), tc.want)
		w.absent("configmap", extension, "--namespace="+ns)
		w.MustKubectl("delete", "cer", extension+"-1", poll.TimeoutFlag)
	}
}
