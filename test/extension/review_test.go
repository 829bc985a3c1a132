//go:build integration

package extension_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/note"
)

// Reviewed: an upgrade without relevant notes is installed automatically. An upgrade that gains
// rights is proposed, with notes for the reviewer. Neither repeated writes nor a forged annotation
// release it. A user who asks for a version gets it.
func reviewed(w shared) {
	role := fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s-reader}\nrules: [{apiGroups: [\"\"], resources: [secrets], verbs: [get]}]\n", w.name)
	extra := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-extra}\ndata: {a: b}\n", w.name)
	bundles := w.publish(w.name, bundle{Package: w.name, Version: "1.0.0", More: []string{extra}})
	w.grant("installer", "ServiceAccount", mayInstall)
	const asInstaller = "- {apiGroups: [\"\"], resources: [serviceaccounts], resourceNames: [installer], verbs: [impersonate]}\n- {apiGroups: [\"\"], resources: [secrets], verbs: [get]}\n"
	alice := w.person("alice", mayWrite+mayInstall+mayFollow+asInstaller)
	const asked = "penstock.dev/upgrade-approval: Reviewed"
	w.apply(alice, w.name, w.extend(w.name, w.name, "serviceAccount: {name: installer}", asked))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))

	for annotation, refusal := range map[string]string{
		"penstock.dev/hold-on=Rights":            `"Rights" is no reason of a note: it must be one of Deleted, RightsGained`,
		"penstock.dev/hold-on=RightsGained:All":  `"All" is no severity of notes with the reason RightsGained`,
		"penstock.dev/upgrade-approval=reviewed": `supported values: "Automatic", "Reviewed", "Manual"`,
	} {
		if out := alice.Kubectl("annotate", "--overwrite", "clusterextension", w.name, annotation); out.ExitCode == 0 || !strings.Contains(out.Stderr, refusal) {
			w.t.Errorf("%s: %s", annotation, out)
		}
	}

	bundles = w.publish(w.name, append(bundles, bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0", More: []string{extra}})...)
	w.awaitExtension(w.name, "nothing holds it", installed("1.1.0"))
	r := w.awaitRevision(w.name+"-2", "it was rolled out", succeeded)
	if who := r.Status.RequestedBy; who == nil || who.Username != "system:serviceaccount:"+w.name+":installer" {
		w.t.Errorf("the revision was made by %v", who)
	}

	bundles = w.publish(w.name, append(bundles, bundle{Package: w.name, Version: "1.2.0", Replaces: "1.1.0", More: []string{extra, role}})...)
	r = w.awaitRevision(w.name+"-3", "it is held", waitsForApproval)
	if by := r.Annotations[olmv1alpha1.HeldByAnnotation]; by != note.RightsGained {
		w.t.Errorf("the revision is held by %q", by)
	}
	const why = "gains get on secrets: it reads Secrets"
	w.awaitExtension(w.name, "it says so", is("UpgradeAvailable=True/Proposed", "Ready=True/Succeeded"))
	w.says(w.MustKubectl("get", "clusterextension", w.name, "-o", `jsonpath={.status.conditions[?(@.type=="UpgradeAvailable")].message}`), "RightsGained: ClusterRole "+w.name+"-reader: "+why)
	var diff olmv1alpha1.RevisionDiff
	if err := json.Unmarshal([]byte(w.MustKubectl("get", "cer", r.Name, "--subresource=diff", "-o", "json")), &diff); err != nil {
		w.t.Fatal(err)
	}
	if !slices.ContainsFunc(diff.Notes, func(one olmv1alpha1.DiffNote) bool {
		return one.Reason == note.RightsGained && strings.Contains(one.Message, why)
	}) {
		w.t.Errorf("a reviewer sees the notes %v", diff.Notes)
	}
	w.says(w.types(alice, 0, `kubectl penstock why lighthouse`).Stdout, "RightsGained", why)

	// A robot repeats its write, and a user writes annotations that belong to Penstock.
	alice.MustKubectl("annotate", "--overwrite", "clusterextension", w.name, extension.AuthorAnnotation+"=me")
	alice.MustKubectl("annotate", "--overwrite", "clusterextension", w.name, extension.OnFailureAnnotation+"=Rollback")
	w.MustKubectl("annotate", "--overwrite", "cer", r.Name, olmv1alpha1.HeldUnderAnnotation+"=x", olmv1alpha1.HeldByAnnotation+"=Nothing")
	alice.MustKubectl("patch", "clusterextension", w.name, "--type=merge", "-p", `{"spec":{"progressDeadlineMinutes":31}}`)
	w.awaitExtension(w.name, "the write was looked at, and it is still held", is("UpgradeAvailable=True/Proposed"))
	held := w.awaitRevision(r.Name, "it is the same", waitsForApproval)
	if held.UID != r.UID || held.Annotations[olmv1alpha1.HeldByAnnotation] != note.RightsGained {
		w.t.Errorf("the revision is held by %q, and its UID is %s, was %s", held.Annotations[olmv1alpha1.HeldByAnnotation], held.UID, r.UID)
	}

	// After a change of the policy and back, the proposal again states why it waits.
	for _, one := range [][2]string{{"Manual", ""}, {"Reviewed", note.RightsGained}} {
		alice.MustKubectl("annotate", "--overwrite", "clusterextension", w.name, extension.ApprovalAnnotation+"="+one[0])
		held = w.awaitRevision(r.Name, "it is held by "+one[1], func(r *olmv1alpha1.ClusterExtensionRevision) bool {
			return r.Annotations[olmv1alpha1.HeldByAnnotation] == one[1] && strings.HasPrefix(r.Annotations[olmv1alpha1.LifecycleReasonAnnotation], "annotation penstock.dev/upgrade-approval is "+one[0])
		})
		if held.UID != r.UID || !waitsForApproval(held) {
			w.t.Errorf("the proposal was replaced, or no longer waits: %v", held.ObjectMeta)
		}
	}

	w.says(w.types(alice, 0, `kubectl penstock upgrade lighthouse`).Stdout, why)
	w.awaitExtension(w.name, "alice approved it", installed("1.2.0"))

	// A new version deletes an object, and alice asks for that version.
	w.publish(w.name, append(bundles, bundle{Package: w.name, Version: "1.3.0", Replaces: "1.2.0", More: []string{role}})...)
	r = w.awaitRevision(w.name+"-4", "it is held", waitsForApproval)
	if by := r.Annotations[olmv1alpha1.HeldByAnnotation]; by != note.Deleted {
		w.t.Errorf("the revision is held by %q", by)
	}
	alice.MustKubectl("patch", "clusterextension", w.name, "--type=merge", "-p", `{"spec":{"source":{"catalog":{"version":"1.3.0"}}}}`)
	w.awaitExtension(w.name, "alice asked for it", installed("1.3.0"))
	r = w.awaitRevision(w.name+"-5", "it was rolled out", succeeded)
	if who := r.Status.RequestedBy; who == nil || who.Username != alice.name || r.Annotations[olmv1alpha1.HeldByAnnotation] != "" {
		w.t.Errorf("the revision was made by %v", who)
	}
}
