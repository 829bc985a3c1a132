//go:build integration

package e2e_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// additions: fields that a user adds stay, also through upgrades.
func additions(w sharedPlane) {
	ns := w.namespace("additions")
	draft := func(number int) draft {
		return revision("additions", number).Phase("all", deployment(ns, "server", fmt.Sprintf("example.com/server:v%d", number)))
	}
	w.roll(draft(1))
	in := "--namespace=" + ns
	w.MustKubectl("label", "deployment", "server", in, "team=blue")
	w.MustKubectl("annotate", "deployment", "server", in, "example.com/note=mine")
	w.MustKubectl("rollout", "restart", "deployment/server", in)
	w.MustKubectl("set", "env", "deployment/server", in, "COLOUR=red")
	w.MustKubectl("rollout", "status", "deployment/server", in, poll.TimeoutFlag)
	kept := func() {
		w.t.Helper()
		out := w.MustKubectl("get", "deployment", "server", in, "-o", "yaml")
		w.says(out, "team: blue", "example.com/note: mine", "kubectl.kubernetes.io/restartedAt:", "name: COLOUR")
	}
	w.condition("additions-1", "Ready", "True")
	kept()
	w.roll(draft(2))
	w.MustKubectl("rollout", "status", "deployment/server", in, poll.TimeoutFlag)
	w.says(w.read(".spec.template.spec.containers[0].image", "deployment", "server", in), "server:v2")
	kept()

	// Penstock repairs its own fields next to them.
	w.MustKubectl("set", "image", "deployment/server", in, "main=example.com/server:hacked")
	w.event("additions-2", "Repaired", "Deployment.apps additions/server", "image", "was changed by kubectl-set")
	w.until(deployments(), ns, "server", func(o *unstructured.Unstructured) error {
		if text := fmt.Sprint(o.Object["spec"]); !strings.Contains(text, "example.com/server:v2") {
			return fmt.Errorf("spec is %s", text)
		}
		return nil
	})
	kept()
}

// replaced: a new object of the same name belongs to another owner, even if it is a copy.
func replaced(w sharedPlane) {
	ns := w.namespace("replaced")
	w.roll(revision("replaced", 1).Phase("all", configMap(ns, "a", "x=1")))
	in := "--namespace=" + ns
	w.MustKubectl("patch", "cer", "replaced-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Paused"}}`)
	w.condition("replaced-1", "Progressing", "False", "paused")
	w.MustKubectl("delete", "configmap", "a", in)
	w.MustKubectlInput(configMap(ns, "a", "x=theirs").String(), "create", "-f", "-")
	w.MustKubectl("patch", "cer", "replaced-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Active"}}`)
	w.condition("replaced-1", "Failing", "True", "ConfigMap replaced/a", "was replaced or taken over")
	if x := w.read(".data.x", "configmap", "a", in); x != "theirs" {
		w.t.Errorf("another owner's object was overwritten: x is %s", x)
	}
	// Deleting the revision leaves the object.
	w.MustKubectl("delete", "cer", "replaced-1", poll.TimeoutFlag)
	w.MustKubectl("get", "configmap", "a", in)
}

// namespaceDeleted: a user deletes a namespace and all objects in it. Penstock creates all of them
// again.
func namespaceDeleted(w sharedPlane) {
	const ns = "namespacedeleted"
	in := "--namespace=" + ns
	w.roll(revision("namespacedeleted", 1).
		Phase("namespace", manifest("v1", "Namespace", "", ns)).
		Phase("configuration", configMap(ns, "settings", "x=1"), secret(ns, "password", "hunter2")).
		Phase("deploy", deployment(ns, "server", "example.com/server:v1")))
	uid := w.read(".metadata.uid", "namespace", ns)
	w.MustKubectl("delete", "namespace", ns, "--wait=false")
	w.until(namespaces(), "", ns, func(o *unstructured.Unstructured) error {
		if string(o.GetUID()) == uid {
			return fmt.Errorf("it is the same namespace")
		}
		return nil
	})
	// Writes failed while the namespace was being deleted. Penstock retries them at growing
	// intervals.
	for _, name := range []string{"deployment/server", "configmap/settings", "secret/password"} {
		w.MustKubectl("wait", "--for=create", name, in, poll.TimeoutFlag)
	}
	w.MustKubectl("wait", "--for=condition=Available", "deployment/server", in, poll.TimeoutFlag)
	w.condition("namespacedeleted-1", "Ready", "True")
	w.event("namespacedeleted-1", "Recreated", "Namespace "+ns)
}

// kindDeleted: a user deletes a definition and its instances. Penstock creates them again.
func kindDeleted(w sharedPlane) {
	ns := w.namespace("kinddeleted")
	w.roll(revision("kinddeleted", 1).Phase("crds", definition("Pier")).Phase("piers", instance("Pier", ns, "mine")).Phase("last", configMap(ns, "last", "x=1")))
	uid := w.read(".metadata.uid", "pier", "mine", "--namespace="+ns)
	w.MustKubectl("delete", "crd", "piers.piers.example.com")
	w.event("kinddeleted-1", "Recreated", "CustomResourceDefinition.apiextensions.k8s.io piers.piers.example.com")
	w.condition("kinddeleted-1", "Ready", "True")
	w.eventually(func() (string, string) {
		out := w.Kubectl("get", "pier", "mine", "--namespace="+ns, "-o", "jsonpath={.metadata.uid}")
		return out.Stdout, out.Stderr
	}, func(now string) bool { return now != "" && now != uid })
	w.condition("kinddeleted-1", "Ready", "True")
}
