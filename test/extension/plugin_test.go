//go:build integration

package extension_test

import (
	"strings"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/plugin"
)

// pluginScenarios use only the plugin.
func pluginScenarios() map[string]scenario {
	return map[string]scenario{
		"Walk":   byPlugin,
		"Denied": deniedByPlugin,
		"Leave":  leaveByPlugin,
	}
}

// mayFollow are the rights to follow extensions and to approve.
const mayFollow = `
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensions], verbs: [list, watch]}
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [get, list, watch, patch]}
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions/diff, clusterextensionrevisions/history, revisiondiffs, revisionhistories], verbs: [get, list]}
- {apiGroups: [catalog.penstock.dev], resources: [catalogpackages, catalogpackages/upgrades], verbs: [get, list]}
`

// types runs a command from the plugin's help with the names of the scenario. The user answers yes.
// It fails unless the command exits with code.
func (w shared) types(who person, code int, line string) plugin.Output {
	w.t.Helper()
	user := plugin.User{Kubeconfig: who.Kubeconfig(), Input: plugin.Yes{}}
	out := user.Run(w.t, strings.NewReplacer("lighthouse", w.name, "harbour", w.name, "examples", w.name, "Beacon", w.name).Replace(line))
	if out.ExitCode != code {
		w.t.Fatalf("want exit %d: %s", code, out)
	}
	return out
}

func (w shared) says(text string, wanted ...string) {
	w.t.Helper()
	for _, one := range wanted {
		if !strings.Contains(text, one) {
			w.t.Errorf("no %q in:\n%s", one, text)
		}
	}
}

// byPlugin searches, installs with approval, upgrades to a chosen and to a proposed version, and
// uninstalls. It runs each example of the commands' help.
func byPlugin(w shared) {
	alice := w.person("alice", mayWrite+mayInstall+mayFollow)
	one := bundle{Package: w.name, Version: "1.0.0"}
	one = w.publish(w.name, one)[0]
	// 1. Search.
	w.says(w.types(alice, 0, `kubectl penstock search lighthouse`).Stdout, w.name, "1.0.0", "stable")
	w.types(alice, 0, `kubectl penstock search Beacon --catalog examples`)
	w.types(alice, 1, `kubectl penstock search `+w.name+`-is-nowhere`)
	// 2. Install. A dry-run stores nothing.
	w.says(w.types(alice, 0, `kubectl penstock install lighthouse -n harbour --dry-run`).Stdout, "the latest version is 1.0.0", "packageName: "+w.name)
	w.awaitGone(extension.Resource, w.name, "a dry-run wrote nothing")
	w.t.Cleanup(func() { w.Kubectl("delete", "--ignore-not-found", "--wait=false", "clusterextension", w.name) })
	out := w.types(alice, 0, `kubectl penstock install lighthouse -n harbour --version 1.0.x --channel stable --approval Manual`)
	w.says(out.Stdout, "penstock.dev/upgrade-approval: Manual", w.name+"-1: 1.0.0 proposed, from channel stable", "nothing → "+w.name+"-1")
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.types(alice, 3, `kubectl penstock install lighthouse -n harbour --yes`)
	// 3. A newer version exists, and the spec excludes it.
	two := w.publish(w.name, one, bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0"})[1]
	w.says(w.types(alice, 0, `kubectl penstock upgrades lighthouse`).Stdout, "1.0.0 is installed", "1.1.0 is blocked: it is not in the range 1.0.x (Range)")
	w.says(w.types(alice, 0, `kubectl penstock upgrades`).Stdout, w.name, "Manual")
	// The upgrade of the cluster does not depend on this version. Readiness pulls and renders the
	// package to find that out.
	ready := plugin.User{Kubeconfig: w.Kubeconfig()}.Run(w.t, "kubectl penstock ready --extension "+w.name+" --plan")
	w.says(ready.Stdout, "nothing found that blocks", "Before or after the cluster", w.name+" 1.0.0 to 1.1.0", "kubectl penstock upgrade "+w.name+" --version 1.1.0")
	w.says(w.types(alice, 0, `kubectl penstock upgrade lighthouse --dry-run`).Stderr, "nothing is proposed")
	w.says(w.types(alice, 0, `kubectl penstock upgrade lighthouse --version 1.1.0 --yes`).Stdout, "1.0.x → 1.1.0", w.name+"-2: 1.1.0 proposed")
	w.awaitExtension(w.name, "it is upgraded", installed("1.1.0"))
	// 4. A proposed version is reviewed and approved.
	alice.MustKubectl("patch", "clusterextension", w.name, "--type=merge", "-p", `{"spec":{"source":{"catalog":{"version":"1.x"}}}}`)
	w.publish(w.name, one, two, bundle{Package: w.name, Version: "1.2.0", Replaces: "1.1.0"})
	proposal := w.awaitRevision(w.name+"-3", "it is proposed", waitsForApproval)
	w.says(w.types(alice, 1, `kubectl penstock upgrade lighthouse --dry-run`).Stdout, "1.2.0 proposed, from channel stable", w.name+"-2 → "+w.name+"-3", "text")
	w.says(w.types(alice, 0, `kubectl penstock upgrade lighthouse`).Stderr, "Roll out "+proposal.Name)
	w.awaitExtension(w.name, "it is upgraded", installed("1.2.0"))
	history := alice.MustKubectl("get", "revisionhistory", w.name, "-o", "jsonpath={range .revisions[*]}{.requestedBy}/{.approvedAt} {end}")
	if strings.Count(history, alice.name+"/2") != 3 {
		w.t.Errorf("history does not name the approver: %s", history)
	}
	// 5. Uninstall.
	w.says(w.types(alice, 0, `kubectl penstock uninstall lighthouse --dry-run`).Stdout, "ClusterExtension "+w.name+" will be deleted, with")
	w.says(w.types(alice, 0, `kubectl penstock uninstall lighthouse --yes --timeout 5m`).Stderr, w.name+" is uninstalled")
	w.awaitGone(extension.Resource, w.name, "it is uninstalled")
	if left := w.MustKubectl("-n", w.name, "get", "configmap", w.name+"-config", "--ignore-not-found", "-o", "name"); left != "" {
		w.t.Errorf("%s is left", left)
	}
}

// deniedByPlugin: a user can write extensions, but lacks the rights to the package's objects. The
// plugin names the missing rights, and nothing is installed.
func deniedByPlugin(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	bob := w.person("bob", mayWrite+mayFollow+`
- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [create]}`)
	w.t.Cleanup(func() { w.Kubectl("delete", "--ignore-not-found", "--wait=false", "clusterextension", w.name) })
	out := w.types(bob, 1, `kubectl penstock install lighthouse -n harbour --yes`)
	w.says(out.Stderr, "Denied", bob.name+" cannot", "deployments.apps")
	for _, command := range []string{"status", "why"} {
		w.says(w.types(bob, 1, `kubectl penstock `+command+` lighthouse`).Stdout, "✗ "+w.name+" is not installed: ", bob.name+" cannot", "An administrator of the cluster must grant the rights that the message names")
	}
	// An administrator applies the printed manifests. No more is needed.
	_, printed, _ := strings.Cut(out.Stderr, "\nkubectl apply -f - <<'EOF'\n")
	roles, _, _ := strings.Cut(printed, "\nEOF\n")
	w.says(roles, "kind: Role\n", "namespace: "+w.name, "kind: ClusterRoleBinding")
	w.t.Cleanup(func() { w.KubectlInput(roles, "delete", "--ignore-not-found", "-f", "-") })
	w.MustKubectlInput(roles, "apply", "-f", "-")
	w.awaitExtension(w.name, "it is installed after the grant", installed("1.0.0"))
}

// leaveByPlugin: when uninstall times out, it names the remaining objects and deletes nothing else.
// With --cascade=orphan revisions and objects stay, and the next extension of that name takes them
// over.
func leaveByPlugin(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	// Setting an owner of the remaining revisions needs the right to delete them.
	alice := w.person("alice", mayWrite+mayInstall+mayFollow+"- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [delete]}\n")
	w.t.Cleanup(func() { w.Kubectl("delete", "--ignore-not-found", "--wait=false", "clusterextension", w.name) })
	install := func() string {
		out := w.types(alice, 0, `kubectl penstock install lighthouse -n harbour --yes`)
		w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
		return out.Stdout
	}
	revisions := func() []string {
		return strings.Fields(w.MustKubectl("get", "cer", "-l", "olm.operatorframework.io/owner-name="+w.name, "-o", "jsonpath={.items[*].metadata.name}"))
	}
	config := func() string {
		return w.MustKubectl("-n", w.name, "get", "configmap", w.name+"-config", "-o", "jsonpath={.metadata.uid}")
	}
	// 1. Orphans. The garbage collector discovers new types only every 30 seconds, so it might not
	// know revisions yet.
	install()
	second, before := revisions()[0], config()
	w.says(w.types(alice, 0, `kubectl penstock uninstall lighthouse --cascade=orphan --dry-run`).Stdout, "ClusterExtension "+w.name+" will be deleted; 1 revision and", "stay as they are")
	out := w.types(alice, 0, `kubectl penstock uninstall lighthouse --cascade=orphan --yes`)
	w.says(out.Stderr, "ClusterExtension "+w.name+" is deleted", "its revisions stay: kubectl penstock status "+w.name)
	if strings.Contains(out.Stderr, "uninstalled") {
		w.t.Errorf("the extension was not uninstalled: %s", out)
	}
	w.awaitRevision(second, "it stays, without an owner", func(r *olmv1alpha1.ClusterExtensionRevision) bool {
		return len(r.OwnerReferences) == 0 && r.DeletionTimestamp == nil
	})
	// 2. The next extension takes them over.
	w.says(install(), "that an earlier ClusterExtension has left")
	if after := config(); after != before {
		w.t.Errorf("the object was replaced: it is %s, before %s", after, before)
	}
	w.says(w.types(alice, 0, `kubectl penstock uninstall lighthouse --yes --timeout 2m`).Stderr, w.name+" is uninstalled")
	// 3. An object that cannot be deleted.
	install()
	hold := func(finalizers string) {
		w.MustKubectl("-n", w.name, "patch", "configmap", w.name+"-config", "--type=merge", "-p", `{"metadata":{"finalizers":`+finalizers+`}}`)
	}
	hold(`["example.com/hold"]`)
	w.t.Cleanup(func() {
		w.Kubectl("-n", w.name, "patch", "configmap", w.name+"-config", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	})
	first := revisions()[0]
	w.says(w.types(alice, 124, `kubectl penstock uninstall lighthouse --yes --timeout 3s`).Stderr,
		"the deletion of "+w.name+" continues by itself, and nothing else was deleted; "+first+" is left", "not done within 3s")
	hold("null")
	w.awaitGone(extension.Resource, w.name, "its object can go")
	w.awaitGone(olmv1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions"), first, "its object can go")
}
