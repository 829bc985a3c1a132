//go:build integration

package extension_test

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
	"github.com/penstock-project/penstock/pkg/operatorcondition"
)

// loopScenarios test the lifecycle of ClusterExtensions.
func loopScenarios() map[string]scenario {
	return map[string]scenario{
		"Yield":       yields,
		"Install":     install,
		"Windows":     maintenanceWindows,
		"Upgradeable": upgradeable,
		"Reviewed":    reviewed,
		"Ordered":     ordered,
		"Dependent":   dependent,
		"Patched":     patched,
		"Values":      valuesFrom,
		"Signed":      signed,
	}
}

// Install: a package of a catalog is installed with the rights of the extension's author. The
// author has exactly the rights needed.
func install(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	alice := w.author("alice")
	w.apply(alice, w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	r := w.awaitRevision(w.name+"-1", "it was rolled out", succeeded)
	if who := r.Status.RequestedBy; who == nil || who.Username != alice.name {
		w.t.Errorf("the revision was made by %v, want %s", who, alice.name)
	}
	owner := metav1.GetControllerOf(r)
	if owner == nil || owner.Name != w.name || owner.BlockOwnerDeletion != nil {
		w.t.Errorf("the owner is %v", owner)
	}
	for key, want := range map[string]string{
		olmv1alpha1.PackageAnnotation: w.name, olmv1alpha1.BundleAnnotation: w.name + ".v1.0.0", olmv1alpha1.VersionAnnotation: "1.0.0",
		extension.GenerationAnnotation: "1", extension.ChannelAnnotation: "stable", extension.CatalogAnnotation: w.name,
		olmv1alpha1.ChangeCauseAnnotation: "1.0.0 installed, from channel stable",
	} {
		if got := r.Annotations[key]; got != want {
			w.t.Errorf("annotation %s is %q, want %q", key, got, want)
		}
	}
	if r.Labels["olm.operatorframework.io/owner-kind"] != "ClusterExtension" || r.Labels["olm.operatorframework.io/owner-name"] != w.name {
		w.t.Errorf("the labels are %v", r.Labels)
	}
	if got := w.MustKubectl("-n", w.name, "get", "configmap", w.name+"-config", "-o", "jsonpath={.data.text} {.metadata.labels} {.metadata.annotations}"); !strings.HasPrefix(got, "1.0.0 ") || strings.Contains(got, "bundle-version") {
		w.t.Errorf("the object is %s", got)
	}
}

// Yield: fields that the annotation lists keep the values of other managers, also through repairs
// and upgrades. All other fields are repaired.
func yields(w shared) {
	tuned := func(value string) []string {
		return []string{fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-tuned}\ndata: {left: %q, kept: %q}\n", w.name, value, value)}
	}
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0", More: tuned("1")}, bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0", More: tuned("2")})
	alice := w.author("alice")
	const rule = `penstock.dev/yield: "[{selector: {groupKind: {kind: ConfigMap}}, fields: [data.left]}]"`
	changed := func() {
		w.MustKubectl("-n", w.name, "patch", "configmap", w.name+"-tuned", "--type=merge", "--field-manager=tuner", "-p", `{"data":{"left":"tuner","kept":"tuner"}}`)
	}
	becomes := func(what, left, kept string) {
		w.t.Helper()
		w.await(corev1.SchemeGroupVersion.WithResource("configmaps"), w.name+"-tuned", what, func(object *unstructured.Unstructured) (bool, error) {
			data, _, err := unstructured.NestedStringMap(object.Object, "data")
			return data["left"] == left && data["kept"] == kept, err
		})
	}
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.0"))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	changed()
	becomes("without the annotation all is repaired", "1", "1")

	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.0", rule))
	w.awaitRevision(w.name+"-2", "it yields", func(r *olmv1alpha1.ClusterExtensionRevision) bool { return succeeded(r) && len(r.Spec.Yield) == 1 })
	changed()
	becomes("the rest is repaired", "tuner", "1")
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.1.0", rule))
	w.awaitExtension(w.name, "it is upgraded", installed("1.1.0"))
	becomes("an upgrade takes nothing back", "tuner", "2")
}

// Windows: an upgrade from a catalog waits until a maintenance window of the extension opens. A
// user can start it at once. Invalid windows are refused.
func maintenanceWindows(w shared) {
	bundles := w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.grant("installer", "ServiceAccount", mayInstall)
	alice := w.person("alice", mayWrite+mayInstall+mayFollow+"- {apiGroups: [\"\"], resources: [serviceaccounts], resourceNames: [installer], verbs: [impersonate]}\n- {apiGroups: [penstock.dev], resources: [maintenancewindows], verbs: [list]}\n")
	w.apply(alice, w.name, w.extend(w.name, w.name, "serviceAccount: {name: installer}"))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.MustKubectl("label", "clusterextension", w.name, "windows="+w.name)

	window := func(spec string) string {
		return fmt.Sprintf("{apiVersion: penstock.dev/v1alpha1, kind: MaintenanceWindow, metadata: {name: %s}, spec: {%s, extensionSelector: {matchLabels: {windows: %[1]s}}}}", w.name, spec)
	}
	between := func(start, end time.Duration) string {
		now := time.Now().UTC()
		return window(fmt.Sprintf("type: Allow, start: %q, end: %q", now.Add(start).Format(time.RFC3339), now.Add(end).Format(time.RFC3339)))
	}
	w.eventually("a schedule that means nothing is refused", func() bool { // once kube-apiserver calls the webhook
		out := w.KubectlInput(window("type: Allow, schedule: 0 25 * * *, duration: 1h"), "apply", "--dry-run=server", "-f", "-")
		return strings.Contains(out.Stderr, `spec.schedule: Invalid value: "0 25 * * *"`)
	})
	for _, mistaken := range []string{"type: Allow", "type: Allow, schedule: '@daily'", "type: Sometimes, schedule: '@daily', duration: 1h"} {
		if out := w.KubectlInput(window(mistaken), "apply", "-f", "-"); out.ExitCode == 0 {
			w.t.Errorf("a window with %s is stored", mistaken)
		}
	}
	w.t.Cleanup(func() { w.Kubectl("delete", "--ignore-not-found", "maintenancewindow", w.name) })

	w.MustKubectlInput(between(time.Hour, 2*time.Hour), "apply", "-f", "-")
	w.await(maintenancewindow.Resource, w.name, "it is closed", isOpen(metav1.ConditionFalse))
	bundles = w.publish(w.name, append(bundles, bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0"})...)
	w.awaitExtension(w.name, "the upgrade waits", is("UpgradeAvailable=True/WaitingForWindow", "Ready=True/Succeeded", "Progressing=True/Succeeded"))
	w.MustKubectlInput(between(-time.Hour, time.Hour), "apply", "-f", "-")
	w.awaitExtension(w.name, "the window is open", installed("1.1.0"))
	w.await(maintenancewindow.Resource, w.name, "it is open", isOpen(metav1.ConditionTrue))

	w.MustKubectlInput(between(-2*time.Hour, -time.Hour), "apply", "-f", "-")
	w.await(maintenancewindow.Resource, w.name, "it is over", isOpen(metav1.ConditionFalse))
	bundles = w.publish(w.name, append(bundles, bundle{Package: w.name, Version: "1.2.0", Replaces: "1.1.0"})...)
	w.awaitExtension(w.name, "the next upgrade waits", is("UpgradeAvailable=True/WaitingForWindow"))
	w.says(w.answers(alice, w.name, "WaitingForWindow"), "MaintenanceWindow "+w.name+", of type Allow, is closed", "1.2.0")
	w.awaitExtension(w.name, "alice had it begin", installed("1.2.0"))
	r := w.awaitRevision(w.name+"-3", "it was rolled out", succeeded)
	if who := r.Status.RequestedBy; who == nil || who.Username != alice.name {
		w.t.Errorf("the revision was made by %v, want %s", who, alice.name)
	}

	// A proposal is approved for the next window, and then starts with the rights of the approver.
	w.MustKubectlInput(between(time.Hour, 2*time.Hour), "apply", "-f", "-")
	w.await(maintenancewindow.Resource, w.name, "it is closed", isOpen(metav1.ConditionFalse))
	alice.MustKubectl("annotate", "clusterextension", w.name, extension.ApprovalAnnotation+"=Manual")
	w.publish(w.name, append(bundles, bundle{Package: w.name, Version: "1.3.0", Replaces: "1.2.0"})...)
	w.awaitRevision(w.name+"-4", "it waits for approval", waitsForApproval)
	w.says(w.types(alice, 0, `kubectl penstock upgrade lighthouse --when=window --yes`).Stderr, "is approved, and begins when a maintenance window lets it, not before")
	w.awaitExtension(w.name, "it waits for the window", is("UpgradeAvailable=True/WaitingForWindow"))
	forged := w.Kubectl("annotate", "--overwrite", "cer", w.name+"-4", olmv1alpha1.ScheduledApprovalAnnotation+"={}", olmv1alpha1.ApproveNotBeforeAnnotation+"=2026-01-01T00:00:00Z")
	if forged.ExitCode == 0 || !strings.Contains(forged.Stderr, "must be between now") {
		w.t.Errorf("a time in the past: %s", forged)
	}
	alice.MustKubectl("annotate", "--overwrite", "cer", w.name+"-4", olmv1alpha1.ApproveNotBeforeAnnotation+"="+time.Now().UTC().Format(time.RFC3339))
	w.awaitExtension(w.name, "its time has come, and the window is closed", func(e *extension.Extension) bool {
		return strings.Contains(fmt.Sprint(e.Status), "MaintenanceWindow "+w.name+", of type Allow, is closed")
	})
	w.MustKubectlInput(between(-time.Hour, time.Hour), "apply", "-f", "-")
	w.awaitExtension(w.name, "the window is open", installed("1.3.0"))
	if r = w.awaitRevision(w.name+"-4", "it was rolled out", succeeded); r.Annotations[olmv1alpha1.ApprovedByAnnotation] != alice.name || r.Annotations[olmv1alpha1.ScheduledApprovalAnnotation] != "" {
		w.t.Errorf("the approval is recorded as %v", r.Annotations)
	}
}

// operatorConditions is the definition of OperatorConditions, without a schema.
const operatorConditions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: operatorconditions.operators.coreos.com, annotations: {api-approved.kubernetes.io: unapproved}}
spec:
  group: operators.coreos.com
  names: {kind: OperatorCondition, listKind: OperatorConditionList, plural: operatorconditions, singular: operatorcondition}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: false, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// Upgradeable: an OperatorCondition owned by the operator holds upgrades from a catalog. The hold
// ends when an administrator overrides it, when the operator is upgradeable, or when a user starts
// the upgrade. An OperatorCondition of another owner has no effect.
func upgradeable(w shared) {
	w.MustKubectlInput(operatorConditions, "apply", "-f", "-")
	w.t.Cleanup(func() { w.Kubectl("delete", "--ignore-not-found", "crd", operatorcondition.DefinitionName) })
	w.MustKubectl("wait", "--for=condition=Established", "crd/"+operatorcondition.DefinitionName)
	bundles := w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	w.grant("installer", "ServiceAccount", mayInstall)
	alice := w.person("alice", mayWrite+mayInstall+mayFollow+"- {apiGroups: [\"\"], resources: [serviceaccounts], resourceNames: [installer], verbs: [impersonate]}\n")
	w.apply(alice, w.name, w.extend(w.name, w.name, "serviceAccount: {name: installer}"))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	operator := w.MustKubectl("-n", w.name, "get", "deployments", "-o", "jsonpath={.items[0].metadata.name} {.items[0].metadata.uid}")
	name, uid, _ := strings.Cut(strings.TrimSpace(operator), " ")
	owner := fmt.Sprintf("ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: %s, uid: %s}]", name, uid)
	says := func(own, foreign, more string) {
		w.t.Helper()
		for object, status := range map[string]string{"own, " + owner: own + more, "foreign": foreign} {
			w.MustKubectlInput(fmt.Sprintf("{apiVersion: operators.coreos.com/v2, kind: OperatorCondition, metadata: {namespace: %s, name: %s}, spec: {conditions: [{type: Upgradeable, reason: Migrating, message: moving shards, status: %s}", w.name, object, status)+"}}", "apply", "-f", "-")
		}
	}
	brings := func(version, replaces string) {
		w.t.Helper()
		bundles = w.publish(w.name, append(bundles, bundle{Package: w.name, Version: version, Replaces: replaces})...)
	}
	held := is("UpgradeAvailable=True/NotUpgradeable", "Ready=True/Succeeded", "Progressing=True/Succeeded")

	says("'False'}]", "'True'}]", "")
	brings("1.1.0", "1.0.0")
	w.awaitExtension(w.name, "the operator holds the upgrade", held)
	says("'False'}]", "'True'}]", fmt.Sprintf(", overrides: [{type: Upgradeable, status: 'True', reason: Checked, message: by hand, lastTransitionTime: %q}]", time.Now().UTC().Add(-time.Minute).Format(time.RFC3339)))
	w.awaitExtension(w.name, "an administrator overrides it", installed("1.1.0"))

	says("'False'}]", "'True'}]", ", overrides: [{type: Upgradeable, status: 'True', reason: Checked, message: by hand, lastTransitionTime: 2020-01-01T00:00:00Z}]")
	brings("1.2.0", "1.1.0")
	w.awaitExtension(w.name, "the override ended", held)
	says("'True'}]", "'False'}]", "")
	w.awaitExtension(w.name, "the operator can be upgraded", installed("1.2.0"))

	says("Unknown}]", "'True'}]", "")
	brings("1.3.0", "1.2.0")
	w.awaitExtension(w.name, "unknown holds", held)
	w.says(w.answers(alice, w.name, "NotUpgradeable"), "OperatorCondition "+w.name+"/own: Upgradeable=Unknown (Migrating): moving shards", "1.3.0")
	w.awaitExtension(w.name, "alice had it begin", installed("1.3.0"))
}

// isOpen returns a function that reports whether the condition Open of a window has a status.
func isOpen(status metav1.ConditionStatus) func(*unstructured.Unstructured) (bool, error) {
	return func(object *unstructured.Unstructured) (bool, error) {
		if object == nil {
			return false, nil
		}
		read, err := maintenancewindow.From(object)
		return err == nil && meta.IsStatusConditionPresentAndEqual(read.Status.Conditions, maintenancewindow.ConditionOpen, status), err
	}
}
