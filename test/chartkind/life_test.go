//go:build integration

package chartkind_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// approval: a user reads the effect of changed values before it is applied.
func approval(w shared) {
	resource := w.ownKind("Approved", "  upgradeApproval: Manual\n")
	w.MustKubectlInput(fmt.Sprintf("{apiVersion: platform.stackrox.io/v1alpha1, kind: ApprovedCentral, metadata: {name: c, namespace: %s}, spec: {central: {db: {size: 10Gi}}}}", w.name), "create", "-f", "-")
	w.await(resource, w.name, "c", "the first revision needs nobody", settled)
	password := w.password()
	w.MustKubectl("-n", w.name, "patch", "approvedcentral", "c", "--type=merge", "-p", `{"spec":{"central":{"db":{"size":"20Gi"}}}}`)
	second := "central-" + w.name + "-2"
	found := w.await(resource, w.name, "c", "the second one is proposed", func(object *unstructured.Unstructured) bool {
		return object != nil && conditionOf(object, report.Deployed, "True", report.ReasonReconciling) != nil
	})
	if got := conditionOf(found, report.Deployed, "True", "").Message; !strings.HasPrefix(got, second+" waits for approval: kubectl get cer "+second+" --subresource=diff") {
		w.t.Errorf("Message is %s", got)
	}
	w.await(resource, w.name, "c", "the change is not done yet", is(report.Progressing, "True", report.ReasonReconciling))
	if diff := w.MustKubectl("get", "cer", second, "--subresource=diff", "-o", "yaml"); !strings.Contains(diff, "20Gi") {
		w.t.Errorf("the diff does not show the change:\n%s", diff)
	}
	if got := w.MustKubectl("-n", w.name, "get", "configmap", "central-config", "-o", "jsonpath={.data.dbSize}"); got != "10Gi" {
		w.t.Errorf("it was done before anybody approved it: %s", got)
	}
	// Another change leads to another proposal.
	w.MustKubectl("-n", w.name, "patch", "approvedcentral", "c", "--type=merge", "-p", `{"spec":{"central":{"db":{"size":"30Gi"}}}}`)
	third := "central-" + w.name + "-3"
	w.await(revisions, "", third, "it is proposed", func(object *unstructured.Unstructured) bool { return object != nil })
	w.await(revisions, "", second, "it is withdrawn", absent)
	w.MustKubectl("patch", "cer", third, "--type=merge", "-p", `{"spec":{"lifecycleState":"Active"}}`)
	w.await(resource, w.name, "c", "it was approved", settled)
	if w.password() != password {
		w.t.Error("what was generated once is another one")
	}
	// After the ChartKind is deleted, its custom resources can be deleted, and the installed
	// objects stay.
	w.MustKubectl("delete", "chartkind", "approved", poll.TimeoutFlag)
	w.MustKubectl("-n", w.name, "delete", "approvedcentral", "c", poll.TimeoutFlag)
	w.MustKubectl("-n", w.name, "get", "deployment", "central")
	w.MustKubectl("get", "cer", third)
}

// ownKind creates a copy of Central's definition with a prefix, and a ChartKind for it with the
// prefix in lower case as name and more fields in its spec. So other scenarios are not affected. It
// waits until the kind is accepted.
func (w shared) ownKind(prefix, spec string) schema.GroupVersionResource {
	w.t.Helper()
	lower := strings.ToLower(prefix)
	w.MustKubectlInput(w.ownDefinition(prefix), "create", "-f", "-")
	w.MustKubectlInput(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules: [{apiGroups: [platform.stackrox.io], resources: [%[1]scentrals, %[1]scentrals/status], verbs: [get, list, watch, patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{kind: ServiceAccount, name: rhacs-operator, namespace: rhacs-operator}]
`, lower), "apply", "-f", "-")
	kind := strings.SplitN(w.kinds, "\n---\n", 2)[0]
	w.MustKubectlInput(strings.NewReplacer("name: central\n", "name: "+lower+"\n", "kind: Central}", "kind: "+prefix+"Central}", "spec:\n", "spec:\n"+spec).Replace(kind), "create", "-f", "-")
	w.await(chartkind.Resource, "", lower, "it is served", is("Accepted", "True", ""))
	resource := centrals
	resource.Resource = lower + "centrals"
	return resource
}

// ownDefinition returns a copy of Central's definition with a prefix.
func (w shared) ownDefinition(prefix string) string {
	w.t.Helper()
	lower := strings.ToLower(prefix)
	definition := w.MustKubectl("get", "crd", "centrals.platform.stackrox.io", "-o", "yaml")
	definition = strings.NewReplacer("centrals", lower+"centrals", "CentralList", prefix+"CentralList", "kind: Central\n", "kind: "+prefix+"Central\n", "singular: central\n", "singular: "+lower+"central\n").Replace(definition)
	return withoutLines(definition, "  uid:", "  resourceVersion:")
}

func (w shared) password() string {
	w.t.Helper()
	return w.MustKubectl("-n", w.name, "get", "secret", "central-db-password", "-o", "jsonpath={.data.password}")
}

func withoutLines(text string, prefixes ...string) string {
	var out []string
	for line := range strings.Lines(text) {
		keep := true
		for _, prefix := range prefixes {
			keep = keep && !strings.HasPrefix(line, prefix)
		}
		if keep {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// inputs: changes of a Secret that a Central names, and of SecuredClusters, lead to another
// revision. A change of the Central's status does not.
func inputs(w shared) {
	w.central("c", "tls: {secretName: tls}")
	config := func(field string) string {
		return w.MustKubectl("-n", w.name, "get", "configmap", "central-config", "-o", "jsonpath={.data."+field+"}")
	}
	if got := config("tls"); got != "tls@" {
		w.t.Errorf("without the Secret, the chart was given %s", got)
	}
	w.MustKubectl("-n", w.name, "create", "secret", "generic", "tls", "--from-literal=key=1")
	given := func(field, prefix, not string) {
		w.t.Helper()
		w.await(configMaps, w.name, "central-config", field+" is given to the chart", func(object *unstructured.Unstructured) bool {
			if object == nil {
				return false
			}
			value, _, _ := unstructured.NestedString(object.Object, "data", field)
			return strings.HasPrefix(value, prefix) && value != not
		})
	}
	given("tls", "tls@", "tls@")
	first := config("tls")
	w.MustKubectl("-n", w.name, "create", "secret", "generic", "other", "--from-literal=key=1")
	w.MustKubectl("-n", w.name, "patch", "secret", "tls", "-p", `{"stringData":{"key":"2"}}`)
	given("tls", "tls@", first)
	w.MustKubectlInput(fmt.Sprintf("{apiVersion: platform.stackrox.io/v1alpha1, kind: SecuredCluster, metadata: {name: edge, namespace: %s}, spec: {clusterName: edge}}", w.name), "create", "-f", "-")
	given("securedClusters", "edge", "")
	w.awaitCentral("c", "its message says so", func(object *unstructured.Unstructured) bool {
		return settled(object) && strings.HasSuffix(conditionOf(object, report.Deployed, "True", "").Message, "for 1 secured clusters.")
	})
	w.await(secured, w.name, "edge", "it is installed, too", settled)
	if count := w.has(); count != 4 {
		w.t.Errorf("1 install and 3 changes of inputs made %d revisions", count)
	}
}

// deletion: the installed objects are deleted with the custom resource, in teardown order.
func deletion(w shared) {
	w.central("c", "scanner: {replicas: 1}")
	w.MustKubectl("-n", w.name, "patch", "deployment", "scanner", "-p", `{"metadata":{"finalizers":["example.com/wait"]}}`)
	w.MustKubectl("-n", w.name, "delete", "central", "c", "--wait=false")
	w.awaitCentral("c", "it says that it is being deleted", is(report.Progressing, "True", report.ReasonDeleting))
	w.awaitCentral("c", "its workload is waited for", is(report.Ready, "False", ""))
	w.MustKubectl("-n", w.name, "patch", "deployment", "scanner", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	w.awaitCentral("c", "it is gone", absent)
	w.await(revisions, "", "central-"+w.name+"-1", "its revision is gone", absent)
	for _, kind := range []string{"deployments", "statefulsets", "services", "networkpolicies"} {
		if left := w.MustKubectl("-n", w.name, "get", kind, "-o", "name"); left != "" {
			w.t.Errorf("left: %s", left)
		}
	}
}

// others: two custom resources with the same extension name do not affect each other, and neither
// can take the other's objects.
func others(w shared) {
	w.central("one", "scanner: {replicas: 1}")
	w.MustKubectlInput(fmt.Sprintf("{apiVersion: platform.stackrox.io/v1alpha1, kind: Central, metadata: {name: two, namespace: %s}}", w.name), "create", "-f", "-")
	found := w.awaitCentral("two", "the name is taken", all(is(report.Progressing, "True", report.Irreconcilable), observed))
	if got := conditionOf(found, report.Irreconcilable, "True", "").Message; !strings.Contains(got, "has revisions of another owner") || strings.Contains(got, "/one") {
		w.t.Errorf("Message is %s", got)
	}
	w.MustKubectl("-n", w.name, "delete", "central", "two", poll.TimeoutFlag)
	w.awaitCentral("one", "it is as it was", settled)
	w.MustKubectl("get", "cer", "central-"+w.name+"-1")
}

// refused: invalid values and missing rights are refused at admission.
func refused(w shared) {
	mallory := w.User("mallory-" + w.name)
	w.MustKubectlInput(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules: [{apiGroups: [charts.penstock.dev], resources: [chartkinds], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: mallory-%[1]s}]
`, w.name), "apply", "-f", "-")
	kind := func(spec string) string {
		return fmt.Sprintf("{apiVersion: charts.penstock.dev/v1alpha1, kind: ChartKind, metadata: {name: %s}, spec: {%s}}", w.name, spec)
	}
	const good = "resource: {group: platform.stackrox.io, version: v1alpha1, kind: Central}, chart: {ref: 'registry.example.com/c:1'}, serviceAccount: {namespace: rhacs-operator, name: rhacs-operator}"
	var said string
	w.eventually("mallory may write ChartKinds", func() bool {
		out := mallory.KubectlInput(kind(good), "create", "--dry-run=server", "-f", "-")
		said = out.String()
		return out.ExitCode != 0 && !strings.Contains(said, "cannot create resource")
	})
	if want := `spec.serviceAccount: Invalid value: "rhacs-operator/rhacs-operator": must be a ServiceAccount that mallory-` + w.name + " may impersonate"; !strings.Contains(said, want) {
		w.t.Errorf("want %s, got %s", want, said)
	}
	for spec, want := range map[string]string{
		good + ", values: [{to: a, expression: 'object.('}]":            "spec.values[0].expression: Invalid value",
		good + ", values: [{to: a, from: status.x}]":                    "must not be a field of status",
		good + ", upgradeApproval: Perhaps":                             `supported values: "Automatic", "Reviewed", "Manual"`,
		strings.Replace(good, "platform.stackrox.io", "apps", 1):        "must be the group of a CustomResourceDefinition",
		strings.Replace(good, "registry.example.com/c:1", "no tag/", 1): "spec.chart.ref",
	} {
		if out := w.KubectlInput(kind(spec), "create", "--dry-run=server", "-f", "-"); out.ExitCode == 0 || !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "is invalid") {
			w.t.Errorf("%s: want %q, got %s", spec, want, out)
		}
	}
	out := w.Kubectl("patch", "chartkind", "central", "--type=merge", "-p", `{"spec":{"resource":{"kind":"Other"}}}`)
	if out.ExitCode == 0 || !strings.Contains(out.String(), "spec.resource: Invalid value") || !strings.Contains(out.String(), "cannot be changed") {
		w.t.Errorf("the kind was changed: %s", out)
	}
	// A missing definition is waited for.
	w.MustKubectlInput(kind(strings.Replace(good, "kind: Central", "kind: Missing", 1)), "create", "-f", "-")
	w.await(chartkind.Resource, "", w.name, "there is no such kind", is("Accepted", "False", "DefinitionMissing"))
	w.MustKubectl("delete", "chartkind", w.name, poll.TimeoutFlag)
}
