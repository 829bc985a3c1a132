//go:build integration

package server_test

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// bobsRules are all rights to revisions and to the test's objects, without the right to bypass.
const bobsRules = `[{apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [create, get, list, patch, delete]},
  {apiGroups: [""], resources: [configmaps, persistentvolumeclaims, namespaces], verbs: [create, get, list, patch, delete]}]`

// deputy: the guard checks the engine's work for a user like the user's own requests. In a
// protected namespace no revision takes an object from another extension or deletes its namespace,
// without the right to bypass for that extension. Controllers of the control plane add no owner to
// an object.
func (d door) deputy() {
	d.MustKubectlInput(roleFor("bob", bobsRules), "create", "-f", "-")
	d.MustKubectlInput(roleFor("barbara", strings.TrimSuffix(bobsRules, "]")+", {apiGroups: [policy.penstock.dev], resources: [privilegechecks], resourceNames: [keeper], verbs: [bypass]}]"), "create", "-f", "-")
	revision := func(name, options, annotations string, objects ...string) string {
		out := fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1alpha1, kind: ClusterExtensionRevision, metadata: {name: %s, annotations: {%s}}, spec: {revision: %s, %s phases: [{name: all, objects: [",
			name, annotations, name[strings.LastIndex(name, "-")+1:], options)
		for _, object := range objects {
			out += "{object: " + object + "}, "
		}
		return out + "]}]}}"
	}
	const (
		namespace = `{apiVersion: v1, kind: Namespace, metadata: {name: kept-by-estate, labels: {policy.penstock.dev/protect: "true"}}}`
		kept      = `{apiVersion: v1, kind: ConfigMap, metadata: {name: kept, namespace: kept-by-estate}, data: {k: v}}`
		claim     = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data-db-0, namespace: kept-by-estate}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`
		taking    = "collisionProtection: None, adoptedTeardownPolicy: Delete,"
		in        = "--namespace=kept-by-estate"
	)
	d.MustKubectlInput(revision("estate-1", "", "", namespace), "create", "-f", "-", "--as=bob")
	d.MustKubectl("wait", "--for=condition=Succeeded", "cer/estate-1", poll.TimeoutFlag)
	d.MustKubectlInput(revision("keeper-1", "", "", kept, claim), "create", "-f", "-")
	// The claim is never bound here, so the revision is not ready. Its objects exist.
	uids := func() string {
		return d.MustKubectl("get", in, "configmap/kept", "persistentvolumeclaim/data-db-0", "-o", "jsonpath={.items[*].metadata.uid}")
	}
	eventually(d.t, "what keeper has", func() error {
		out := d.Kubectl("get", in, "configmap/kept", "persistentvolumeclaim/data-db-0")
		if out.ExitCode != 0 {
			return missingError{out.Stderr}
		}
		return nil
	})
	before := uids()
	same := func(after string) {
		d.t.Helper()
		if now := uids(); now != before {
			d.t.Errorf("after %s, the UIDs of the objects are %s, want %s", after, now, before)
		}
	}

	// 1. Taking the objects over, and then deleting them.
	d.MustKubectlInput(revision("bobs-1", taking, "", kept, claim), "create", "-f", "-", "--as=bob")
	eventually(d.t, "the refusal", func() error {
		return missing(d.MustKubectl("get", "cer", "bobs-1", "-o", "jsonpath={.status}"), []string{"its namespace protects objects of extensions"})
	})
	if chain := d.MustKubectl("get", in, "configmap", "kept", "-o", `jsonpath={.metadata.labels.penstock\.dev/chain}`); chain != "keeper" {
		d.t.Errorf("the object was given to %s", chain)
	}
	d.MustKubectl("delete", "cer", "bobs-1", poll.TimeoutFlag, "--as=bob")
	same("the revision that took it was deleted")

	// 2. The same with the annotation, by a user without the right to bypass and by a user with it.
	const annotation = "penstock.dev/take-over-from: keeper"
	d.tries("the annotation needs bypass", "bob", revision("bobs-2", taking, annotation, kept), "for penstock.dev/take-over-from", "create", "-f", "-")
	d.MustKubectlInput(revision("bobs-2", "lifecycleState: Paused,", "", kept), "create", "-f", "-", "--as=bob")
	d.tries("also later", "bob", "", "for penstock.dev/take-over-from", "annotate", "cer", "bobs-2", "penstock.dev/take-over-from=keeper")

	// 3. Deleting the namespace, by hand and by the revision that contains it.
	d.tries("by hand", "bob", "", `denied the request: deleting Namespace kept-by-estate`, "delete", "namespace", "kept-by-estate", "--wait=false")
	d.MustKubectl("delete", "cer", "estate-1", "--wait=false", "--as=bob")
	// Acknowledging that the namespace is not empty gives no right to its content.
	acknowledge := regexp.MustCompile(`penstock\.dev/acknowledge-deletion=\S+`)
	eventually(d.t, "the question", func() error {
		asked := acknowledge.FindString(d.MustKubectl("get", "cer", "estate-1", "-o", `jsonpath={.status.conditions[?(@.type=="Progressing")].message}`))
		if asked == "" {
			return missingError{"the condition has no question"}
		}
		d.MustKubectl("annotate", "--overwrite", "cer", "estate-1", asked, "--as=bob")
		return nil
	})
	eventually(d.t, "the refusal", func() error {
		return missing(d.MustKubectl("get", "cer", "estate-1", "-o", "jsonpath={.status}"), []string{"protects objects of 1 other extension"})
	})
	if phase := d.MustKubectl("get", "namespace", "kept-by-estate", "-o", "jsonpath={.status.phase}"); phase != "Active" {
		d.t.Errorf("the namespace is %s", phase)
	}
	same("the revision with its namespace was deleted")

	// 4. A controller of the control plane that adds an owner for a user, as the StatefulSet
	// controller does.
	controller := []string{"--as=system:serviceaccount:kube-system:statefulset-controller", "--as-group=system:serviceaccounts:kube-system", "--as-group=system:serviceaccounts", "--as-group=system:authenticated"}
	owner := `{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"db","uid":"0b0e6f0e-0000-4000-8000-000000000000"}]}}`
	d.MustKubectlInput(roleFor("system:serviceaccount:kube-system:statefulset-controller", `[{apiGroups: [""], resources: [persistentvolumeclaims], verbs: ["*"]}]`), "create", "-f", "-")
	d.tries("an owner by way of a StatefulSet", "", "", "giving an owner to PersistentVolumeClaim kept-by-estate/data-db-0", append([]string{"patch", "pvc", "data-db-0", in, "--type=merge", "-p", owner}, controller...)...)
	same("a StatefulSet asked for it")

	// 5. A user with the right to bypass for keeper takes the object over, and then deletes it.
	d.MustKubectlInput(revision("barbaras-1", taking, annotation, kept), "create", "-f", "-", "--as=barbara")
	d.MustKubectl("wait", "--for=condition=Succeeded", "cer/barbaras-1", poll.TimeoutFlag)
	if chain := d.MustKubectl("get", in, "configmap", "kept", "-o", `jsonpath={.metadata.labels.penstock\.dev/chain}`); chain != "barbaras" {
		d.t.Errorf("the object belongs to %s", chain)
	}
	// No controller releases the claim here, so do not wait.
	d.MustKubectl("delete", "cer", "keeper-1", "barbaras-1", "bobs-2", "--wait=false")
}

// owners: an update that adds an owner to one of our objects needs the right to delete the object.
// This holds whichever server serves the kind. Creates and existing owners need no further right.
func (d door) owners() {
	const (
		resources = "[clusterextensions, clustercatalogs, clusterextensionrevisions, chartkinds, configurationplans, configurationprofiledefinitions]"
		groups    = "[olm.operatorframework.io, charts.penstock.dev, hco.kubevirt.io]"
		patching  = "[{apiGroups: " + groups + ", resources: " + resources + ", verbs: [get, patch, update]}, {apiGroups: [policy.penstock.dev], resources: [privilegechecks], verbs: [bypass]}, " +
			"{apiGroups: [\"\"], resources: [serviceaccounts], verbs: [impersonate]}]"
		owner = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"0b0e6f0e-0000-4000-8000-000000000000"}]}}`
	)
	d.MustKubectlInput(roleFor("mallory", patching), "create", "-f", "-")
	d.MustKubectlInput(roleFor("dora", strings.Replace(patching, "verbs: [get, patch, update]", "verbs: [get, patch, update, delete]", 1)), "create", "-f", "-")
	for resource, manifest := range map[string]string{
		"clusterextensions": "{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: owned}, spec: {namespace: default, source: {sourceType: Catalog, catalog: {packageName: none}}}}",
		"clustercatalogs":   "{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {name: owned}, spec: {availabilityMode: Unavailable, source: {type: Image, image: {ref: registry.example.com/none:v1}}}}",
		"chartkinds": "{apiVersion: charts.penstock.dev/v1alpha1, kind: ChartKind, metadata: {name: owned}, spec: {resource: {group: owned.example.com, version: v1, kind: Owned}, " +
			"chart: {ref: 'registry.example.com/none:1.0.0'}, serviceAccount: {namespace: default, name: default}}}",
		"configurationplans":        "{apiVersion: hco.kubevirt.io/v1alpha1, kind: ConfigurationPlan, metadata: {name: owned}, spec: {profile: LoadAwareRebalancing}}",
		"clusterextensionrevisions": "{apiVersion: olm.operatorframework.io/v1alpha1, kind: ClusterExtensionRevision, metadata: {name: owned-1}, spec: {revision: 1, lifecycleState: Paused, phases: [{name: all, objects: [{object: {apiVersion: v1, kind: ConfigMap, metadata: {name: owned, namespace: default}}}]}]}}",
	} {
		name := "owned"
		if resource == "clusterextensionrevisions" {
			name = "owned-1"
		}
		d.MustKubectlInput(manifest, "create", "-f", "-")
		uid := d.MustKubectl("get", resource, name, "-o", "jsonpath={.metadata.uid}")
		eventually(d.t, "the refusal for "+resource, func() error {
			return missing(d.Kubectl("patch", resource, name, "--type=merge", "-p", owner, "--dry-run=server", "--as=mallory").Stderr, []string{"right to delete"})
		})
		d.tries(resource+": adding an owner", "mallory", "", "right to delete", "patch", resource, name, "--type=merge", "-p", owner)
		d.tries(resource+": with another change", "mallory", "", "right to delete", "patch", resource, name, "--type=json", "-p",
			`[{"op":"add","path":"/metadata/annotations","value":{"a":"b"}},{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"0b0e6f0e-0000-4000-8000-000000000001"}]}]`)
		if now := d.MustKubectl("get", resource, name, "-o", "jsonpath={.metadata.uid}{.metadata.ownerReferences}"); now != uid {
			d.t.Errorf("%s: UID and owners are %s, want %s without owners", resource, now, uid)
		}
		d.tries(resource+": another change", "mallory", "", "", "label", resource, name, "a=b")
		d.tries(resource+": with the right to delete", "dora", "", "", "patch", resource, name, "--type=merge", "-p", owner, "--dry-run=server")
		d.MustKubectl("delete", resource, name, "--wait=false")
	}
}
