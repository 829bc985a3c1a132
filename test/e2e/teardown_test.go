//go:build integration

package e2e_test

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// orphan: the objects keep running without Penstock's marks.
func orphan(w sharedPlane) {
	ns := w.namespace("orphan")
	in := "--namespace=" + ns
	draft := func(number int) draft {
		return revision("orphan", number).Phase("all", configMap(ns, "settings", "x=1"), deployment(ns, "server", "example.com/server:v1"))
	}
	w.roll(draft(1))
	uid := w.read(".metadata.uid", "deployment", "server", in)
	pods := w.read(".items[*].metadata.uid", "pods", in)
	w.MustKubectl("delete", "cer", "orphan-1", "--cascade=orphan", poll.TimeoutFlag)
	if got := w.read(".metadata.uid", "deployment", "server", in); got != uid {
		w.t.Errorf("the Deployment was replaced: UID %s, was %s", got, uid)
	}
	if got := w.read(".items[*].metadata.uid", "pods", in); got != pods || pods == "" {
		w.t.Errorf("the Pods were replaced: UIDs %q, were %q", got, pods)
	}
	for _, name := range []string{"configmap/settings", "deployment/server"} {
		out := w.MustKubectl("get", name, in, "-o", "yaml", "--show-managed-fields")
		for _, mark := range []string{"penstock.dev/", "manager: penstock"} {
			if strings.Contains(out, mark) {
				w.t.Errorf("%s has %s left:\n%s", name, mark, out)
			}
		}
	}
	// The objects have no owner now. Only a revision that asks for adoption takes them.
	w.MustKubectlInput(draft(2).String(), "create", "-f", "-")
	w.condition("orphan-2", "Failing", "True", "exists already")
	w.MustKubectl("delete", "cer", "orphan-2", poll.TimeoutFlag)
	w.roll(draft(3).With("collisionProtection", "IfNoController").With("adoptedTeardownPolicy", "Delete"))
	if got := w.read(".metadata.uid", "deployment", "server", in); got != uid {
		w.t.Errorf("the Deployment was replaced: UID %s, was %s", got, uid)
	}
	w.MustKubectl("delete", "cer", "orphan-3", poll.TimeoutFlag)
	w.absent("deployment", "server", in)
}

// acknowledged: a definition with instances is deleted only after an acknowledgement.
func acknowledged(w sharedPlane) {
	ns := w.namespace("acknowledged")
	w.roll(revision("acknowledged", 1).Phase("crds", definition("Anchor")).Phase("deploy", configMap(ns, "settings", "x=1")))
	w.MustKubectlInput(instance("Anchor", ns, "mine").String(), "create", "-f", "-")
	w.MustKubectl("delete", "cer", "acknowledged-1", "--wait=false")
	w.condition("acknowledged-1", "Failing", "True", "CustomResourceDefinition.apiextensions.k8s.io anchors.anchors.example.com", "acknowledged/mine", "acknowledge their deletion")
	w.MustKubectl("get", "anchor", "mine", "--namespace="+ns)
	// Nothing is deleted: the objects that serve the instances are needed until the instances are
	// deleted.
	w.MustKubectl("get", "configmap", "settings", "--namespace="+ns)
	w.MustKubectl("annotate", "cer", "acknowledged-1", "penstock.dev/allow-crd-deletion=anchors.anchors.example.com")
	w.gone("cer/acknowledged-1")
	w.absent("crd", "anchors.anchors.example.com")
}

// acknowledge runs the command in the revision's status that acknowledges a deletion.
func (w sharedPlane) acknowledge(name string, says ...string) {
	w.t.Helper()
	w.condition(name, "Stalled", "True", append(says, "acknowledge-deletion=")...)
	message := w.read(`.status.conditions[?(@.type=="Stalled")].message`, "cer", name)
	_, command, _ := strings.Cut(message, ": kubectl ")
	w.MustKubectl(strings.Fields(command)...)
}

// instanceGone: a definition is deleted without an acknowledgement once it has no instances.
func instanceGone(w sharedPlane) {
	ns := w.namespace("instancegone")
	w.roll(revision("instancegone", 1).Phase("crds", definition("Buoy")))
	w.MustKubectlInput(instance("Buoy", ns, "mine").String(), "create", "-f", "-")
	w.MustKubectl("delete", "cer", "instancegone-1", "--wait=false")
	w.condition("instancegone-1", "Failing", "True", "instancegone/mine")
	w.MustKubectl("delete", "buoy", "mine", "--namespace="+ns)
	w.gone("cer/instancegone-1")
	w.absent("crd", "buoys.buoys.example.com")
}

// foreground: Kubernetes' garbage collector does foreground deletion, and it knows our kind.
func foreground(w sharedPlane) {
	ns := w.namespace("foreground")
	w.roll(revision("foreground", 1).Phase("all", configMap(ns, "a", "x=1")))
	// An object of the user has the revision as its owner.
	mine := configMap(ns, "mine")
	mine["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
		"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtensionRevision", "name": "foreground-1",
		"uid": w.read(".metadata.uid", "cer", "foreground-1"), "blockOwnerDeletion": true,
	}}
	w.MustKubectlInput(mine.String(), "create", "-f", "-")
	w.MustKubectl("delete", "cer", "foreground-1", "--cascade=foreground", poll.TimeoutFlag)
	w.absent("configmap", "a", "--namespace="+ns)
	w.absent("configmap", "mine", "--namespace="+ns)
}

// unfinished: the teardown of an unfinished rollout deletes the objects written so far.
func unfinished(w sharedPlane) {
	ns := w.namespace("unfinished")
	w.MustKubectlInput(revision("unfinished", 1).
		Phase("first", configMap(ns, "first", "x=1")).
		Phase("second", deployment(ns, "stuck", "registry.invalid/stuck:v1")).
		Phase("third", configMap(ns, "third", "x=1")).String(), "create", "-f", "-")
	w.condition("unfinished-1", "Progressing", "True", "phase second (2 of 3)", "Deployment.apps unfinished/stuck")
	w.absent("configmap", "third", "--namespace="+ns)
	w.MustKubectl("delete", "cer", "unfinished-1", poll.TimeoutFlag)
	w.absent("configmap", "first", "--namespace="+ns)
	w.absent("deployment", "stuck", "--namespace="+ns)
}

// deletedStuck: deleting a stuck upgrade returns its objects to the revision before, as archiving
// does.
func deletedStuck(w sharedPlane) {
	ns := w.namespace("deletedstuck")
	in := "--namespace=" + ns
	draft := func(number int, image string) draft {
		return revision("deletedstuck", number).
			Phase("first", configMap(ns, "settings", fmt.Sprintf("x=%d", number)), configMap(ns, fmt.Sprintf("only-%d", number), "x=1")).
			Phase("second", deployment(ns, "server", image))
	}
	w.roll(draft(1, "example.com/server:v1"))
	w.MustKubectlInput(draft(2, "registry.invalid/server:v2").String(), "create", "-f", "-")
	w.condition("deletedstuck-2", "Progressing", "True", "Deployment.apps deletedstuck/server")
	w.value("2", ".data.x", "configmap/settings", in)
	w.MustKubectl("get", "configmap/only-1", "configmap/only-2", in)
	w.MustKubectl("delete", "cer", "deletedstuck-2", poll.TimeoutFlag)
	w.value("1", ".data.x", "configmap/settings", in)
	w.gone("configmap/only-2", in)
	w.condition("deletedstuck-1", "Ready", "True")
	w.says(w.read(".spec.template.spec.containers[0].image", "deployment", "server", in), "server:v1")
}

// archivedEarly: the newest revision lists an object and has not reached it yet. The object is not
// deleted with the revision before.
func archivedEarly(w sharedPlane) {
	ns := w.namespace("archivedearly")
	in := "--namespace=" + ns
	draft := func(number int, image string) draft {
		return revision("archivedearly", number).
			Phase("first", deployment(ns, "server", image)).
			Phase("second", configMap(ns, "settings", fmt.Sprintf("x=%d", number)))
	}
	one := draft(1, "example.com/server:v1").Phase("third", configMap(ns, "only-1", "x=1"))
	w.roll(one)
	w.MustKubectlInput(draft(2, "registry.invalid/server:v2").String(), "create", "-f", "-")
	w.condition("archivedearly-2", "Progressing", "True", "Deployment.apps archivedearly/server")
	w.MustKubectl("patch", "cer", "archivedearly-1", "--type=merge", "-p", `{"spec":{"lifecycleState":"Archived"}}`)
	w.gone("configmap/only-1", in)
	w.condition("archivedearly-1", "Progressing", "True", "ConfigMap archivedearly/settings", "until the revision that lists the object now reaches it")
	if x := w.read(".data.x", "configmap", "settings", in); x != "1" {
		w.t.Errorf("x is %s: the second phase has not been reached", x)
	}
	w.roll(draft(3, "example.com/server:v3"))
	w.value("3", ".data.x", "configmap/settings", in)
	w.condition("archivedearly-1", "Progressing", "False")
	w.value("Archived", ".spec.lifecycleState", "cer/archivedearly-2")
}

// deletedTogether: a user deletes all revisions of an extension while retention deletes the oldest.
// One request gets NotFound, and all other deletions succeed.
func deletedTogether(w sharedPlane) {
	const last = 6
	ns := w.namespace("together")
	for n := 1; n <= last; n++ {
		w.roll(revision("together", n).Phase("first", configMap(ns, "first", fmt.Sprintf("number=%d", n))).Phase("second", configMap(ns, "second", "x=1")))
	}
	// The seventh revision archives the sixth. Then there are too many archived revisions.
	w.MustKubectlInput(revision("together", last+1).Phase("first", configMap(ns, "first", "number=7")).Phase("second", configMap(ns, "second", "x=1")).String(), "create", "-f", "-")
	w.value("Archived", ".spec.lifecycleState", "cer/together-6")
	args := []string{"delete", "cer"}
	for n := 1; n <= last+1; n++ {
		args = append(args, fmt.Sprintf("together-%d", n))
	}
	if out := w.Kubectl(append(args, poll.TimeoutFlag)...); out.ExitCode != 0 && (strings.Count(out.Stderr, "Error") != 1 || !strings.Contains(out.Stderr, `"together-1" not found`)) {
		w.t.Errorf("an error besides the deleted object: %s", out)
	}
	// After the error kubectl deletes the other revisions, but does not wait for them.
	for n := 1; n <= last+1; n++ {
		w.gone(fmt.Sprintf("cer/together-%d", n))
	}
	w.absent("configmap", "first", "--namespace="+ns)
	w.absent("configmap", "second", "--namespace="+ns)
	w.event("together-7", "Deleted", "deleted by ", "no object in the cluster belongs to it any more")
	for n := 2; n <= last; n++ {
		w.event(fmt.Sprintf("together-%d", n), "Deleted", "deleted by ")
	}
	w.eventually(func() (string, string) {
		return w.MustKubectl("events", "--for=cer/together-1", "-o", "jsonpath={range .items[*]}{.reason}{'\\n'}{end}"), ""
	}, func(reasons string) bool {
		return strings.Contains(reasons, "Removed") != strings.Contains(reasons, "Deleted")
	})
}

// notEmpty: Penstock asks for confirmation before it deletes a namespace with other owners'
// objects, or a claim with data. A dry-run names these objects.
func notEmpty(w sharedPlane) {
	const ns = "notempty"
	in := "--namespace=" + ns
	claim := manifest("v1", "PersistentVolumeClaim", ns, "data")
	claim["spec"] = map[string]any{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "", "resources": map[string]any{"requests": map[string]any{"storage": "1Mi"}}}
	volume := manifest("v1", "PersistentVolume", "", "notempty-volume")
	volume["spec"] = map[string]any{
		"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "", "capacity": map[string]any{"storage": "1Mi"}, "persistentVolumeReclaimPolicy": "Retain",
		"hostPath": map[string]any{"path": "/nothing"}, "claimRef": map[string]any{"namespace": ns, "name": "data"},
	}
	w.MustKubectlInput(volume.String(), "create", "-f", "-")
	w.roll(revision("notempty", 1).
		Phase("namespace", manifest("v1", "Namespace", "", ns)).
		Phase("deploy", claim, deployment(ns, "server", "example.com/server:v1")).
		Phase("last", configMap(ns, "settings", "x=1")))
	w.value("notempty-volume", ".spec.volumeName", "pvc/data", in)
	for _, mine := range []object{deployment(ns, "mine", "example.com/mine:v1"), configMap(ns, "uncounted", "x=1")} {
		w.MustKubectlInput(mine.String(), "create", "-f", "-")
	}

	out := w.Kubectl("delete", "cer", "notempty-1", "--dry-run=server")
	w.says(out.Stderr, "Warning: would delete 4 objects: 1 ConfigMap, 1 Deployment.apps, 1 Namespace, 1 PersistentVolumeClaim",
		"Warning: would delete Namespace notempty, with all that is in it", "Warning: would delete PersistentVolumeClaim notempty/data, with its data", "Warning: would delete Deployment.apps notempty/server")
	w.MustKubectl("get", "cer", "notempty-1")

	w.MustKubectl("delete", "cer", "notempty-1", "--wait=false")
	w.condition("notempty-1", "Stalled", "True", "PersistentVolumeClaim notempty/data", "is bound to volume notempty-volume")
	w.MustKubectl("get", "deployment/server", "configmap/settings", in) // nothing is deleted
	w.acknowledge("notempty-1", "notempty/data")
	w.gone("pvc/data", "deployment/server", "configmap/settings", in)
	w.condition("notempty-1", "Stalled", "True", "Namespace notempty: has objects of other owners, which are deleted with it: Deployment.apps mine")
	if message := w.read(`.status.conditions[?(@.type=="Stalled")].message`, "cer", "notempty-1"); strings.Contains(message, "uncounted") || strings.Contains(message, "more") {
		w.t.Errorf("objects that every namespace has are counted: %s", message)
	}
	w.acknowledge("notempty-1", "objects of other owners")
	w.gone("cer/notempty-1")
	w.gone("namespace/notempty")
}

// uninstall: an operator is deleted with its namespace, where its workloads have created objects.
// Penstock does not ask for confirmation.
func uninstall(w sharedPlane) {
	const ns = "uninstall"
	w.roll(revision("uninstall", 1).
		Phase("namespace", manifest("v1", "Namespace", "", ns)).
		Phase("crds", definition("Dinghy")).
		Phase("deploy", deployment(ns, "server", "example.com/server:v1"), configMap(ns, "settings", "x=1")))
	lease := manifest("coordination.k8s.io/v1", "Lease", ns, "leader")
	operand := deployment(ns, "operand", "example.com/operand:v1")
	operand["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "server", "uid": w.read(".metadata.uid", "deployment", "server", "--namespace="+ns)}}
	for _, generated := range []object{lease, configMap(ns, "leader", "x=1"), secret(ns, "serving-cert", "x"), operand} {
		w.MustKubectlInput(generated.String(), "create", "-f", "-")
	}
	w.MustKubectl("delete", "cer", "uninstall-1", poll.TimeoutFlag)
	w.gone("namespace/uninstall")
}
