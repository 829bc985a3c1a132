//go:build integration

package extension_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/packages"
	"github.com/penstock-project/penstock/test/framework/plugin"
)

// changeScenarios change an extension that is installed or is being installed.
func changeScenarios() map[string]scenario {
	return map[string]scenario{
		"SameContent": sameContent,
		"Stuck":       stuckCorrected,
		"Held":        heldRollback,
		"CatalogGone": catalogGone,
		"ImageGone":   imageGone,
		"TwoOfOne":    twoOfOne,
		"Image":       plainImage,
		"Settings":    changedSettings,
	}
}

// SameContent: a new version with the same objects makes no revision.
func sameContent(w shared) {
	bundles := w.publish(w.name, bundle{Package: w.name, Version: "1.0.0", Text: "same"})
	w.apply(w.author("alice"), w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.publish(w.name, append(bundles, bundle{Package: w.name, Version: "1.0.1", Replaces: "1.0.0", Text: "same", CSVName: w.name + ".v1.0.0"})...)
	w.awaitExtension(w.name, "it is the newer version", installed("1.0.1"))
	if out := w.MustKubectl("get", "cer", "-l", olmv1alpha1.ChainLabel+"="+w.name, "-o", "name"); strings.Count(out, "\n") != 1 {
		w.t.Errorf("the revisions are %s", out)
	}
}

// Stuck: an edit of the spec replaces a version that never becomes available, while it is still
// being rolled out.
func stuckCorrected(w shared) {
	w.publish(w.name,
		bundle{Package: w.name, Version: "1.0.0"},
		bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0", Image: "registry.invalid/x:v1"},
		bundle{Package: w.name, Version: "1.1.1", Replaces: "1.1.0", SkipRange: ">=1.0.0 <1.1.1"})
	alice := w.author("alice")
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.0"))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.1.0"))
	w.awaitExtension(w.name, "it is being rolled out", func(e *extension.Extension) bool {
		return len(e.Status.ActiveRevisions) == 2 && condition(e, "Progressing") == "True/RollingOut" && e.Status.Install != nil && e.Status.Install.Bundle.Version == "1.0.0"
	})
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.1.1"))
	w.awaitExtension(w.name, "it is corrected", installed("1.1.1"))
	w.awaitRevision(w.name+"-2", "the stuck one is given up", func(r *olmv1alpha1.ClusterExtensionRevision) bool {
		return r.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived && !succeeded(r)
	})
}

// Held: a rollback holds until the spec is written again.
func heldRollback(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"}, bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0"})
	alice := w.author("alice")
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.0"))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.x"))
	w.awaitExtension(w.name, "it is upgraded", installed("1.1.0"))
	w.MustKubectlInput(`{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"RevisionRollback"}`, "create", "--raw",
		"/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/"+w.name+"-1/rollback", "-f", "-")
	w.awaitRevision(w.name+"-3", "it is rolled back", succeeded)
	w.awaitExtension(w.name, "the rollback holds", func(e *extension.Extension) bool {
		return e.Status.Install != nil && e.Status.Install.Bundle.Version == "1.0.0" && strings.Contains(message(e, "Ready")+message(e, "Progressing"), w.name+"-3 is a rollback")
	})
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.1.0"))
	w.awaitExtension(w.name, "the spec counts again", installed("1.1.0"))
	w.awaitRevision(w.name+"-4", "it is a revision of its own", succeeded)
	// The hold also ends when a user releases it with the command in the message.
	admin := plugin.User{Kubeconfig: w.Kubeconfig(), Input: plugin.Yes{}}
	if out := admin.Run(w.t, "kubectl penstock rollback "+w.name+" --to 3 --yes"); out.ExitCode != 0 {
		w.t.Fatal(out)
	}
	w.awaitExtension(w.name, "the message names the command", func(e *extension.Extension) bool {
		return strings.Contains(message(e, "Ready")+message(e, "Progressing"), "kubectl penstock resume "+w.name)
	})
	out := admin.Run(w.t, "kubectl penstock resume "+w.name)
	if out.ExitCode != 0 {
		w.t.Fatal(out)
	}
	w.says(out.Stderr, w.name+"-5 is a rollback, and ClusterExtension "+w.name+" makes no revision since", "Release the hold of "+w.name)
	w.awaitRevision(w.name+"-6", "the owner goes on, by a proposal: the stamp of alice has decided a revision already", func(r *olmv1alpha1.ClusterExtensionRevision) bool {
		return r.Annotations[extension.ProposedAnnotation] == "true"
	})
}

// CatalogGone: the installed version does not change when its catalog is deleted. It is deleted
// with its extension.
func catalogGone(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	// The setting changes on the existing revision.
	alice := w.person("alice", mayWrite+mayInstall+"- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [patch]}\n")
	only := fmt.Sprintf("selector: {matchLabels: {olm.operatorframework.io/metadata.name: %s}}", w.name)
	w.apply(alice, w.name, w.extend(w.name, w.name, only))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.MustKubectl("delete", "clustercatalog", w.name)
	w.apply(alice, w.name, w.extend(w.name, w.name, only, "progressDeadlineMinutes: 10"))
	w.awaitExtension(w.name, "it is as it was", func(e *extension.Extension) bool { return e.Generation == 2 && installed("1.0.0")(e) })
	w.MustKubectl("-n", w.name, "delete", "configmap", w.name+"-config")
	w.await(corev1.SchemeGroupVersion.WithResource("configmaps"), w.name+"-config", "it is repaired", present)
	alice.MustKubectl("delete", "clusterextension", w.name)
	w.await(corev1.SchemeGroupVersion.WithResource("configmaps"), w.name+"-config", "it goes with the extension", absent)
	w.awaitGone(revisions, w.name+"-1", "it goes with the extension")
}

// ImageGone: Penstock retries an image that cannot be pulled.
func imageGone(w shared) {
	folder := w.t.TempDir()
	b := bundle{Package: w.name, Version: "1.0.0", Ref: w.images.Host + "/bundles/" + w.name + ":v1.0.0"}
	if err := os.WriteFile(filepath.Join(folder, "catalog.yaml"), []byte(packages.Catalog(b)), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.serveCatalog(w.name, w.images.Push(w.t, folder, "catalogs/"+w.name))
	w.apply(w.author("alice"), w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "the image is missing", func(e *extension.Extension) bool {
		return condition(e, "Progressing") == "True/Retrying" && strings.Contains(message(e, "Progressing"), b.Ref)
	})
	w.push(bundle{Package: w.name, Version: "1.0.0"})
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
}

// TwoOfOne: the second extension of a package takes nothing from the first.
func twoOfOne(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	alice := w.author("alice")
	w.apply(alice, w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.apply(alice, w.name+"-b", w.extend(w.name+"-b", w.name))
	w.awaitExtension(w.name+"-b", "the objects are another's", func(e *extension.Extension) bool {
		return e.Status.Install == nil && strings.Contains(message(e, "Progressing")+message(e, "Ready")+message(e, "Available"), w.name) &&
			len(e.Status.ActiveRevisions) == 1 && strings.Contains(fmt.Sprint(e.Status), "ollision")
	})
	w.awaitExtension(w.name, "the first one is as it was", installed("1.0.0"))
}

// Image: an image with manifests, without a catalog.
func plainImage(w shared) {
	folder := w.t.TempDir()
	manifest := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: lamp, namespace: %s}\ndata: {a: b}\n", w.name)
	if err := os.WriteFile(filepath.Join(folder, "lamp.yaml"), []byte(manifest), 0o600); err != nil {
		w.t.Fatal(err)
	}
	ref := w.images.Push(w.t, folder, "plain/"+w.name)
	w.apply(w.author("alice"), w.name, fmt.Sprintf("{apiVersion: olm.operatorframework.io/v1, kind: ClusterExtension, metadata: {name: %[1]s}, spec: {namespace: %[1]s, source: {sourceType: Image, image: {ref: %[2]q}}}}", w.name, ref))
	w.await(corev1.SchemeGroupVersion.WithResource("configmaps"), "lamp", "it is installed", present)
	w.awaitExtension(w.name, "it is ready", func(e *extension.Extension) bool {
		return condition(e, "Progressing") == "True/Succeeded" && strings.HasPrefix(condition(e, "Ready"), "True/")
	})
	r := w.awaitRevision(w.name+"-1", "it was rolled out", succeeded)
	if got := r.Annotations[olmv1alpha1.ReferenceAnnotation]; got != ref {
		w.t.Errorf("the reference is %s, want %s", got, ref)
	}
}

// Settings: mutable settings change without a new revision, with the author's rights.
func changedSettings(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	alice := w.person("alice", mayWrite+mayInstall+"- {apiGroups: [olm.operatorframework.io], resources: [clusterextensionrevisions], verbs: [get, patch]}\n")
	w.apply(alice, w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.apply(alice, w.name, w.extend(w.name, w.name, "penstock.dev/teardown-policy: Orphan", "progressDeadlineMinutes: 15"))
	w.awaitRevision(w.name+"-1", "it has the settings", func(r *olmv1alpha1.ClusterExtensionRevision) bool {
		return r.Spec.TeardownPolicy == olmv1alpha1.TeardownPolicyOrphan && r.Spec.ProgressDeadlineMinutes == 15 && r.Annotations[extension.GenerationAnnotation] == "2"
	})
	if out := w.Kubectl("get", "cer", w.name+"-2"); out.ExitCode == 0 {
		w.t.Errorf("a second revision exists: %s", out)
	}
}
