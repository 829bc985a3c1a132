//go:build integration

package e2e_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// owned creates a ConfigMap with another ConfigMap as its controller.
func (w sharedPlane) owned(ns, name string) {
	w.t.Helper()
	w.MustKubectlInput(configMap(ns, name+"-owner").String(), "create", "-f", "-")
	o := configMap(ns, name, "x=theirs")
	o["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "name": name + "-owner", "controller": true,
		"uid": w.read(".metadata.uid", "configmap", name+"-owner", "--namespace="+ns),
	}}
	w.MustKubectlInput(o.String(), "create", "-f", "-")
}

// adoption: a revision that asks for adoption takes over existing objects.
func adoption(w sharedPlane) {
	ns := w.namespace("adoption")
	in := "--namespace=" + ns
	w.MustKubectlInput(configMap(ns, "bare", "x=theirs", "old=theirs").String(), "create", "-f", "-")
	w.owned(ns, "controlled")
	d := revision("adoption", 1).Phase("all",
		configMap(ns, "bare", "x=1").Protected("IfNoController"),
		configMap(ns, "controlled", "x=1").Protected("IfNoController"))
	w.MustKubectlInput(d.String(), "create", "-f", "-")
	w.condition("adoption-1", "Failing", "True", "ConfigMap adoption/controlled", `is controlled by ConfigMap "controlled-owner"`)
	w.says(w.read(".data.x", "configmap", "bare", in), "theirs")
	w.MustKubectl("delete", "configmap", "controlled", in)
	w.succeeded("adoption-1")
	w.event("adoption-1", "Adopted", "ConfigMap adoption/bare")
	w.value("1", ".data.x", "configmap/bare", "configmap/controlled", in)
	w.value("adoption", `.metadata.labels.penstock\.dev/chain`, "configmap/bare", in)

	// collisionProtection None takes an object over from any owner.
	w.owned(ns, "held")
	w.MustKubectlInput(configMap(ns, "plain", "x=theirs").String(), "create", "-f", "-")
	w.roll(revision("adoption-all", 1).Phase("all", configMap(ns, "held", "x=1"), configMap(ns, "plain", "x=1")).With("collisionProtection", "None"))
	w.event("adoption-all-1", "Adopted", "ConfigMap adoption/held")
	w.value("1", ".data.x", "configmap/held", in)

	// The teardown leaves adopted objects and deletes created objects.
	w.MustKubectl("delete", "cer", "adoption-1", poll.TimeoutFlag)
	w.absent("configmap", "controlled", in)
	if left := w.MustKubectl("get", "configmap", "bare", in, "-o", "yaml", "--show-managed-fields"); strings.Contains(left, "penstock") {
		w.t.Errorf("the object that is left has our marks:\n%s", left)
	}
	w.MustKubectl("patch", "cer", "adoption-all-1", "--type=merge", "-p", `{"spec":{"adoptedTeardownPolicy":"Delete"}}`)
	w.MustKubectl("delete", "cer", "adoption-all-1", poll.TimeoutFlag)
	w.absent("configmap", "plain", in)
	// Penstock does not delete an object that has another controller.
	w.MustKubectl("get", "configmap", "held", in)
}

// sharing: if two extensions list the same object, it belongs to the first.
func sharing(w sharedPlane) {
	ns := w.namespace("sharing")
	in := "--namespace=" + ns
	w.roll(revision("sharing-a", 1).Phase("all", configMap(ns, "shared", "x=a")))
	w.MustKubectlInput(revision("sharing-b", 1).Phase("all", configMap(ns, "own", "x=b"), configMap(ns, "shared", "x=b")).
		With("collisionProtection", "IfNoController").String(), "create", "-f", "-")
	w.condition("sharing-b-1", "Failing", "True", "ConfigMap sharing/shared", `belongs to the extension "sharing-a"`)
	w.condition("sharing-a-1", "Ready", "True")
	w.says(w.read(".data.x", "configmap", "shared", in), "a")
	w.absent("configmap", "own", in)

	w.MustKubectl("delete", "cer", "sharing-a-1", poll.TimeoutFlag)
	w.succeeded("sharing-b-1")
	w.value("b", ".data.x", "configmap/shared", "configmap/own", in)
	w.value("sharing-b", `.metadata.labels.penstock\.dev/chain`, "configmap/shared", in)
}

// controlled: our object gets another object as its controller. When the revision is deleted, the
// object stays with its controller.
func controlled(w sharedPlane) {
	ns := w.namespace("controlled")
	in := "--namespace=" + ns
	w.roll(revision("controlled", 1).Phase("all", configMap(ns, "a", "x=1"), configMap(ns, "b", "x=1")))
	w.MustKubectlInput(configMap(ns, "owner").String(), "create", "-f", "-")
	own := func(name, uid string) {
		w.t.Helper()
		w.MustKubectl("patch", "configmap", name, in, "--type=merge", "-p", fmt.Sprintf(
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","controller":true,"uid":%q}]}}`, uid))
	}
	// The controller does not exist, so Kubernetes' garbage collector deletes the object. Penstock
	// creates it again.
	uid := w.read(".metadata.uid", "configmap", "b", in)
	own("b", "00000000-0000-0000-0000-000000000000")
	w.until(configMaps(), ns, "b", func(o *unstructured.Unstructured) error {
		if string(o.GetUID()) == uid {
			return fmt.Errorf("the object is still the same")
		}
		return nil
	})
	w.event("controlled-1", "Recreated", "ConfigMap controlled/b")
	w.condition("controlled-1", "Ready", "True")

	own("a", w.read(".metadata.uid", "configmap", "owner", in))
	w.MustKubectl("delete", "cer", "controlled-1", poll.TimeoutFlag)
	w.event("controlled-1", "Left", "ConfigMap controlled/a", `is controlled by ConfigMap "owner"`)
	w.MustKubectl("get", "configmap", "a", in)
	w.absent("configmap", "b", in)
}
