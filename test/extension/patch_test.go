//go:build integration

package extension_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/extension"
)

// Patched: a patch changes a field that the bundle does not let users configure. It gives no rights
// that the author lacks, and the diff names it. If an upgrade lacks the patch's target, Penstock
// makes no revision.
func patched(w shared) {
	bundles := w.publish(w.name, bundle{Package: w.name, Version: "1.0.0", More: []string{
		fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-tuned}\ndata: {a: b}\n", w.name),
	}})
	alice := w.author("alice")
	patches := func(list string) string { return fmt.Sprintf("%s: %q", extension.PatchesAnnotation, list) }
	text := func(value string) string {
		return fmt.Sprintf("[{target: {kind: ConfigMap, name: %s-config}, type: Merge, patch: {data: {text: %s}}}]", w.name, value)
	}
	for mistaken, refusal := range map[string]string{
		"[{target: {kind: Secret}, type: Merge, patch: {data: {a: Yg==}}}]":                              "a Secret must not be",
		"[{target: {kind: ConfigMap}, type: JSON, patch: [{op: copy, from: /data, path: /data/a}]}]":     `operation 1 is "copy"`,
		"[{target: {kind: ConfigMap}, type: Merge, patch: {data: {a: b}}, replacements: {a: b}}]":        "unknown field",
		"[{target: {kind: ConfigMap}, type: Merge, patch: {metadata: {annotations: {$patch: delete}}}}]": "directive of strategic merge patches",
	} {
		if out := alice.KubectlInput(w.extend(w.name, w.name, patches(mistaken)), "apply", "-f", "-"); out.ExitCode == 0 || !strings.Contains(out.Stderr, refusal) {
			w.t.Errorf("%s: %s", mistaken, out)
		}
	}
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.0", patches(text("mine"))))
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	w.await(corev1.SchemeGroupVersion.WithResource("configmaps"), w.name+"-config", "it is patched", func(object *unstructured.Unstructured) (bool, error) {
		value, _, err := unstructured.NestedString(object.Object, "data", "text")
		return value == "mine", err
	})
	if got := w.MustKubectl("get", "cer", w.name+"-1", "--subresource=diff", "-o", "json"); !strings.Contains(got, "patch 1 of annotation penstock.dev/patches has written data.text") {
		w.t.Errorf("the diff does not name the patch: %s", got)
	}

	// Rights granted by a patch are checked like rights granted by the bundle.
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.0", patches(`[{target: {group: rbac.authorization.k8s.io, kind: ClusterRole}, type: JSON, patch: [{op: add, path: /rules/-, value: {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}}]}]`)))
	w.awaitExtension(w.name, "alice lacks these rights", is("Ready=False/Denied"))
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.0.0", patches(text("mine"))))
	w.awaitExtension(w.name, "it is as before", is("Ready=True/Succeeded"))

	w.publish(w.name, append(bundles, bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0"})...)
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.1.0", patches(fmt.Sprintf(`[{target: {kind: ConfigMap, name: %s-tuned}, type: Merge, patch: {data: {a: c}}}]`, w.name))))
	w.awaitExtension(w.name, "the new version has no such object", is("Ready=False/InvalidConfiguration", "Ready=False/InvalidConfiguration: annotation penstock.dev/patches: patch 1 matches no object"))
	w.there("configmap/" + w.name + "-tuned")
	w.apply(alice, w.name, w.extend(w.name, w.name, "version: 1.1.0", patches(text("mine"))))
	w.awaitExtension(w.name, "it is upgraded", installed("1.1.0"))
	w.MustKubectl("delete", "clusterextension", w.name)
}
