//go:build integration

package extension_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

// loopScenarios are about what becomes of ClusterExtensions.
func loopScenarios() map[string]scenario {
	return map[string]scenario{
		"Yield":   yields,
		"Install": install,
	}
}

// Install: a package of a catalog is installed in the name of who wrote the extension, with
// exactly the rights that this takes.
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

// Yield: fields that the annotation names stay as others set them, through repairs and upgrades. Every
// other field is repaired.
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
