//go:build integration

package e2e_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// drift: whatever someone does to what was rolled out is undone, and an event
// says what it was and who.
func drift(w sharedPlane) {
	ns := w.namespace("drift")
	meddle := map[string]struct {
		do     func(name string)
		reason string
		says   []string
	}{
		"field": {
			do: func(name string) {
				w.MustKubectl("patch", "configmap", name, "--namespace="+ns, "--field-manager=mallory", "--type=merge", "-p", `{"data":{"x":"other"}}`)
			},
			reason: "Repaired", says: []string{".data.x was changed by mallory"},
		},
		"forced": {
			do: func(name string) {
				w.MustKubectlInput(configMap(ns, name, "x=other", "y=more").String(), "apply", "--server-side", "--force-conflicts", "--field-manager=gitops", "-f", "-")
			},
			reason: "Repaired", says: []string{".data.x was changed by gitops"},
		},
		"removed": {
			do: func(name string) {
				w.MustKubectl("patch", "configmap", name, "--namespace="+ns, "--type=json", "-p", `[{"op":"remove","path":"/data/x"}]`)
			},
			reason: "Repaired", says: []string{".data.x was removed"},
		},
		"deleted": {
			do:     func(name string) { w.MustKubectl("delete", "configmap", name, "--namespace="+ns) },
			reason: "Recreated", says: []string{"someone had deleted"},
		},
		"unlabelled": {
			do:     func(name string) { w.MustKubectl("label", "configmap", name, "--namespace="+ns, "penstock.dev/chain-") },
			reason: "Repaired", says: []string{".metadata.labels.penstock.dev/chain was removed"},
		},
		"relabelled": {
			do: func(name string) {
				w.MustKubectl("label", "configmap", name, "--namespace="+ns, "team-")
			},
			reason: "Repaired", says: []string{".metadata.labels.team was removed"},
		},
		"unmarked": {
			do: func(name string) {
				w.MustKubectl("annotate", "configmap", name, "--namespace="+ns, "penstock.dev/applied-")
			},
			reason: "Repaired", says: []string{".metadata.annotations.penstock.dev/applied was removed"},
		},
		"unmanaged": {
			do: func(name string) {
				w.MustKubectl("patch", "configmap", name, "--namespace="+ns, "--type=merge", "-p", `{"metadata":{"managedFields":[{}]},"data":{"x":"other"}}`)
			},
			reason: "Repaired", says: []string{".data.x was changed, and no field manager owns it"},
		},
	}
	d := revision("drift", 1)
	var objects []object
	for name := range meddle {
		o := configMap(ns, name, "x=1", "z=1")
		o["metadata"].(map[string]any)["labels"] = map[string]any{"team": "red"}
		o["metadata"].(map[string]any)["annotations"] = map[string]any{"example.com/note": "ours"}
		objects = append(objects, o)
	}
	w.roll(d.Phase("all", objects...))
	for name, m := range meddle {
		m.do(name)
		w.until(configMaps(), ns, name, asRolledOut)
		w.event("drift-1", m.reason, append(m.says, "ConfigMap drift/"+name)...)
	}
	w.condition("drift-1", "Ready", "True")
	w.says(w.MustKubectl("describe", "cer", "drift-1"), "repaired ConfigMap drift/field: .data.x was changed by mallory")
	w.says(w.MustKubectl("events", "--for=clusterextensionrevision/drift-1"), "Warning", "Repaired", "Recreated", "ConfigMap drift/deleted")
	if x := w.read(".data.y", "configmap", "forced", "--namespace="+ns); x != "more" {
		w.t.Errorf("a field that is not ours was removed: y is %q", x)
	}
}

// asRolledOut is nil for a ConfigMap of drift that is as its manifest says.
func asRolledOut(o *unstructured.Unstructured) error {
	x, _, _ := unstructured.NestedString(o.Object, "data", "x")
	switch {
	case x != "1":
		return fmt.Errorf("x is %q, want 1", x)
	case o.GetLabels()["penstock.dev/chain"] != "drift":
		return fmt.Errorf("it has labels %v", o.GetLabels())
	case o.GetLabels()["team"] != "red":
		return fmt.Errorf("it has labels %v", o.GetLabels())
	case !strings.HasPrefix(o.GetAnnotations()["penstock.dev/applied"], "sha256:"):
		return fmt.Errorf("it has annotations %v", o.GetAnnotations())
	}
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == "penstock/drift" && entry.Operation == "Apply" {
			return nil
		}
	}
	return fmt.Errorf("we manage no field of it: %v", o.GetManagedFields())
}

// additions: what a user adds beside what we apply stays theirs, over upgrades too.
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

	// What we do apply is repaired beside them.
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

// replaced: another object under the same name is somebody else's, whatever it
// was copied from.
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
		w.t.Errorf("somebody's object was overwritten: x is %s", x)
	}
	// A delete leaves it alone.
	w.MustKubectl("delete", "cer", "replaced-1", poll.TimeoutFlag)
	w.MustKubectl("get", "configmap", "a", in)
}

// namespaceDeleted: what takes everything along is made again, with everything.
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
	// Attempts that failed while it was going are repeated at growing intervals.
	for _, name := range []string{"deployment/server", "configmap/settings", "secret/password"} {
		w.MustKubectl("wait", "--for=create", name, in, poll.TimeoutFlag)
	}
	w.MustKubectl("wait", "--for=condition=Available", "deployment/server", in, poll.TimeoutFlag)
	w.condition("namespacedeleted-1", "Ready", "True")
	w.event("namespacedeleted-1", "Recreated", "Namespace "+ns)
}

// kindDeleted: so are a definition and its instances.
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
