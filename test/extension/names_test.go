//go:build integration

package extension_test

import (
	"fmt"
	"strings"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/cluster"
)

// nameScenarios test with whose rights revisions are created.
func nameScenarios() map[string]scenario {
	return map[string]scenario{
		"Denied":         denied,
		"Proposed":       proposed,
		"Manual":         manual,
		"ServiceAccount": serviceAccount,
	}
}

// Denied: the extension's author lacks rights. The condition names them, and nothing is written.
// When the rights are granted, Penstock continues by itself.
func denied(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	bob := w.person("bob", mayWrite+"- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [create]}\n")
	w.apply(bob, w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "the missing rights are named", func(e *extension.Extension) bool {
		text := message(e, "Progressing")
		return condition(e, "Progressing") == "False/Blocked" && strings.Contains(text, bob.name+" cannot") && strings.Contains(text, "serviceaccounts")
	})
	if out := w.Kubectl("get", "cer", w.name+"-1"); out.ExitCode == 0 {
		w.t.Errorf("there is a revision: %s", out)
	}
	w.grant(bob.name, "User", mayWrite+mayInstall)
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
}

// Proposed: the author has not decided about later versions, so an upgrade from a catalog is only
// proposed. A newer proposal replaces it. A user approves it with their own rights.
func proposed(w shared) {
	bundles := w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	alice := w.author("alice")
	w.apply(alice, w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	bundles = w.publish(w.name, append(bundles, bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0"})...)
	first := w.awaitRevision(w.name+"-2", "it is proposed", waitsForApproval)
	if cause := first.Annotations[olmv1alpha1.ChangeCauseAnnotation]; cause != "1.1.0 proposed, from channel stable" {
		w.t.Errorf("the cause is %q", cause)
	}
	w.publish(w.name, append(bundles, bundle{Package: w.name, Version: "1.2.0", Replaces: "1.1.0", SkipRange: ">=1.0.0 <1.2.0"})...)
	w.awaitRevision(w.name+"-3", "the newer version is proposed", waitsForApproval)
	w.awaitGone(revisions, w.name+"-2", "nobody approved the older one")
	carol := w.person("carol", mayApprove+mayInstall)
	w.approve(carol, w.name+"-1", w.name+"-3")
	w.awaitExtension(w.name, "it is installed", installed("1.2.0"))
	r := w.awaitRevision(w.name+"-3", "it was approved", succeeded)
	if by := r.Annotations[olmv1alpha1.ApprovedByAnnotation]; by != carol.name {
		w.t.Errorf("the revision was approved by %q, want %s", by, carol.name)
	}
}

// Manual: an installation waits for approval too. The approver needs the rights, not the author.
func manual(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	bob := w.person("bob", mayWrite+mayCreate)
	w.apply(bob, w.name, w.extend(w.name, w.name, "penstock.dev/upgrade-approval: Manual"))
	w.awaitRevision(w.name+"-1", "it is proposed", waitsForApproval)
	if out := w.Kubectl("-n", w.name, "get", "configmap", w.name+"-config"); out.ExitCode == 0 {
		w.t.Errorf("an object was written: %s", out)
	}
	out := w.approval(w.person("dave", mayApprove), "", w.name+"-1")
	if out.ExitCode == 0 || !strings.Contains(out.Stderr, "cannot") {
		w.t.Errorf("a user without rights approved: %s", out)
	}
	w.approve(w.person("carol", mayApprove+mayInstall), "", w.name+"-1")
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
}

// ServiceAccount: later upgrades use the rights of a ServiceAccount that the author can
// impersonate.
func serviceAccount(w shared) {
	bundles := w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.grant("installer", "ServiceAccount", mayInstall)
	alice := w.person("alice", mayWrite+mayInstall+"- {apiGroups: [\"\"], resources: [serviceaccounts], resourceNames: [installer], verbs: [impersonate]}\n")
	w.apply(alice, w.name, w.extend(w.name, w.name, "serviceAccount: {name: installer}"))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.publish(w.name, append(bundles, bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0"})...)
	w.awaitExtension(w.name, "it is upgraded", installed("1.1.0"))
	r := w.awaitRevision(w.name+"-2", "it was rolled out", succeeded)
	if who := r.Status.RequestedBy; who == nil || who.Username != "system:serviceaccount:"+w.name+":installer" {
		w.t.Errorf("the revision was made by %v", who)
	}
}

var revisions = olmv1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions")

// mayCreate is the right to create revisions. mayApprove are the rights to read and approve
// proposals, without the rights to their objects.
const (
	mayCreate  = "- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [create]}\n"
	mayApprove = "- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions, clusterextensionrevisions/diff, revisiondiffs], verbs: [get, patch]}\n"
)

// approve approves a proposal by the digest of its diff.
func (w shared) approve(as person, from, name string) {
	w.t.Helper()
	if out := w.approval(as, from, name); out.ExitCode != 0 {
		w.t.Fatal(out)
	}
}

func (w shared) approval(as person, from, name string) cluster.Output {
	w.t.Helper()
	var digest string
	if from == "" {
		digest = as.MustKubectl("get", "cer", name, "--subresource=diff", "-o", "jsonpath={.summary.approvalDigest}")
	} else {
		digest = as.MustKubectl("get", "revisiondiff", from+".."+name, "-o", "jsonpath={.summary.approvalDigest}")
	}
	return as.Kubectl("patch", "cer", name, "--type=merge", "-p",
		fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}},"spec":{"lifecycleState":"Active"}}`, olmv1alpha1.ApproveAnnotation, digest))
}
