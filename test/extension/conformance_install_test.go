//go:build integration

package extension_test

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// conformInstall are OLM v1's scenarios about installations, in our own words.
// docs/reference/conformance.md lists them with their numbers.
func conformInstall() map[string]scenario {
	return map[string]scenario{
		"Latest":           latest,
		"SamePriority":     samePriority,
		"WatchNamespace":   watchNamespace,
		"DeploymentConfig": deploymentConfig,
		"LargeDefinition":  largeDefinition,
		"Restored":         restored,
		"NamespaceAppears": namespaceAppears,
		"ConflictRemoved":  conflictRemoved,
		"ConflictAdopted":  conflictAdopted,
		"CatalogDeleted":   catalogDeleted,
		"AccessControl":    accessControl,
		"Deprecation":      deprecation,
	}
}

// mayMore are the rights to the objects of these bundles that mayInstall does not cover.
const mayMore = `
- {apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: [create, patch, delete]}
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [create, patch, delete]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [create, patch, delete]}
`

// installer returns an author with the rights to install the bundles of these scenarios.
func (w shared) installer() person {
	w.t.Helper()
	return w.person("alice", mayWrite+mayInstall+mayMore)
}

// is returns a condition for awaitExtension: "Type=Status/Reason", optionally followed by ": " and
// a part of the message.
func is(wanted ...string) func(*extension.Extension) bool {
	return func(e *extension.Extension) bool {
		for _, one := range wanted {
			kind, rest, _ := strings.Cut(one, "=")
			want, part, _ := strings.Cut(rest, ": ")
			if condition(e, kind) != want || !strings.Contains(message(e, kind), part) {
				return false
			}
		}
		return true
	}
}

// all is true if each condition is true.
func all(each ...func(*extension.Extension) bool) func(*extension.Extension) bool {
	return func(e *extension.Extension) bool {
		for _, one := range each {
			if !one(e) {
				return false
			}
		}
		return true
	}
}

// there waits until objects exist in the scenario's namespace.
func (w shared) there(objects ...string) {
	w.t.Helper()
	w.MustKubectl(append([]string{"-n", w.name, "wait", "--for=create", poll.TimeoutFlag}, objects...)...)
}

// Latest: the highest version of all channels is installed, with all status that OLM reports. A
// deletion deletes its objects.
func latest(w shared) {
	policy := fmt.Sprintf("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: %s}, spec: {podSelector: {}}}", w.name)
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"}, bundle{Package: w.name, Version: "1.0.1", Replaces: "1.0.0"},
		bundle{Package: w.name, Version: "1.2.0", Replaces: "1.0.1", More: []string{policy}})
	alice := w.installer()
	w.apply(alice, w.name, w.extend(w.name, w.name, "selector: {matchLabels: {olm.operatorframework.io/metadata.name: "+w.name+"}}"))
	e := w.awaitExtension(w.name, "the latest version is installed", all(installed("1.2.0"), is(
		"Available=True/ProbesSucceeded: Objects are available and pass all probes.", "Progressing=True/Succeeded: Desired state reached",
		"Installed=True/Succeeded: Installed bundle ", "Ready=True/Succeeded", "Stalled=False/NotStalled", "Deprecated=False/NotDeprecated: not deprecated",
		"PackageDeprecated=False/NotDeprecated", "ChannelDeprecated=False/NotDeprecated", "BundleDeprecated=False/NotDeprecated")))
	if e.Status.Install.Bundle.Name != w.name+".v1.2.0" || len(e.Status.ActiveRevisions) != 1 || e.Status.ActiveRevisions[0].Name != w.name+"-1" {
		w.t.Errorf("the status is %+v", e.Status)
	}
	w.there("networkpolicy/"+w.name, "configmap/"+w.name+"-config", "deployment/"+w.name)
	alice.MustKubectl("delete", "--wait=false", "clusterextension", w.name)
	w.awaitGone(extension.Resource, w.name, "it is deleted")
	w.MustKubectl("-n", w.name, "wait", "--for=delete", poll.TimeoutFlag, "networkpolicy/"+w.name, "configmap/"+w.name+"-config", "deployment/"+w.name, "serviceaccount/"+w.name)
}

// SamePriority: two catalogs of equal priority have the package. A selector decides.
func samePriority(w shared) {
	one := w.push(bundle{Package: w.name, Version: "1.0.0"})
	w.publish(w.name+"-a", one)
	w.publish(w.name+"-b", one)
	alice := w.installer()
	w.apply(alice, w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it is told that two have it", is(
		fmt.Sprintf("Progressing=True/Retrying: found bundles for package %q in multiple catalogs with the same priority [%s-a %s-b]", w.name, w.name, w.name),
		"Installed=False/Failed: No bundle installed", "Ready=False/Unresolved: give one of the catalogs a higher priority", "Stalled=True/Unresolved"))
	w.says(w.answers(w.admin(), w.name, "Unresolved"), "give one of the catalogs a higher priority")
	w.apply(alice, w.name, w.extend(w.name, w.name, "selector: {matchLabels: {olm.operatorframework.io/metadata.name: "+w.name+"-b}}"))
	w.awaitExtension(w.name, "it is installed from the one that is selected", installed("1.0.0"))
}

// WatchNamespace: the values that a bundle of each install mode accepts, with OLM's messages.
func watchNamespace(w shared) {
	single, own, every := w.name+"-single", w.name+"-own", w.name+"-all"
	w.publish(w.name, bundle{Package: single, Version: "1.0.0", Modes: []string{"SingleNamespace"}}, bundle{Package: own, Version: "1.0.0", Modes: []string{"OwnNamespace"}},
		bundle{Package: every, Version: "1.0.0", Modes: []string{"AllNamespaces"}})
	w.MustKubectl("create", "namespace", w.name+"-watched")
	alice := w.installer()
	watch := func(namespace string) string {
		return fmt.Sprintf("config: {configType: Inline, inline: {watchNamespace: %q}}", namespace)
	}
	refused := func(pkg, why string) {
		w.t.Helper()
		w.awaitExtension(pkg, why, is("Progressing=False/InvalidConfiguration: "+fmt.Sprintf("error for resolved bundle %q with version %q: invalid ClusterExtension configuration: invalid configuration: ", pkg+".v1.0.0", "1.0.0"),
			"Progressing=False/InvalidConfiguration: "+why, "Installed=False/Failed", "Ready=False/InvalidConfiguration"))
		w.says(w.answers(w.admin(), pkg, "InvalidConfiguration"), "no changes made")
	}
	w.apply(alice, single, w.extend(single, single))
	w.apply(alice, own, w.extend(own, own))
	w.apply(alice, every, w.extend(every, every, watch(w.name)))
	refused(single, `required field "watchNamespace" is missing`)
	refused(own, `required field "watchNamespace" is missing`)
	refused(every, `unknown field "watchNamespace"`)
	w.apply(alice, single, w.extend(single, single, watch("Not_A_Name")))
	w.apply(alice, own, w.extend(own, own, watch("some-ns")))
	refused(single, "must match pattern")
	refused(own, fmt.Sprintf(`invalid value "some-ns": must be %q`, w.name))
	w.apply(alice, single, w.extend(single, single, watch(w.name+"-watched")))
	w.apply(alice, own, w.extend(own, own, watch(w.name)))
	w.apply(alice, every, w.extend(every, every))
	for pkg, target := range map[string]string{single: w.name + "-watched", own: w.name, every: ""} {
		w.awaitExtension(pkg, "it is installed", installed("1.0.0"))
		if got := w.MustKubectl("-n", w.name, "get", "deployment", pkg, `-o=jsonpath={.spec.template.metadata.annotations.olm\.targetNamespaces}`); got != target {
			w.t.Errorf("%s watches %q, want %q", pkg, got, target)
		}
	}
}

// DeploymentConfig: the Deployment has the fields of the user's configuration.
func deploymentConfig(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.apply(w.installer(), w.name, w.extend(w.name, w.name, "config: {configType: Inline, inline: {deploymentConfig: {nodeSelector: {disk: ssd}}}}"))
	w.there("deployment/" + w.name)
	if got := w.MustKubectl("-n", w.name, "get", "deployment", w.name, "-o=jsonpath={.spec.template.spec.nodeSelector.disk}"); got != "ssd" {
		w.t.Errorf("nodeSelector disk is %q", got)
	}
}

// LargeDefinition: a bundle with a definition of about one megabyte.
func largeDefinition(w shared) {
	var properties strings.Builder
	for i := range 250 {
		fmt.Fprintf(&properties, "              field%03d: {type: string, description: %q}\n", i, strings.Repeat("what it is for ", 260))
	}
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0", More: []string{definitionOf(w.name, properties.String())}})
	w.apply(w.installer(), w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	if got := w.MustKubectl("get", "crd", w.name+"s.example.com", "-o=jsonpath={.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.field249.type}"); got != "string" {
		w.t.Errorf("the last field is %q", got)
	}
}

// definitionOf returns a CustomResourceDefinition with properties of its spec.
func definitionOf(name, properties string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: %[1]ss, singular: %[1]s, kind: %[2]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
%[3]s`, name, "K"+strings.ReplaceAll(name, "-", ""), properties)
}

// Restored: Penstock repairs deletions and edits. Additions of users stay.
func restored(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.apply(w.installer(), w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.MustKubectl("-n", w.name, "annotate", "deployment", w.name, "example.com/mine=yes")
	w.MustKubectl("-n", w.name, "label", "deployment", w.name, "mine=yes")
	w.MustKubectl("-n", w.name, "rollout", "restart", "deployment/"+w.name)
	w.MustKubectl("-n", w.name, "delete", "configmap", w.name+"-config")
	w.there("configmap/" + w.name + "-config")
	w.MustKubectl("-n", w.name, "patch", "configmap", w.name+"-config", "--type=merge", "-p", `{"data":{"text":"edited"}}`)
	w.MustKubectl("-n", w.name, "wait", "--for=jsonpath={.data.text}=1.0.0", poll.TimeoutFlag, "configmap/"+w.name+"-config")
	w.awaitExtension(w.name, "it is available", is("Available=True/ProbesSucceeded"))
	if got := w.MustKubectl("-n", w.name, "get", "deployment", w.name, `-o=jsonpath={.metadata.annotations.example\.com/mine} {.metadata.labels.mine}`); got != "yes yes" {
		w.t.Errorf("fields that users added are %q", got)
	}
	if got := w.MustKubectl("-n", w.name, "get", "deployment", w.name, `-o=jsonpath={.spec.template.metadata.annotations.kubectl\.kubernetes\.io/restartedAt}`); got == "" {
		w.t.Error("the restart was undone")
	}
	// The Pod becomes unready, and ready again.
	w.MustKubectl("-n", w.name, "rollout", "status", "deployment/"+w.name, poll.TimeoutFlag)
	pod := w.MustKubectl("-n", w.name, "get", "pods", "-l", "app="+w.name, "--field-selector=status.phase=Running", "--sort-by=.metadata.creationTimestamp", "-o=jsonpath={.items[-1:].metadata.name}")
	report := func(ready string) {
		w.MustKubectl("-n", w.name, "patch", "pod", pod, "--subresource=status", "--type=strategic", "-p", fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, ready))
	}
	report("False")
	w.awaitExtension(w.name, "it is not available", is("Available=False/ProbeFailure: Object Deployment.apps/v1 "+w.name+"/"+w.name, "Ready=False/Unavailable: Deployment "+w.name+"/"+w.name, "Installed=True/Succeeded"))
	report("True")
	w.awaitExtension(w.name, "it is available again", is("Available=True/ProbesSucceeded", "Ready=True/Succeeded"))
}

// NamespaceAppears: the namespace of the installation is created later.
func namespaceAppears(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	later := w.name + "-later"
	w.apply(w.installer(), w.name, strings.Replace(w.extend(w.name, w.name), "namespace: "+w.name, "namespace: "+later, 1))
	w.awaitExtension(w.name, "it waits for its namespace", is("Progressing=True/Retrying: "+later, "Installed=False/Failed"))
	w.MustKubectl("create", "namespace", later)
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
}

// ConflictRemoved: an existing object blocks the installation until it is deleted.
func conflictRemoved(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.MustKubectl("-n", w.name, "create", "deployment", w.name, "--image=registry.example.com/other:v1")
	w.apply(w.installer(), w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it collides", is("Progressing=True/Retrying: revision object collisions in phase", "Progressing=True/Retrying: Deployment "+w.name+"/"+w.name,
		"Installed=False/Failed", "Ready=False/Collision", "Stalled=True/Collision"))
	w.MustKubectl("-n", w.name, "delete", "deployment", w.name)
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
}

// ConflictAdopted: the same object exists. The command of the reference lets the extension adopt
// it, and the installation continues.
func conflictAdopted(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.MustKubectl("-n", w.name, "create", "configmap", w.name+"-config", "--from-literal=text=theirs")
	alice := w.installer()
	w.apply(alice, w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it collides", is("Ready=False/Collision"))
	w.says(w.answers(alice, w.name, "Collision"), "annotated")
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
}

// CatalogDeleted: the installed version stays and is repaired. Changes that need no catalog still
// apply.
func catalogDeleted(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	alice := w.installer()
	selector := "selector: {matchLabels: {olm.operatorframework.io/metadata.name: " + w.name + "}}"
	w.apply(alice, w.name, w.extend(w.name, w.name, selector))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.MustKubectl("delete", "clustercatalog", w.name)
	w.awaitExtension(w.name, "no catalog says anything", is("Deprecated=Unknown/DeprecationStatusUnknown", "Progressing=True/Succeeded", "Ready=True/Succeeded: NoCatalog", "UpgradeAvailable=Unknown/CatalogDataUnavailable"))
	w.MustKubectl("-n", w.name, "delete", "configmap", w.name+"-config")
	w.there("configmap/" + w.name + "-config")
	w.apply(alice, w.name, w.extend(w.name, w.name, selector, "install: {preflight: {crdUpgradeSafety: {enforcement: None}}}"))
	w.awaitExtension(w.name, "the change is seen", all(installed("1.0.0"), func(e *extension.Extension) bool { return e.Generation == 2 }))
}

// AccessControl: admission policies of the cluster restrict the extensions of users.
func accessControl(w shared) {
	w.MustKubectlInput(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %[1]s}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [olm.operatorframework.io], apiVersions: [v1], resources: [clusterextensions], operations: [CREATE, UPDATE]}]}
  matchConditions: [{name: scenario, expression: "object.metadata.name.startsWith('%[1]s')"}]
  validations:
  - {expression: "object.spec.source.catalog.packageName == 'allowed'", message: the package is not allowed}
  - {expression: "object.spec.namespace == '%[1]s'", message: the namespace is not allowed}
  - {expression: "has(object.spec.source.catalog.selector)", message: a selector is missing}
  - {expression: "object.spec.source.catalog.upgradeConstraintPolicy == 'CatalogProvided'", message: the policy is not allowed}
  - {expression: "!has(object.spec.install) || object.spec.install.preflight.crdUpgradeSafety.enforcement != 'None'", message: safety is not to be switched off}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %[1]s}
spec: {policyName: %[1]s, validationActions: [Deny]}
`, w.name), "apply", "--server-side", "-f", "-")
	w.t.Cleanup(func() {
		w.Kubectl("delete", "--ignore-not-found", "validatingadmissionpolicy/"+w.name, "validatingadmissionpolicybinding/"+w.name)
	})
	alice := w.installer()
	selector := "selector: {matchLabels: {olm.operatorframework.io/metadata.name: none}}"
	ask := func(manifest string) string {
		return alice.KubectlInput(manifest, "create", "--dry-run=server", "-f", "-").String()
	}
	// kube-apiserver compiles the policy with a delay.
	w.eventually("the policy holds", func() bool {
		return strings.Contains(ask(w.extend(w.name, "other", selector)), "the package is not allowed")
	})
	for why, manifest := range map[string]string{
		"the namespace is not allowed":     strings.Replace(w.extend(w.name, "allowed", selector), "namespace: "+w.name, "namespace: default", 1),
		"a selector is missing":            w.extend(w.name, "allowed"),
		"the policy is not allowed":        w.extend(w.name, "allowed", selector, "upgradeConstraintPolicy: SelfCertified"),
		"safety is not to be switched off": w.extend(w.name, "allowed", selector, "install: {preflight: {crdUpgradeSafety: {enforcement: None}}}"),
		"created (server dry run)":         w.extend(w.name, "allowed", selector),
	} {
		if got := ask(manifest); !strings.Contains(got, why) {
			w.t.Errorf("the answer is %s, want %s", got, why)
		}
	}
}

// Deprecation: the status shows the catalog's deprecations of the installed bundle.
func deprecation(w shared) {
	pushed := w.publish(w.name, bundle{Package: w.name, Version: "1.0.0", Deprecated: "1.0.0 has holes"})
	w.apply(w.installer(), w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it is installed, and deprecated", all(installed("1.0.0"), is(
		"Deprecated=True/Deprecated: 1.0.0 has holes", "BundleDeprecated=True/Deprecated: 1.0.0 has holes",
		"PackageDeprecated=False/NotDeprecated: package not deprecated", "ChannelDeprecated=False/NotDeprecated: channel not deprecated",
		status.UpgradeAvailable+"=False/NewestInstalled")))
	w.publish(w.name, append(pushed, bundle{Package: w.name, Version: "1.0.1", Replaces: "1.0.0"})...)
	w.awaitExtension(w.name, "another one is proposed, and the installed one is still deprecated", all(installed("1.0.0"), is(
		status.UpgradeAvailable+"=True/Proposed: "+w.name+"-2 (1.0.1)", "BundleDeprecated=True/Deprecated: 1.0.0 has holes", "Ready=True/Succeeded: is proposed")))
}
