//go:build integration

package extension_test

import (
	"fmt"
	"strings"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
)

// threatScenarios are rows of docs/reference/threat-model.md: attacks through a ClusterExtension.
// authorScenarios has the rows about authors.
func threatScenarios() map[string]scenario {
	return map[string]scenario{
		"Object":         objectOfOthers,
		"Chain":          chainOfOthers,
		"Configuration":  configured,
		"Selector":       selected,
		"Catalog":        catalogOfOthers,
		"Withdrawn":      withdrawn,
		"NotImpersonate": notImpersonate,
		"Deletion":       deleted,
	}
}

// deniedTo returns a condition: the newest attempt was refused because a user lacks these rights.
func deniedTo(who string, lacks ...string) func(*extension.Extension) bool {
	return func(e *extension.Extension) bool {
		text := message(e, "Ready")
		for _, one := range append(lacks, "in the name of "+who+": ") {
			if !strings.Contains(text, one) {
				return false
			}
		}
		return true
	}
}

// again renews the author's stamp as a user, which triggers the next attempt at once.
func (w shared) again(who person, name string) {
	w.t.Helper()
	who.MustKubectl("annotate", "--overwrite", "clusterextension", name, extension.AuthorAnnotation+"="+author.Renew)
}

// hasRevision checks whether a revision exists.
func (w shared) hasRevision(name string, want bool) {
	w.t.Helper()
	if out := w.Kubectl("get", "cer", name); (out.ExitCode == 0) != want {
		w.t.Errorf("want revision %s: %t: %s", name, want, out)
	}
}

// Object: taking over an object of another owner needs the right to change it.
func objectOfOthers(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	object := w.name + "-config"
	w.MustKubectl("-n", w.name, "create", "configmap", object, "--from-literal=text=theirs")
	shown := func() string {
		return w.MustKubectl("-n", w.name, "get", "configmap", object, "-o", "jsonpath={.data.text} {.metadata.resourceVersion}")
	}
	before := shown()
	const everything, rest = "[configmaps, serviceaccounts], verbs: [create, get, patch, delete]", "[configmaps, serviceaccounts], verbs: [create, get, delete]"
	mallory := w.person("mallory", mayWrite+strings.Replace(mayInstall, everything, rest, 1))
	w.apply(mallory, w.name, w.extend(w.name, w.name, "penstock.dev/collision-protection: None"))
	w.awaitExtension(w.name, "mallory cannot take it", all(is("Ready=False/Denied"), deniedTo(mallory.name, "patch configmaps "+w.name+"/"+object)))
	w.says(w.answers(w.admin(), w.name, "Denied"), "patch configmaps "+w.name+"/"+object)
	if after := shown(); after != before {
		w.t.Errorf("the object is %s, want %s", after, before)
	}
	w.hasRevision(w.name+"-1", false)
	w.again(w.author("alice"), w.name)
	w.awaitExtension(w.name, "alice may", installed("1.0.0"))
	if after := shown(); !strings.HasPrefix(after, "1.0.0 ") {
		w.t.Errorf("the object is %s", after)
	}
}

// Chain: continuing a chain of another user needs the right to delete the objects that would be
// deleted. It is refused if the chain has another owner, or with approval Manual.
func chainOfOthers(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	uid := w.MustKubectl("get", "namespace", w.name, "-o", "jsonpath={.metadata.uid}")
	owned := w.name + "-owned"
	for chain, owners := range map[string]string{w.name: "[]", owned: fmt.Sprintf("[{apiVersion: v1, kind: Namespace, name: %s, uid: %s, controller: true}]", w.name, uid)} {
		w.MustKubectlInput(fmt.Sprintf(`
apiVersion: olm.operatorframework.io/v1alpha1
kind: ClusterExtensionRevision
metadata: {name: %[1]s-1, ownerReferences: %[3]s}
spec:
  revision: 1
  phases:
  - name: all
    objects:
    - object: {apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: %[1]s, namespace: %[2]s}, spec: {podSelector: {}}}
`, chain, w.name, owners), "create", "-f", "-")
		w.t.Cleanup(func() { w.Kubectl("delete", "--ignore-not-found", "--wait=false", "cer", chain+"-1") })
		w.awaitRevision(chain+"-1", "it is rolled out", succeeded)
	}
	mallory := w.author("mallory")
	w.apply(mallory, owned, w.extend(owned, w.name))
	w.awaitExtension(owned, "it is another's", is("Ready=False/NameTaken: "+owned+"-1 has another owner"))
	w.says(w.answers(w.admin(), owned, "NameTaken"), "Succeeded", "admin")
	w.apply(mallory, w.name, w.extend(w.name, w.name, "penstock.dev/upgrade-approval: Manual"))
	w.awaitExtension(w.name, "nothing is proposed", is("Ready=False/NameTaken: "+w.name+"-1 was not made for this ClusterExtension"))
	w.apply(mallory, w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "mallory cannot", all(is("Ready=False/Denied"), deniedTo(mallory.name)))
	for _, chain := range []string{w.name, owned} {
		w.hasRevision(chain+"-2", false)
		w.MustKubectl("-n", w.name, "get", "networkpolicy", chain)
	}
	if got := w.MustKubectl("get", "cer", w.name+"-1", "-o", "jsonpath={.metadata.generation}{.metadata.ownerReferences}{.spec.lifecycleState}"); got != "1Active" {
		w.t.Errorf("the revision is %s", got)
	}
	w.grant(mallory.name, "User", mayWrite+mayInstall+"- {apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: [delete]}\n")
	w.again(mallory, w.name)
	w.awaitExtension(w.name, "with the right to delete what goes, they may", installed("1.0.0"))
	w.awaitRevision(w.name+"-2", "it is a revision of the chain", succeeded)
}

// Configuration: objects that the user's configuration adds are checked against the author's
// rights. Here these are objects in another namespace, and rules of a role.
func configured(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0", OwnNamespace: true})
	other, chart := w.name+"-other", w.name+"-chart"
	w.MustKubectl("create", "namespace", other)
	mallory := w.person("mallory", mayWrite+mayCreate)
	w.MustKubectlInput(fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: mallory, namespace: %[1]s}
rules:
- {apiGroups: ["", apps, rbac.authorization.k8s.io], resources: [configmaps, serviceaccounts, deployments, roles, rolebindings], verbs: [create, get, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: mallory, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: mallory}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: %[2]q}]
`, w.name, mallory.name), "create", "-f", "-")
	watch := func(namespace string) string {
		return fmt.Sprintf("config: {configType: Inline, inline: {watchNamespace: %q}}", namespace)
	}
	w.apply(mallory, w.name, w.extend(w.name, w.name, watch(other)))
	// Until kube-apiserver has observed the role, mallory also lacks the rights of that role.
	w.awaitExtension(w.name, "mallory cannot write there", all(is("Ready=False/Denied"), deniedTo(mallory.name, "roles.rbac.authorization.k8s.io "+other+"/"),
		func(e *extension.Extension) bool {
			return !strings.Contains(message(e, "Ready"), "deployments.apps "+w.name+"/"+w.name+";")
		}))
	ref := w.pushFiles("charts/"+w.name, map[string]string{
		"Chart.yaml":          "apiVersion: v2\nname: lamp\nversion: 1.0.0\n",
		"templates/role.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: {{ .Release.Name }}}\nrules: {{ .Values.rules | toJson }}\n",
	})
	rules := func(resource string) string {
		return fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: %s}, spec: {namespace: %s, source: {sourceType: Chart, chart: {ref: %q}}, config: {configType: Inline, inline: {rules: [{apiGroups: [\"\"], resources: [%s], verbs: [get]}]}}}}", chart, w.name, ref, resource)
	}
	w.apply(mallory, chart, rules("secrets"))
	w.awaitExtension(chart, "mallory cannot hand that on", all(is("Ready=False/Denied"), deniedTo(mallory.name, "get secrets in namespace "+w.name+" (granted by Role "+w.name+"/"+chart+")")))
	w.hasRevision(w.name+"-1", false)
	w.hasRevision(chart+"-1", false)
	w.apply(mallory, w.name, w.extend(w.name, w.name, watch(w.name)))
	w.apply(mallory, chart, rules("configmaps"))
	w.awaitExtension(w.name, "mallory may have it where they may write", installed("1.0.0"))
	w.awaitExtension(chart, "mallory may hand on what they have", is("Progressing=True/Succeeded", "Ready=True/Succeeded"))
}

// Selector: a catalog that the selector excludes has no effect, with any content.
func selected(w shared) {
	bundles := w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.apply(w.author("alice"), w.name, w.extend(w.name, w.name, "selector: {matchLabels: {olm.operatorframework.io/metadata.name: "+w.name+"}}"))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.publish(w.name+"-other", bundle{Package: w.name, Version: "9.0.0", Replaces: "1.0.0"})
	w.MustKubectl("patch", "clustercatalog", w.name+"-other", "--type=merge", "-p", `{"spec":{"priority":100}}`)
	w.publish(w.name, append(bundles, bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0"})...)
	r := w.awaitRevision(w.name+"-2", "it is proposed", waitsForApproval)
	if cause := r.Annotations[olmv1alpha1.ChangeCauseAnnotation]; cause != "1.1.0 proposed, from channel stable" || r.Annotations[extension.CatalogAnnotation] != w.name {
		w.t.Errorf("%s, of catalog %s", cause, r.Annotations[extension.CatalogAnnotation])
	}
}

// Catalog: a catalog of another user offers a bundle with more rights. The rights of the acting
// identity limit it: the ServiceAccount or the author.
func catalogOfOthers(w shared) {
	other := w.name + "-other"
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.grant("installer", "ServiceAccount", mayInstall)
	alice := w.person("alice", mayWrite+mayInstall+"- {apiGroups: [\"\"], resources: [serviceaccounts], resourceNames: [installer], verbs: [impersonate]}\n")
	w.apply(alice, w.name, w.extend(w.name, w.name, "serviceAccount: {name: installer}"))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	role := fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %s}, rules: [{apiGroups: [\"\"], resources: [secrets], verbs: [get]}]}", other)
	w.publish(other, bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0", More: []string{role}})
	w.MustKubectl("patch", "clustercatalog", other, "--type=merge", "-p", `{"spec":{"priority":100}}`)
	w.awaitExtension(w.name, "the ServiceAccount cannot hand that on", all(deniedTo("system:serviceaccount:"+w.name+":installer", "get secrets", "granted by ClusterRole "+other),
		func(e *extension.Extension) bool {
			return e.Status.Install != nil && e.Status.Install.Bundle.Version == "1.0.0"
		}))
	second := w.name + "-second"
	w.apply(alice, second, w.extend(second, w.name))
	w.awaitExtension(second, "alice cannot hand that on", all(is("Ready=False/Denied"), deniedTo(alice.name, "get secrets", "granted by ClusterRole "+other)))
	w.hasRevision(w.name+"-2", false)
	w.hasRevision(second+"-1", false)
	if out := w.Kubectl("get", "clusterrole", other); out.ExitCode == 0 {
		w.t.Errorf("the role is there: %s", out)
	}
}

// Withdrawn: the author's rights are checked when a revision is created, not when the extension is
// written.
func withdrawn(w shared) {
	alice := w.author("alice")
	w.apply(alice, w.name, w.extend(w.name, w.name))
	w.grant(alice.name, "User", mayWrite)
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.awaitExtension(w.name, "alice may no longer", all(is("Ready=False/Denied"), func(e *extension.Extension) bool {
		return strings.Contains(message(e, "Ready"), alice.name+" cannot create clusterextensionrevisions")
	}))
	w.hasRevision(w.name+"-1", false)
}

// NotImpersonate: a ServiceAccount that the author cannot impersonate gives no rights.
func notImpersonate(w shared) {
	bundles := w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.grant("installer", "ServiceAccount", mayInstall)
	alice := w.author("alice")
	w.apply(alice, w.name, w.extend(w.name, w.name, "serviceAccount: {name: installer}"))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.publish(w.name, append(bundles, bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0"})...)
	w.awaitRevision(w.name+"-2", "it is proposed", waitsForApproval)
}

// Deletion: the author wants the objects to stay. Another user who can write and delete the
// extension still cannot delete them.
func deleted(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.apply(w.author("alice"), w.name, w.extend(w.name, w.name, "penstock.dev/teardown-policy: Orphan"))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	mallory := w.person("mallory", mayWrite+"- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [create, get, patch]}\n")
	mallory.MustKubectl("annotate", "--overwrite", "clusterextension", w.name, "penstock.dev/teardown-policy=Delete")
	w.awaitExtension(w.name, "mallory cannot", deniedTo(mallory.name))
	if got := w.MustKubectl("get", "cer", w.name+"-1", "-o", "jsonpath={.spec.teardownPolicy}"); got != "Orphan" {
		w.t.Errorf("the policy is %s", got)
	}
	mallory.MustKubectl("delete", "clusterextension", w.name)
	w.awaitGone(revisions, w.name+"-1", "it goes with the extension")
	w.apply(mallory, w.name, w.extend(w.name, w.name, "penstock.dev/collision-protection: None"))
	w.awaitExtension(w.name, "mallory gets nothing by the name", all(is("Ready=False/Denied"), deniedTo(mallory.name)))
	w.MustKubectl("-n", w.name, "get", "configmap/"+w.name+"-config", "deployment/"+w.name)
}
