//go:build integration

package chartkind_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// lent: a user who may impersonate a ServiceAccount lends its rights to a ChartKind, under the
// user's own name. The engine may impersonate every ServiceAccount, so it could lend their rights
// to anyone who writes a revision or a plan. Both are refused with the reason.
func lent(w shared) {
	const kind = "{apiVersion: charts.penstock.dev/v1alpha1, kind: ChartKind, metadata: {name: lent}, spec: {resource: {group: platform.stackrox.io, version: v1alpha1, kind: Lent}, " +
		"chart: {ref: 'registry.example.com/c:1'}, serviceAccount: {namespace: rhacs-operator, name: rhacs-operator}}}"
	revision := func(name string) string {
		return fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1alpha1, kind: ClusterExtensionRevision, metadata: {name: %s}, spec: {revision: 1, phases: [{name: all, objects: [{object: %s}]}]}}", name, kind)
	}
	w.MustKubectlInput(revision("lent-1"), "create", "-f", "-")
	const says = "would be system:serviceaccount:penstock-system:penstock-engine, which writes for other users: create it in your own name, not through a revision or a plan"
	w.await(revisions, "", "lent-1", "it says why it is not rolled out", func(object *unstructured.Unstructured) bool {
		if object == nil {
			return false
		}
		content, err := object.MarshalJSON()
		return err == nil && strings.Contains(string(content), says)
	})
	if out := w.Kubectl("get", "chartkind", "lent"); !strings.Contains(out.Stderr, "not found") {
		w.t.Errorf("there is one: %s", out)
	}
	w.MustKubectl("delete", "cer", "lent-1", poll.TimeoutFlag)

	// A revision that adopts a user's ChartKind changes neither the spec nor the stamp.
	w.MustKubectlInput(kind, "create", "-f", "-")
	stamp := w.MustKubectl("get", "chartkind", "lent", "-o", `jsonpath={.metadata.annotations.penstock\.dev/author}`)
	w.MustKubectlInput(strings.NewReplacer("name: rhacs-operator}", "name: default}", "spec: {revision: 1", "spec: {collisionProtection: None, revision: 2").Replace(revision("lent-2")), "create", "-f", "-")
	w.await(revisions, "", "lent-2", "it says why it changes nothing", func(object *unstructured.Unstructured) bool {
		if object == nil {
			return false
		}
		content, err := object.MarshalJSON()
		return err == nil && strings.Contains(string(content), says)
	})
	if got := w.MustKubectl("get", "chartkind", "lent", "-o", `jsonpath={.spec.serviceAccount.name} {.metadata.annotations.penstock\.dev/author}`); got != "rhacs-operator "+stamp {
		w.t.Errorf("it is now %s", got)
	}
	w.MustKubectl("delete", "cer", "lent-2", poll.TimeoutFlag)
	w.MustKubectl("delete", "chartkind", "lent", poll.TimeoutFlag)

	// The definition of a plan's profile cannot declare ChartKinds.
	out := w.KubectlInput(`{apiVersion: hco.kubevirt.io/v1alpha1, kind: ConfigurationProfileDefinition, metadata: {name: lent}, spec: {description: x,
		requirements: [{name: kinds, definition: chartkinds.charts.penstock.dev, kind: ChartKind, access: Write}], items: [{name: a, target: {requirement: kinds, name: lent}, object: "{}"}]}}`, "create", "-f", "-")
	if out.ExitCode == 0 || !strings.Contains(out.Stderr, "spec.requirements[0].definition: Forbidden") || !strings.Contains(out.Stderr, "Penstock") {
		w.t.Errorf("a plan may write ChartKinds: %s", out)
	}
}

// trouble has three operating faults: a second ChartKind for a kind, a custom resource whose
// finalizers are removed, and a definition that is deleted and created again.
func trouble(w shared) {
	resource := w.ownKind("Troubled", "")
	spare := strings.NewReplacer("name: central\n", "name: spare\n", "kind: Central}", "kind: TroubledCentral}").Replace(strings.SplitN(w.kinds, "\n---\n", 2)[0])
	w.MustKubectlInput(spare, "create", "-f", "-")
	w.await(chartkind.Resource, "", "spare", "another one has the kind", is("Accepted", "False", "KindTaken"))
	create := func() *unstructured.Unstructured {
		w.t.Helper()
		w.MustKubectlInput(fmt.Sprintf("{apiVersion: platform.stackrox.io/v1alpha1, kind: TroubledCentral, metadata: {name: c, namespace: %s}, spec: {scanner: {replicas: 1}}}", w.name), "create", "-f", "-")
		return w.await(resource, w.name, "c", "it is installed", settled)
	}
	create()
	before := w.MustKubectl("-n", w.name, "get", "deployment", "central", "-o", "jsonpath={.metadata.uid}")

	// The custom resource is removed without its finalizer and created again. It takes over the
	// installed objects again.
	w.MustKubectl("-n", w.name, "annotate", "troubledcentral", "c", "charts.penstock.dev/paused=true")
	w.await(resource, w.name, "c", "it is left alone", is(report.Paused, "True", ""))
	w.MustKubectl("-n", w.name, "patch", "troubledcentral", "c", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	w.MustKubectl("-n", w.name, "delete", "troubledcentral", "c", poll.TimeoutFlag)
	create()
	if after := w.MustKubectl("-n", w.name, "get", "deployment", "central", "-o", "jsonpath={.metadata.uid}"); after != before || w.has() != 1 {
		w.t.Errorf("it was installed another time: %d revisions", w.has())
	}

	// The definition is deleted with its custom resources, and created again.
	definition := w.ownDefinition("Troubled")
	w.MustKubectl("delete", "crd", resource.GroupResource().String(), poll.TimeoutFlag)
	w.await(revisions, "", "central-"+w.name+"-1", "its revision is gone", absent)
	w.await(chartkind.Resource, "", "troubled", "there is no such kind", is("Accepted", "False", "DefinitionMissing"))
	w.MustKubectlInput(definition, "create", "-f", "-")
	w.await(chartkind.Resource, "", "troubled", "there is one again", is("Accepted", "True", ""))
	create()

	w.MustKubectl("-n", w.name, "delete", "troubledcentral", "c", poll.TimeoutFlag)
	w.MustKubectl("delete", "chartkind", "spare", "troubled", poll.TimeoutFlag)
}
