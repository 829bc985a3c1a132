//go:build integration

package extension_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// gateOff lets Helm apply extensions.
const gateOff = "--feature-gates=BoxcutterRuntime=false"

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	accounts    = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
)

// TestGate hands an extension to Helm and back. Its objects do not change. The first upgrade
// deletes the Secrets of the release. With FULL=1 it does two handovers, and a third with an
// upgrade by Helm. The steps share a control plane and run in order.
func TestGate(t *testing.T) {
	t.Parallel()
	w := start(t).in(t, "gate")
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"}, bundle{Package: w.name, Version: "2.0.0", Replaces: "1.0.0"})
	alice := w.author("alice")
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.0"))
	w.awaitRevision(w.name+"-1", "it was rolled out", succeeded)
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	before := w.seen()
	mark := w.Audit().Mark()
	full := os.Getenv("FULL") == "1"
	trips := 1
	if full {
		trips = 2
	}
	revision := 1
	for range trips {
		w.toHelm(revision, before)
		w.keepFromHelm()
		revision++
		w.fromHelm(revision, before)
	}
	// Neither Helm nor the engine has recreated an object.
	ofWorkloads := plane.ByResource("deployments", "replicasets", "pods")
	if lost := w.Audit().Since(mark, plane.ByVerb("delete", "create"), ofWorkloads, func(r plane.Request) bool { return r.Namespace == w.name }); len(lost) > 0 {
		w.t.Errorf("workloads were created or deleted:\n%s", lost)
	}
	if lost := w.Audit().Since(mark, plane.ByVerb("delete", "create"), plane.ByResource("configmaps", "serviceaccounts", "clusterroles", "clusterrolebindings"), byPenstock); len(lost) > 0 {
		w.t.Errorf("objects were made or deleted:\n%s", lost)
	}
	next := "2.0.0"
	if full {
		revision, next = w.upgradeByHelm(alice, revision, before), "1.0.0"
	}
	var all []int64
	for number := range revision {
		all = append(all, int64(number+1))
	}
	w.history(all...)

	// The first upgrade after the handover deletes the Secrets of the release.
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: "+next, "upgradeConstraintPolicy: SelfCertified"))
	w.awaitRevision(fmt.Sprintf("%s-%d", w.name, revision+1), "an upgrade by the engine", succeeded)
	w.awaitRevision(fmt.Sprintf("%s-%d", w.name, revision), "the Secrets of the release are deleted", func(r *olmv1alpha1.ClusterExtensionRevision) bool {
		return r.Annotations[olmv1alpha1.ReleaseSecretsAnnotation] == "removed"
	})
	if left := w.MustKubectl("get", "secrets", "-n", "penstock-system", "-l", "owner=operator-controller", "-o", "name"); left != "" {
		w.t.Errorf("objects of the release are left: %s", left)
	}
	if full {
		w.afterUpgrades(alice, revision+1)
	}
}

// afterUpgrades does a handover after three upgrades by the engine. Each upgrade changes names of
// objects.
func (w *shared) afterUpgrades(author person, revision int) {
	w.t.Helper()
	for _, version := range []string{"2.0.0", "1.0.0"} {
		w.apply(author, w.name, w.extend(w.name, w.name, "version: "+version, "upgradeConstraintPolicy: SelfCertified"))
		revision++
		w.awaitRevision(fmt.Sprintf("%s-%d", w.name, revision), "an upgrade by the engine", succeeded)
		w.awaitExtension(w.name, "it is installed", installed(version))
	}
	w.eventually("the roles of other versions are gone", func() bool { return w.roles() == 1 })
	before := w.seen()
	w.toHelm(revision, before)
	w.rolesOf("1.0.0")
	w.fromHelm(revision+1, before)
	w.rolesOf("1.0.0")
}

// roles counts the ClusterRoles of all versions.
func (w shared) roles() int {
	w.t.Helper()
	return strings.Count(w.MustKubectl("get", "clusterroles", "-o", "name"), "/"+w.name+".v")
}

// rolesOf checks that all ClusterRoles belong to one version.
func (w shared) rolesOf(version string) {
	w.t.Helper()
	names := w.MustKubectl("get", "clusterroles", "-o", "name")
	if all, of := strings.Count(names, "/"+w.name+".v"), strings.Count(names, "/"+w.name+".v"+version+"-"); all == 0 || all != of {
		w.t.Errorf("%d of %d ClusterRoles belong to %s:\n%s", of, all, version, names)
	}
}

// upgradeByHelm hands the extension to Helm, upgrades it there, and hands it back.
func (w *shared) upgradeByHelm(author person, revision int, before map[string]string) (last int) {
	w.t.Helper()
	w.toHelm(revision, before)
	w.apply(author, w.name, w.extend(w.name, w.name, "version: 2.0.0"))
	w.awaitExtension(w.name, "Helm has the other version installed", installed("2.0.0"))
	if got := w.text(); got != "2.0.0" {
		w.t.Errorf("after an upgrade by Helm, the ConfigMap has %q", got)
	}
	// Each version has other roles. Helm has deleted the roles of the version before.
	w.rolesOf("2.0.0")
	// One object drifts and one is deleted. The engine must restore both as in the release.
	w.MustKubectl("-n", w.name, "patch", "configmap", w.name+"-config", "--type=merge", "-p", `{"data":{"text":"drifted"}}`)
	w.MustKubectl("-n", w.name, "delete", "serviceaccount", w.name)
	w.reopen()
	w.awaitRevision(fmt.Sprintf("%s-%d", w.name, revision+1), "the upgrade of Helm was taken back", takenBack)
	w.awaitExtension(w.name, "it is installed", installed("2.0.0"))
	if got := w.text(); got != "2.0.0" {
		w.t.Errorf("after the way back, the ConfigMap has %q", got)
	}
	w.rolesOf("2.0.0")
	w.MustKubectl("-n", w.name, "get", "serviceaccount", w.name)
	return revision + 1
}

// toHelm turns the gate off. The revision is handed to Helm, and the objects do not change.
func (w *shared) toHelm(revision int, before map[string]string) {
	w.t.Helper()
	w.reopen(gateOff)
	w.awaitRevision(fmt.Sprintf("%s-%d", w.name, revision), "it was handed to Helm", handed)
	w.awaitExtension(w.name, "Helm has it installed", func(e *extension.Extension) bool {
		return installed("1.0.0")(e) && strings.Contains(message(e, "Ready"), "Helm release")
	})
	w.isSame(before, w.seen())
	w.ownedBy(true)
}

// fromHelm turns the gate on. A new revision takes over the objects, which do not change.
func (w *shared) fromHelm(revision int, before map[string]string) {
	w.t.Helper()
	w.reopen()
	back := w.awaitRevision(fmt.Sprintf("%s-%d", w.name, revision), "it was taken back", takenBack)
	if back.Annotations[olmv1alpha1.AdoptedReleaseAnnotation] == "" {
		w.t.Errorf("%s has the annotations %v", back.Name, back.Annotations)
	}
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.isSame(before, w.seen())
	w.ownedBy(false)
}

// takenBack reports whether a revision has taken over the objects of a release and has succeeded.
func takenBack(r *olmv1alpha1.ClusterExtensionRevision) bool {
	return succeeded(r) && r.Annotations[olmv1alpha1.ReleaseSecretsAnnotation] != ""
}

// keepFromHelm: in a namespace that protects objects, Helm cannot take over an extension's object.
// Neither collisionProtection None nor Helm's marks allow it.
func (w *shared) keepFromHelm() {
	w.t.Helper()
	name, kept := w.name+"-taker", w.name+"-kept"
	w.MustKubectlInput(fmt.Sprintf(`{apiVersion: v1, kind: List, items: [
{apiVersion: v1, kind: Namespace, metadata: {name: %[1]s, labels: {policy.penstock.dev/protect: "true"}}},
{apiVersion: olm.operatorframework.io/v1alpha1, kind: ClusterExtensionRevision, metadata: {name: %[1]s-1}, spec: {revision: 1, phases: [{name: all, objects: [
  {object: {apiVersion: v1, kind: ConfigMap, metadata: {name: %[2]s, namespace: %[1]s}, data: {of: keeper}}}]}]}}]}`, kept, name), "apply", "--server-side", "-f", "-")
	w.awaitRevision(kept+"-1", "it was rolled out", succeeded)
	w.MustKubectl("-n", kept, "annotate", "--overwrite", "configmap", name, "meta.helm.sh/release-name="+name, "meta.helm.sh/release-namespace="+w.name)
	uid := w.MustKubectl("-n", kept, "get", "configmap", name, "-o", "jsonpath={.metadata.uid}")
	ref := w.pushFiles("charts/"+name, map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: taker\nversion: 1.0.0\n",
		"templates/kept.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: " + kept + "}\ndata: {of: taker}\n",
	})
	root := w.person("root", "- {apiGroups: [\"\"], resources: [configmaps], verbs: [\"*\"]}\n- {apiGroups: [olm.operatorframework.io], resources: [\"*\"], verbs: [\"*\"]}\n")
	w.apply(root, name, fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: %s, annotations: {penstock.dev/collision-protection: None}}, spec: {namespace: %s, source: {sourceType: Chart, chart: {ref: %q}}}}", name, w.name, ref))
	w.awaitExtension(name, "the object is protected", func(e *extension.Extension) bool {
		return strings.Contains(message(e, "Progressing"), "its namespace protects objects of extensions")
	})
	w.MustKubectl("delete", "clusterextension", name, "--wait=false")
	if now := w.MustKubectl("-n", kept, "get", "configmap", name, "-o", "jsonpath={.metadata.uid} {.data.of}"); now != uid+" keeper" {
		w.t.Errorf("the object is %s, not %s of keeper", now, uid)
	}
}

// reopen restarts the server with other flags.
func (w *shared) reopen(flags ...string) {
	w.t.Helper()
	w.server().Stop(w.t)
	w.serve(flags...)
}

func handed(r *olmv1alpha1.ClusterExtensionRevision) bool {
	for _, condition := range r.Status.Conditions {
		if condition.Type == olmv1alpha1.ConditionHeld && condition.Status == metav1.ConditionTrue && condition.Reason == "HandedToHelm" {
			return true
		}
	}
	return false
}

// objects returns the bundle's objects in the scenario's namespace.
func (w shared) objects() map[string]*unstructured.Unstructured {
	w.t.Helper()
	found := map[string]*unstructured.Unstructured{}
	for _, resource := range []schema.GroupVersionResource{deployments, configMaps, accounts, replicaSets} {
		list, err := w.host.Resource(resource).Namespace(w.name).List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range list.Items {
			if one := &list.Items[i]; strings.HasPrefix(one.GetName(), w.name) {
				found[resource.Resource+"/"+one.GetName()] = one
			}
		}
	}
	return found
}

// seen returns the parts of each object that must not change: UID, generation, and content without
// metadata and status.
func (w shared) seen() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for key, object := range w.objects() {
		content := maps.Clone(object.Object)
		delete(content, "metadata")
		delete(content, "status")
		raw, err := json.Marshal(content)
		if err != nil {
			w.t.Fatal(err)
		}
		out[key] = fmt.Sprintf("%s %d %s", object.GetUID(), object.GetGeneration(), raw)
	}
	if len(out) < 4 {
		w.t.Fatalf("only these objects are there: %v", slices.Collect(maps.Keys(out)))
	}
	return out
}

func (w shared) isSame(before, after map[string]string) {
	w.t.Helper()
	for key := range before {
		if before[key] != after[key] {
			w.t.Errorf("%s was %s, and is %s", key, before[key], after[key])
		}
	}
	for key := range after {
		if before[key] == "" {
			w.t.Errorf("%s is a new object", key)
		}
	}
}

// ownedBy checks the owner of the objects. It is the extension if Helm applies them, and otherwise
// the engine's chain.
func (w shared) ownedBy(extensionOwns bool) {
	w.t.Helper()
	for key, object := range w.objects() {
		if strings.HasPrefix(key, "replicasets/") {
			continue
		}
		owner := metav1.GetControllerOf(object)
		chain := object.GetLabels()[olmv1alpha1.ChainLabel]
		if got := owner != nil && owner.Kind == extension.Kind.Kind && chain == ""; extensionOwns && !got {
			w.t.Errorf("%s has owner %v and chain %q, and Helm applies it", key, owner, chain)
		}
		if !extensionOwns && (owner != nil || chain != w.name) {
			w.t.Errorf("%s has owner %v and chain %q, and the engine rolls it out", key, owner, chain)
		}
	}
}

// text returns the text in the ConfigMap.
func (w shared) text() string {
	w.t.Helper()
	return w.MustKubectl("-n", w.name, "get", "configmap", w.name+"-config", "-o", "jsonpath={.data.text}")
}

// history waits until the history has exactly these succeeded revisions. It cannot be watched.
func (w shared) history(numbers ...int64) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("history has the revisions %v, and they have succeeded", numbers), func() bool {
		found, err := w.own.OlmV1alpha1().RevisionHistories().Get(w.t.Context(), w.name, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		var got []int64
		for _, row := range found.Revisions {
			if row.Result == olmv1alpha1.ResultSucceeded {
				got = append(got, row.Revision)
			}
		}
		slices.Sort(got)
		return slices.Equal(got, numbers)
	})
}

// byPenstock selects requests of the program.
func byPenstock(r plane.Request) bool { return strings.HasPrefix(r.UserAgent, "penstock/") }
