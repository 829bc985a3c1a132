package e2e_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// collision: the object of somebody else keeps its whole phase back, untouched,
// until he removes it.
func collision(w world) {
	ns := w.namespace("collision")
	in := "--namespace=" + ns
	w.MustKubectlInput(configMap(ns, "taken", "x=theirs").String(), "create", "-f", "-")
	w.MustKubectlInput(revision("collision", 1).
		phase("first", configMap(ns, "first", "x=1")).
		phase("second", configMap(ns, "free", "x=1"), configMap(ns, "taken", "x=1")).
		phase("third", configMap(ns, "third", "x=1")).String(), "create", "-f", "-")
	w.condition("collision-1", "Failing", "True", "ConfigMap collision/taken", "exists already", "was not made by this extension")
	w.MustKubectl("get", "configmap", "first", in)
	w.absent("configmap", "free", in)
	w.absent("configmap", "third", in)
	if x := w.read(".data.x", "configmap", "taken", in); x != "theirs" {
		w.t.Errorf("somebody's object was overwritten: x is %s", x)
	}
	w.says(w.read(`.status.phases[*].state`, "cer", "collision-1"), "Available Failing Pending")
	first := firstLines(w.MustKubectl("describe", "cer", "collision-1"), 24)
	w.says(first, "ConfigMap collision/taken", "exists already")

	w.MustKubectl("delete", "configmap", "taken", in)
	w.succeeded("collision-1")
	w.value("1", ".data.x", "configmap/taken", "configmap/free", "configmap/third", in)
}

// owned makes a ConfigMap whose controller is another one, and returns it.
func (w world) owned(ns, name string) {
	w.t.Helper()
	w.MustKubectlInput(configMap(ns, name+"-owner").String(), "create", "-f", "-")
	o := configMap(ns, name, "x=theirs")
	o["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "name": name + "-owner", "controller": true,
		"uid": w.read(".metadata.uid", "configmap", name+"-owner", "--namespace="+ns),
	}}
	w.MustKubectlInput(o.String(), "create", "-f", "-")
}

// adoption: who asks for it gets objects that exist already.
func adoption(w world) {
	ns := w.namespace("adoption")
	in := "--namespace=" + ns
	w.MustKubectlInput(configMap(ns, "bare", "x=theirs", "old=theirs").String(), "create", "-f", "-")
	w.owned(ns, "controlled")
	d := revision("adoption", 1).phase("all",
		configMap(ns, "bare", "x=1").protected("IfNoController"),
		configMap(ns, "controlled", "x=1").protected("IfNoController"))
	w.MustKubectlInput(d.String(), "create", "-f", "-")
	w.condition("adoption-1", "Failing", "True", "ConfigMap adoption/controlled", `is controlled by ConfigMap "controlled-owner"`)
	w.says(w.read(".data.x", "configmap", "bare", in), "theirs")
	w.MustKubectl("delete", "configmap", "controlled", in)
	w.succeeded("adoption-1")
	w.event("adoption-1", "Adopted", "ConfigMap adoption/bare")
	w.value("1", ".data.x", "configmap/bare", "configmap/controlled", in)
	w.value("adoption", `.metadata.labels.penstock\.dev/chain`, "configmap/bare", in)

	// None takes it from anyone.
	w.owned(ns, "held")
	w.roll(revision("adoption-all", 1).phase("all", configMap(ns, "held", "x=1")).with("collisionProtection", "None"))
	w.event("adoption-all-1", "Adopted", "ConfigMap adoption/held")
	w.value("1", ".data.x", "configmap/held", in)
}

// sharing: of two extensions with the same object the first has it.
func sharing(w world) {
	ns := w.namespace("sharing")
	in := "--namespace=" + ns
	w.roll(revision("sharing-a", 1).phase("all", configMap(ns, "shared", "x=a")))
	w.MustKubectlInput(revision("sharing-b", 1).phase("all", configMap(ns, "own", "x=b"), configMap(ns, "shared", "x=b")).
		with("collisionProtection", "IfNoController").String(), "create", "-f", "-")
	w.condition("sharing-b-1", "Failing", "True", "ConfigMap sharing/shared", `belongs to the extension "sharing-a"`)
	w.condition("sharing-a-1", "Ready", "True")
	w.says(w.read(".data.x", "configmap", "shared", in), "a")
	w.absent("configmap", "own", in)

	w.MustKubectl("delete", "cer", "sharing-a-1", timeout)
	w.succeeded("sharing-b-1")
	w.value("b", ".data.x", "configmap/shared", "configmap/own", in)
	w.value("sharing-b", `.metadata.labels.penstock\.dev/chain`, "configmap/shared", in)
}

// teardown goes in reverse: what was rolled out later is gone before what it
// needs goes.
func teardown(w world) {
	ns := w.namespace("teardown")
	in := "--namespace=" + ns
	last := configMap(ns, "last", "x=1")
	w.roll(revision("teardown", 1).
		phase("first", configMap(ns, "first", "x=1")).
		phase("second", configMap(ns, "second", "x=1")).
		phase("third", last))
	w.MustKubectl("patch", "configmap", "second", in, "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`)
	w.MustKubectl("delete", "cer", "teardown-1", "--wait=false")
	w.gone("configmap/last", in)
	w.until(configMaps(), ns, "second", func(o *unstructured.Unstructured) error {
		if o.GetDeletionTimestamp() == nil {
			return fmt.Errorf("it is not being deleted")
		}
		return nil
	})
	w.condition("teardown-1", "Progressing", "True", "2 objects are still to go", "ConfigMap teardown/second", "finalizers")
	w.says(w.MustKubectl("get", "cer", "teardown-1", "--no-headers"), "Deleting")
	if when := w.read(".metadata.deletionTimestamp", "configmap", "first", in); when != "" {
		w.t.Errorf("the first is being deleted before the second is gone, since %s", when)
	}
	w.MustKubectl("patch", "configmap", "second", in, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	w.gone("cer/teardown-1")
	w.absent("configmap", "first", in)
	w.absent("configmap", "second", in)
}

// orphan leaves everything running, without our marks.
func orphan(w world) {
	ns := w.namespace("orphan")
	in := "--namespace=" + ns
	draft := func(number int) draft {
		return revision("orphan", number).phase("all", configMap(ns, "settings", "x=1"), deployment(ns, "server", "example.com/server:v1"))
	}
	w.roll(draft(1))
	uid := w.read(".metadata.uid", "deployment", "server", in)
	pods := w.read(".items[*].metadata.uid", "pods", in)
	w.MustKubectl("delete", "cer", "orphan-1", "--cascade=orphan", timeout)
	if got := w.read(".metadata.uid", "deployment", "server", in); got != uid {
		w.t.Errorf("the Deployment is another: %s, was %s", got, uid)
	}
	if got := w.read(".items[*].metadata.uid", "pods", in); got != pods || pods == "" {
		w.t.Errorf("the Pods are others: %q, were %q", got, pods)
	}
	for _, name := range []string{"configmap/settings", "deployment/server"} {
		out := w.MustKubectl("get", name, in, "-o", "yaml", "--show-managed-fields")
		for _, mark := range []string{"penstock.dev/", "manager: penstock"} {
			if strings.Contains(out, mark) {
				w.t.Errorf("%s has %s left:\n%s", name, mark, out)
			}
		}
	}
	// They are as anybody's now: taken back only by who asks for it.
	w.MustKubectlInput(draft(2).String(), "create", "-f", "-")
	w.condition("orphan-2", "Failing", "True", "exists already")
	w.MustKubectl("delete", "cer", "orphan-2", timeout)
	w.roll(draft(3).with("collisionProtection", "IfNoController"))
	if got := w.read(".metadata.uid", "deployment", "server", in); got != uid {
		w.t.Errorf("the Deployment is another: %s, was %s", got, uid)
	}
	w.MustKubectl("delete", "cer", "orphan-3", timeout)
	w.absent("deployment", "server", in)
}

// acknowledged: a definition takes its instances along only when somebody says
// so.
func acknowledged(w world) {
	ns := w.namespace("acknowledged")
	w.roll(revision("acknowledged", 1).phase("crds", definition("Anchor")).phase("deploy", configMap(ns, "settings", "x=1")))
	w.MustKubectlInput(instance("Anchor", ns, "mine").String(), "create", "-f", "-")
	w.MustKubectl("delete", "cer", "acknowledged-1", "--wait=false")
	w.condition("acknowledged-1", "Failing", "True", "CustomResourceDefinition.apiextensions.k8s.io anchors.anchors.example.com", "acknowledged/mine", "acknowledge it")
	w.MustKubectl("get", "anchor", "mine", "--namespace="+ns)
	// Nothing has gone: who serves the instances is needed until they are gone.
	w.MustKubectl("get", "configmap", "settings", "--namespace="+ns)
	w.MustKubectl("annotate", "cer", "acknowledged-1", "penstock.dev/allow-crd-deletion=anchors.anchors.example.com")
	w.gone("cer/acknowledged-1")
	w.absent("crd", "anchors.anchors.example.com")
}

// instanceGone: or when there are none any more.
func instanceGone(w world) {
	ns := w.namespace("instancegone")
	w.roll(revision("instancegone", 1).phase("crds", definition("Buoy")))
	w.MustKubectlInput(instance("Buoy", ns, "mine").String(), "create", "-f", "-")
	w.MustKubectl("delete", "cer", "instancegone-1", "--wait=false")
	w.condition("instancegone-1", "Failing", "True", "instancegone/mine")
	w.MustKubectl("delete", "buoy", "mine", "--namespace="+ns)
	w.gone("cer/instancegone-1")
	w.absent("crd", "buoys.buoys.example.com")
}

// probes of the spec gate the next phase.
func probes(w world) {
	ns := w.namespace("probes")
	in := "--namespace=" + ns
	kind := func(group, kind string) map[string]any {
		return map[string]any{"groupKind": map[string]any{"group": group, "kind": kind}}
	}
	probe := func(selector map[string]any, assertion string, content map[string]any) map[string]any {
		return map[string]any{"selector": selector, "assertions": []any{map[string]any{assertion: content}}}
	}
	lamp := instance("Lamp", ns, "lamp")
	lamp["spec"] = map[string]any{"watts": 40}
	labelled := configMap(ns, "labelled", "x=1")
	labelled["metadata"].(map[string]any)["labels"] = map[string]any{"gate": "yes"}
	d := revision("probes", 1).
		phase("crds", definition("Lamp")).
		phase("condition", lamp).
		phase("value", configMap(ns, "value", "x=1")).
		phase("cel", labelled).
		phase("last", configMap(ns, "last", "x=1")).
		with("progressionProbes", []any{
			probe(kind("lamps.example.com", "Lamp"), "conditionEqual", map[string]any{"type": "Lit", "status": "True"}),
			probe(kind("lamps.example.com", "Lamp"), "fieldsEqual", map[string]any{"fieldA": "spec.watts", "fieldB": "status.watts"}),
			probe(map[string]any{"groupKind": map[string]any{"group": "", "kind": "ConfigMap"},
				"labelSelector": map[string]any{"matchLabels": map[string]any{"approved": "no"}}}, "fieldValue", map[string]any{"fieldPath": "data.gate", "value": "open"}),
			probe(map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{"gate": "yes"}}}, "cel",
				map[string]any{"expression": "has(self.data.approved) && self.data.approved == 'by-me'", "message": "somebody has to approve it"}),
		})
	d.phases[2].(map[string]any)["objects"].([]any)[0].(map[string]any)["object"].(object)["metadata"].(map[string]any)["labels"] = map[string]any{"approved": "no"}
	w.MustKubectlInput(d.String(), "create", "-f", "-")

	status := func(content string) {
		w.t.Helper()
		w.MustKubectl("patch", "lamp", "lamp", in, "--subresource=status", "--type=merge", "-p", `{"status":`+content+`}`)
	}
	lit := func(watts int, status, message string) string {
		return fmt.Sprintf(`{"watts":%d,"conditions":[{"type":"Lit","status":%q,"observedGeneration":1,"lastTransitionTime":"2026-01-01T00:00:00Z","reason":"Seen","message":%q}]}`,
			watts, status, message)
	}
	w.condition("probes-1", "Progressing", "True", "phase condition", "Lamp.lamps.example.com probes/lamp", "status.watts is not set")
	w.absent("configmap", "value", in)
	status(lit(40, "False", "no oil"))
	w.condition("probes-1", "Progressing", "True", "Lamp.lamps.example.com probes/lamp", "Lit", "no oil")
	status(lit(30, "True", ""))
	w.condition("probes-1", "Progressing", "True", "Lamp.lamps.example.com probes/lamp", "spec.watts", "status.watts")
	w.absent("configmap", "value", in)
	status(lit(40, "True", ""))

	w.condition("probes-1", "Progressing", "True", "phase value", "ConfigMap probes/value", "data.gate")
	w.absent("configmap", "labelled", in)
	w.MustKubectl("patch", "configmap", "value", in, "--type=merge", "-p", `{"data":{"gate":"open"}}`)

	w.condition("probes-1", "Progressing", "True", "phase cel", "ConfigMap probes/labelled", "somebody has to approve it")
	w.absent("configmap", "last", in)
	w.MustKubectl("patch", "configmap", "labelled", in, "--type=merge", "-p", `{"data":{"approved":"by-me"}}`)
	w.succeeded("probes-1")
	w.MustKubectl("get", "configmap", "last", in)

	// Behind the rollout a probe tells of Available.
	w.MustKubectl("patch", "configmap", "value", in, "--type=merge", "-p", `{"data":{"gate":"shut"}}`)
	w.condition("probes-1", "Available", "False", "ConfigMap probes/value")
	w.condition("probes-1", "Progressing", "False")
	w.MustKubectl("patch", "configmap", "value", in, "--type=merge", "-p", `{"data":{"gate":"open"}}`)
	w.condition("probes-1", "Ready", "True")
}
