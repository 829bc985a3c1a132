//go:build integration

package e2e_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/test/framework/drafts"
	"github.com/penstock-project/penstock/test/framework/poll"
)

const (
	createOnly   = "release.openshift.io/create-only"
	installLevel = "release.openshift.io/install-level"
)

// fallback returns a create-only ConfigMap of an install level.
func fallback(namespace, name, level string) object {
	return configMap(namespace, name, "from=revision").Annotated(createOnly, "true", installLevel, level)
}

// opens opens a gate.
func (w sharedPlane) opens(namespace, name string) {
	w.t.Helper()
	w.MustKubectl("patch", "configmap", name, "--namespace="+namespace, "--type=merge", "-p", drafts.OpenGate)
}

// whole returns an object with managedFields and resourceVersion.
func (w sharedPlane) whole(namespace, name string) string {
	w.t.Helper()
	return w.MustKubectl("get", "configmap", name, "--namespace="+namespace, "-o", "json", "--show-managed-fields")
}

// users creates a user's ConfigMap. The returned check fails if the object has changed since.
func (w sharedPlane) users(namespace, name string) (untouched func()) {
	w.t.Helper()
	w.MustKubectlInput(configMap(namespace, name, "from=user").String(), "create", "-f", "-")
	before := w.whole(namespace, name)
	return func() {
		w.t.Helper()
		if after := w.whole(namespace, name); after != before {
			w.t.Errorf("the user's object was changed from\n%s\nto\n%s", before, after)
		}
	}
}

// levels: Penstock creates the defaults last. Objects that a user has created by then stay.
func levels(w sharedPlane) {
	ns := w.namespace("levels")
	in := "--namespace=" + ns
	before := w.users(ns, "before")
	d := revision("levels", 1).Gated().
		Phase("defaults", fallback(ns, "before", "1"), fallback(ns, "during", "1"), fallback(ns, "after", "1"), fallback(ns, "early", "0")).
		Phase("deploy", drafts.Gate(ns, "gate"), configMap(ns, "sibling", "x=1"))
	w.MustKubectlInput(d.String(), "create", "-f", "-")

	// The objects of level 0 exist. The status names what the next level waits for.
	w.condition("levels-1", "Progressing", "True", "install level 0: 1 of 3 objects not ready (ConfigMap levels/gate: the gate is closed); 3 objects of later levels wait")
	w.says(w.read(`.status.conditions[?(@.type=="Progressing")].reason`, "cer", "levels-1"), "WaitingForLevel")
	w.says(w.MustKubectl("get", "configmap", in, "-o", "name"), "configmap/early", "configmap/gate", "configmap/sibling")
	w.absent("configmap", "after", in)
	w.says(w.MustKubectl("get", "cer", "levels-1", "-o", "yaml"), "createOnly: true", "installLevel: 1")
	during := w.users(ns, "during")

	w.opens(ns, "gate")
	w.succeeded("levels-1")
	w.says(w.read(".data.from", "configmap", "after", in), "revision")
	before()
	during()

	// A created default belongs to no owner. It has no mark of Penstock, and edits stay. After a
	// deletion Penstock creates it again.
	made := w.whole(ns, "after")
	if strings.Contains(made, "penstock.dev/") || strings.Contains(made, "ownerReferences") {
		w.t.Errorf("a create-only object is marked:\n%s", made)
	}
	w.MustKubectl("patch", "configmap", "after", in, "--type=merge", "-p", `{"data":{"from":"edit"}}`)
	w.MustKubectl("patch", "configmap", "sibling", in, "--type=merge", "-p", `{"data":{"x":"drifted"}}`)
	w.value("1", ".data.x", "configmap/sibling", in) // one pass saw both changes and repaired only this one
	w.says(w.read(".data.from", "configmap", "after", in), "edit")
	w.MustKubectl("delete", "configmap", "after", in)
	w.until(configMaps(), ns, "after", func(*unstructured.Unstructured) error { return nil })
	w.says(w.read(".data.from", "configmap", "after", in), "revision")
	w.event("levels-1", "Recreated", "ConfigMap levels/after")

	// An upgrade ignores install levels: it creates the new default while a gate is still closed.
	next := revision("levels", 2).Gated().Phase("defaults", fallback(ns, "late", "1")).Phase("deploy", drafts.Gate(ns, "gate"), drafts.Gate(ns, "stuck"))
	w.MustKubectlInput(next.String(), "create", "-f", "-")
	w.condition("levels-2", "Progressing", "True", "ConfigMap levels/stuck: the gate is closed")
	w.says(w.read(".data.from", "configmap", "late", in), "revision")
	w.opens(ns, "stuck")
	w.succeeded("levels-2")

	// Penstock neither prunes defaults nor deletes them in a teardown.
	w.value("Archived", ".spec.lifecycleState", "cer/levels-1")
	w.MustKubectl("delete", "cer", "--selector=penstock.dev/chain=levels", poll.TimeoutFlag)
	w.says(w.MustKubectl("get", "configmap", in, "-o", "name"), "configmap/after", "configmap/before", "configmap/during", "configmap/early", "configmap/late")
	w.absent("configmap", "gate", in)
	before()
	during()
}

// levelRace creates the user's object during Penstock's own create: after Penstock has looked, and
// before kube-apiserver stores Penstock's object.
func levelRace(w sharedPlane) {
	ns := w.namespace("levelrace")
	var asked, raced atomic.Bool
	var made string
	w.webhook(ns, func(review *admissionv1.AdmissionRequest) {
		dryRun := review.DryRun != nil && *review.DryRun
		switch {
		case review.Name == "probe":
			asked.Store(true)
		case review.Name == "contested" && !dryRun && raced.CompareAndSwap(false, true):
			// The user's create also calls this webhook, while Penstock's create waits.
			w.MustKubectlInput(configMap(ns, "contested", "from=user").String(), "create", "-f", "-")
			made = w.whole(ns, "contested")
		}
	})
	for deadline := time.Now().Add(poll.Patience); !asked.Load(); {
		// kube-apiserver learns of webhooks from a watch, with a delay.
		w.MustKubectlInput(configMap(ns, "probe").String(), "create", "--dry-run=server", "-f", "-")
		if time.Now().After(deadline) {
			w.t.Fatal("the API server does not ask the webhook")
		}
	}
	w.roll(revision("levelrace", 1).Phase("all", fallback(ns, "contested", "1"), configMap(ns, "other", "x=1")))
	if !raced.Load() {
		w.t.Fatal("the race did not happen")
	}
	if after := w.whole(ns, "contested"); after != made {
		w.t.Errorf("the user's object was changed from\n%s\nto\n%s", made, after)
	}
}

// webhook registers a webhook that calls look for every create of a ConfigMap in a namespace.
func (w sharedPlane) webhook(namespace string, look func(*admissionv1.AdmissionRequest)) {
	w.t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(rw, "no review", http.StatusBadRequest)
			return
		}
		look(review.Request)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		review.Request = nil
		_ = json.NewEncoder(rw).Encode(review)
	}))
	w.t.Cleanup(server.Close)
	hook := manifest("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", namespace)
	hook["webhooks"] = []any{map[string]any{
		"name": namespace + ".example.com", "admissionReviewVersions": []any{"v1"}, "sideEffects": "NoneOnDryRun", "failurePolicy": "Fail", "timeoutSeconds": 30,
		"clientConfig": map[string]any{
			"url":      server.URL,
			"caBundle": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
		},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
		"rules":             []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"CREATE"}}},
	}}
	w.MustKubectlInput(hook.String(), "create", "-f", "-")
	w.t.Cleanup(func() { w.MustKubectl("delete", "validatingwebhookconfiguration", namespace, "--ignore-not-found") })
}

// levelRefusals: Penstock refuses manifests with invalid install levels in every kind of write, and
// reports all errors at once.
func levelRefusals(w sharedPlane) {
	create := []string{"create", "-f", "-"}
	ns := "default"
	bad := revision("levelbad", 1).Phase("all",
		fallback(ns, "levelbad-b", "2"), fallback(ns, "levelbad-a", " 1"), fallback(ns, "levelbad-c", "1"),
		configMap(ns, "levelbad-d").Annotated(installLevel, "0"))
	says := []string{
		`spec.phases[0].objects[1].object.metadata.annotations[release.openshift.io/install-level]`, `ConfigMap default/levelbad-a: annotation release.openshift.io/install-level is " 1", want "0" or "1"`,
		`ConfigMap default/levelbad-b: annotation release.openshift.io/install-level is "2", want "0" or "1"`,
		`ConfigMap default/levelbad-d: annotation release.openshift.io/install-level is "0", which needs release.openshift.io/create-only: "true" beside it`,
	}
	w.refused(bad.String(), create, says...)
	w.refused(bad.String(), []string{"create", "--dry-run=server", "-f", "-"}, says...)
	w.refused(bad.String(), []string{"apply", "-f", "-"}, says...)
	w.refused(bad.String(), []string{"apply", "--server-side", "-f", "-"}, says...)
	w.refused(`{"apiVersion":"v1","kind":"List","items":[`+small("levelgood", 1).String()+`,`+bad.String()+`]}`, create, says...)
	w.absent("cer", "levelbad-1")
	w.succeeded("levelgood-1")

	// A value without quotes is not a string. It must not hide the annotation.
	unquoted := strings.ReplaceAll(revision("levelbad", 1).Phase("all", fallback(ns, "levelbad-a", "1")).String(), `"`+installLevel+`": "1"`, `"`+installLevel+`": 1`)
	w.refused(unquoted, create, "metadata.annotations[release.openshift.io/install-level]", "is a number, want a string: put it in quotes")
	w.refused(strings.Replace(unquoted, `"`+createOnly+`"`, `"`+installLevel+`": "1", "`+createOnly+`"`, 1), create, installLevel)

	// Content is immutable: an annotation cannot be added later either.
	w.refused(small("levelgood", 1).Phase("more", fallback(ns, "levelbad-a", "7")).String(), []string{"replace", "-f", "-"}, "the phase was added")

	// A warning names valid values that are probably a mistake.
	needy := deployment(ns, "levelneedy", "example.com/image:v1")
	spec := needy["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	spec["volumes"] = []any{map[string]any{"name": "v", "configMap": map[string]any{"name": "levelbad-c"}}}
	out := w.KubectlInput(revision("levelneedy", 1).Phase("all", needy, fallback(ns, "levelbad-c", "1")).String(), "create", "--dry-run=server", "-f", "-")
	w.says(out.Stderr, "Warning: Deployment.apps default/levelneedy, of install level 0, needs ConfigMap default/levelbad-c, which is of install level 1")
}
