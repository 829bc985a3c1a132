//go:build integration

package extension_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// conformUpdate are OLM v1's scenarios about upgrades, in our own words.
func conformUpdate() map[string]scenario {
	return map[string]scenario{
		"Update":           update,
		"AutoUpdate":       autoUpdate,
		"StuckUpgrade":     stuckUpgrade,
		"Duplicate":        duplicate,
		"UnsafeDefinition": unsafeDefinition,
	}
}

// Update: a version that does not succeed the installed version is refused until the user sets
// SelfCertified. Objects that the new version lacks are deleted.
func update(w shared) {
	extra := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s-extra}, data: {}}", w.name)
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0", More: []string{extra}}, bundle{Package: w.name, Version: "1.0.1", Replaces: "1.0.0"}, bundle{Package: w.name, Version: "1.2.0", Replaces: "1.0.1"})
	alice := w.installer()
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.0"))
	w.awaitExtension(w.name, "1.0.0 is installed", installed("1.0.0"))
	w.there("configmap/" + w.name + "-extra")
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.2.0"))
	e := w.awaitExtension(w.name, "1.2.0 is refused", is("Progressing=True/Retrying", "Installed=True/Succeeded", "Ready=False/Unresolved: 1.0.1 first"))
	if want := fmt.Sprintf("error upgrading from currently installed version %q: no bundles found for package %q matching version %q", "1.0.0", w.name, "1.2.0"); message(e, "Progressing") != want {
		w.t.Errorf("the message is %q, want %q", message(e, "Progressing"), want)
	}
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.2.0", "upgradeConstraintPolicy: SelfCertified"))
	w.awaitExtension(w.name, "1.2.0 is installed", all(installed("1.2.0"), func(e *extension.Extension) bool {
		return len(e.Status.ActiveRevisions) == 1 && e.Status.ActiveRevisions[0].Name == w.name+"-2"
	}))
	w.awaitRevision(w.name+"-1", "it is archived", func(r *olmv1alpha1.ClusterExtensionRevision) bool {
		return r.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived
	})
	w.MustKubectl("-n", w.name, "wait", "--for=delete", poll.TimeoutFlag, "configmap/"+w.name+"-extra")
}

// AutoUpdate: a newer version of the catalog is installed automatically, with the rights of a
// ServiceAccount that the author can impersonate.
func autoUpdate(w shared) {
	pushed := w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.MustKubectl("-n", w.name, "create", "serviceaccount", "installer")
	w.grant("installer", "ServiceAccount", mayInstall)
	alice := w.person("alice", mayWrite+mayInstall+`
- {apiGroups: [""], resources: [serviceaccounts], verbs: [impersonate]}
`)
	w.apply(alice, w.name, w.extend(w.name, w.name, "serviceAccount: {name: installer}"))
	w.awaitExtension(w.name, "1.0.0 is installed", installed("1.0.0"))
	w.publish(w.name, append(pushed, bundle{Package: w.name, Version: "1.0.1", Replaces: "1.0.0"})...)
	w.awaitExtension(w.name, "1.0.1 is installed", installed("1.0.1"))
	w.apply(alice, w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "the ServiceAccount is cleared, and nothing else changes", all(installed("1.0.1"), func(e *extension.Extension) bool { return e.Spec.ServiceAccount == nil }))
}

// StuckUpgrade: the status shows both revisions and the problem. An edit of the spec corrects it.
func stuckUpgrade(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"}, bundle{Package: w.name, Version: "1.0.1", Replaces: "1.0.0", Image: plane.UnpullableImages + "nothing:v1"},
		bundle{Package: w.name, Version: "1.0.2", Replaces: "1.0.1", SkipRange: ">=1.0.0 <1.0.2"})
	alice := w.installer()
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.0"))
	w.awaitExtension(w.name, "1.0.0 is installed", installed("1.0.0"))
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.1"))
	w.awaitExtension(w.name, "1.0.1 is stuck", all(
		is("Installed=True/Succeeded", "Progressing=True/RollingOut: Revision 1.0.1 is rolling out.", "Ready=False/RollingOut: Deployment "+w.name+"/"+w.name, "Ready=False/RollingOut: ImagePull"),
		func(e *extension.Extension) bool {
			active := e.Status.ActiveRevisions
			if len(active) != 2 || active[0].Name != w.name+"-1" || active[1].Name != w.name+"-2" || e.Status.Install == nil || e.Status.Install.Bundle.Version != "1.0.0" {
				return false
			}
			progressing, available := meta.FindStatusCondition(active[1].Conditions, "Progressing"), meta.FindStatusCondition(active[1].Conditions, "Available")
			return progressing != nil && progressing.Reason == "RollingOut" && available != nil && available.Reason == "ProbeFailure"
		}))
	if got := w.MustKubectl("describe", "clusterextension", w.name); !strings.Contains(got, "phase ") || !strings.Contains(got, "Deployment "+w.name+"/"+w.name) {
		w.t.Errorf("describe does not name the phase and the object that fail:\n%s", got)
	}
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.2"))
	w.awaitExtension(w.name, "the edit corrects it", installed("1.0.2"))
}

// Duplicate: a second extension of the same package takes nothing from the first.
func duplicate(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	alice := w.installer()
	w.apply(alice, w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	second := w.name + "-again"
	w.apply(alice, second, w.extend(second, w.name))
	w.awaitExtension(second, "it collides", is("Progressing=True/Retrying: revision object collisions", "Installed=False/Failed", "Stalled=True/Collision"))
	w.awaitExtension(w.name, "the first one is as it was", all(installed("1.0.0"), is("Available=True/ProbesSucceeded")))
}

// UnsafeDefinition: a definition that loses a field is refused, until the user disables the check.
func unsafeDefinition(w shared) {
	w.publish(w.name,
		bundle{Package: w.name, Version: "1.0.0", More: []string{definitionOf(w.name, "              size: {type: string}\n              color: {type: string}\n")}},
		bundle{Package: w.name, Version: "1.0.1", Replaces: "1.0.0", More: []string{definitionOf(w.name, "              size: {type: string}\n")}})
	alice := w.installer()
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.0"))
	w.awaitExtension(w.name, "1.0.0 is installed", installed("1.0.0"))
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.1"))
	w.awaitExtension(w.name, "1.0.1 is refused", is(fmt.Sprintf("Progressing=True/Retrying: error for resolved bundle %q with version %q", w.name+".v1.0.1", "1.0.1"),
		"Progressing=True/Retrying: color", "Installed=True/Succeeded", "Ready=False/UnsafeDefinitions: color", "Stalled=True/UnsafeDefinitions"))
	w.says(w.answers(w.admin(), w.name, "UnsafeDefinitions"), "1.0.1", "color")
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.1", "install: {preflight: {crdUpgradeSafety: {enforcement: None}}}"))
	w.awaitExtension(w.name, "1.0.1 is installed", installed("1.0.1"))
}
