//go:build integration

package client_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// TestFacts tests behaviours of kube-apiserver that the engine relies on and that Kubernetes does
// not promise.
func TestFacts(t *testing.T) {
	w := start(t)
	w.installWidgets()
	h := w.host(t, "facts")
	if err := h.SelfTest(t.Context()); err != nil || h.PostsCreates() {
		t.Fatalf("the self-test must find that create-only apply works: fallback %t, %v", h.PostsCreates(), err)
	}
	t.Run("F7NoApplyByPost", func(t *testing.T) { postsCannotApply(t, w.in(t)) })
	t.Run("Defaults", func(t *testing.T) { defaulted(t, w.in(t)) })
	t.Run("Immutable", func(t *testing.T) { immutable(t, w.in(t)) })
	for name, kind := range kinds() {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			ns := w.namespace(t)
			ref := kind.ref(ns, "x")
			body := kind.manifest(t, ref)

			t.Run("F1CreateOnly", func(t *testing.T) {
				dry, err := h.Apply(t.Context(), ref, body, targetclient.ApplyOptions{FieldManager: manager, CreateOnly: true, DryRun: true})
				if err != nil || dry.Name != ref.Name {
					t.Fatalf("the dry-run of a creation: %v", err)
				}
				if _, err := h.ReadMetadata(t.Context(), ref); !apierrors.IsNotFound(err) {
					t.Fatalf("the dry-run stored an object: %v", err)
				}
				created, err := h.Apply(t.Context(), ref, body, targetclient.ApplyOptions{FieldManager: manager, CreateOnly: true})
				if err != nil {
					t.Fatal(err)
				}
				if _, ours := ptr.To(names().Observe(created)).Entry(manager); !ours {
					t.Errorf("a create left no Apply entry: %v", created.ManagedFields)
				}
				_, err = h.Apply(t.Context(), ref, body, targetclient.ApplyOptions{FieldManager: manager, CreateOnly: true})
				if !apierrors.IsConflict(err) {
					t.Errorf("want a conflict for an object that exists: %v", err)
				}
				_, err = h.Apply(t.Context(), ref, body, targetclient.ApplyOptions{FieldManager: manager, CreateOnly: true, DryRun: true})
				if !apierrors.IsConflict(err) {
					t.Errorf("want the same refusal from a dry-run: %v", err)
				}
			})
			t.Run("F2UpdateOnly", func(t *testing.T) { updateOnly(t, h, kind, ref) })
			t.Run("F3Ownership", func(t *testing.T) { ownership(t, w.in(t), h, kind, ref) })
			t.Run("F4NoOp", func(t *testing.T) {
				before := apply(t, h, kind, ref)
				after := apply(t, h, kind, ref)
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("an apply without a change changed the object (-before +after):\n%s", diff)
				}
			})
			t.Run("F5EveryRepresentation", func(t *testing.T) { representations(t, w.in(t), h, kind, ref) })
		})
	}
	t.Run("F6Handover", func(t *testing.T) { handover(t, w.in(t), h, kinds()["ConfigMap"]) })
	t.Run("F7Forged", func(t *testing.T) { forged(t, w.in(t), kinds()["ConfigMap"]) })
	t.Run("F8Undeclared", func(t *testing.T) { undeclared(t, w.in(t), h, kinds()["Deployment"]) })
}

// postsCannotApply: kube-apiserver replaces an Apply entry in a POST by an Update entry. Therefore
// Penstock creates objects by apply.
func postsCannotApply(t *testing.T, w targetCluster) {
	ns := w.namespace(t)
	configMaps := w.outsider.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ns)
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": ns, "name": "posted", "managedFields": []any{map[string]any{
			"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "time": "2026-01-02T12:00:00Z",
			"fieldsV1": map[string]any{"f:data": map[string]any{"f:a": map[string]any{}}}}}},
		"data": map[string]any{"a": "1"}}}
	posted, err := configMaps.Create(t.Context(), object, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range posted.GetManagedFields() {
		if entry.Operation == metav1.ManagedFieldsOperationApply {
			t.Errorf("the entry was kept: %v", entry)
		}
	}
}

// apply applies the manifest to an object in any state. It waits until the kind's own controller
// has written its status.
func apply(t *testing.T, h *targetclient.Client, kind kindOf, ref manifest.Ref) observe.Observation {
	t.Helper()
	applied := applyOnce(t, h, kind, ref)
	if kind.settled == nil {
		return applied
	}
	poll.Eventually(t, ref.String()+" to be settled", func() (bool, string) {
		live, err := h.Read(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		return kind.settled(live), fmt.Sprint(live.Object["status"])
	})
	return applyOnce(t, h, kind, ref)
}

func applyOnce(t *testing.T, h *targetclient.Client, kind kindOf, ref manifest.Ref) observe.Observation {
	t.Helper()
	// A controller may write the status between the read and the apply.
	for {
		live, err := h.ReadMetadata(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		applied, err := h.Apply(t.Context(), ref, kind.manifest(t, ref),
			targetclient.ApplyOptions{FieldManager: manager, UID: live.UID, ResourceVersion: live.ResourceVersion})
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return names().Observe(applied)
	}
}

func updateOnly(t *testing.T, h *targetclient.Client, kind kindOf, ref manifest.Ref) {
	live := apply(t, h, kind, ref)
	missing := ref
	missing.Name += "-missing"
	refused := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsInvalid(err) }
	cases := map[string]struct {
		reason  string
		ref     manifest.Ref
		options targetclient.ApplyOptions
		want    func(error) bool
	}{
		"Judged":        {"the object that was judged", ref, targetclient.ApplyOptions{UID: live.UID, ResourceVersion: live.ResourceVersion}, func(err error) bool { return err == nil }},
		"OlderVersion":  {"it changed since", ref, targetclient.ApplyOptions{UID: live.UID, ResourceVersion: "2"}, apierrors.IsConflict},
		"AnotherObject": {"another one has the name now", ref, targetclient.ApplyOptions{UID: "6f4b2a1c-0000-0000-0000-000000000000", ResourceVersion: live.ResourceVersion}, refused},
		"Deleted":       {"nothing is created", missing, targetclient.ApplyOptions{UID: live.UID, ResourceVersion: live.ResourceVersion}, refused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if kind.Kind == "CustomResourceDefinition" && name == "Deleted" {
				t.Skip("a CustomResourceDefinition cannot have another name")
			}
			tc.options.FieldManager = manager
			_, err := h.Apply(t.Context(), tc.ref, kind.manifest(t, tc.ref), tc.options)
			for name == "Judged" && apierrors.IsConflict(err) {
				// The kind's own controller may write the status meanwhile: read again.
				judged, readErr := h.ReadMetadata(t.Context(), tc.ref)
				if readErr != nil {
					t.Fatal(readErr)
				}
				tc.options.ResourceVersion = judged.ResourceVersion
				_, err = h.Apply(t.Context(), tc.ref, kind.manifest(t, tc.ref), tc.options)
			}
			if !tc.want(err) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
	if _, err := h.ReadMetadata(t.Context(), missing); !apierrors.IsNotFound(err) {
		t.Errorf("an update created an object, or failed otherwise: %v", err)
	}
}

// ownership: our entry changes exactly when another writer changes a value that we apply.
func ownership(t *testing.T, w targetCluster, h *targetclient.Client, kind kindOf, ref manifest.Ref) {
	resource := w.outsider.Resource(kind.resource).Namespace(ref.Namespace)
	patch := func(t *testing.T, as string, body []byte, subresources ...string) {
		t.Helper()
		if _, err := resource.Patch(t.Context(), ref.Name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: as}, subresources...); err != nil {
			t.Fatal(err)
		}
	}
	value := func() any {
		at := any(kind.body)
		for _, key := range kind.value {
			at = at.(map[string]any)[key]
		}
		return at
	}
	cases := map[string]struct {
		reason string
		do     func(*testing.T)
		same   bool
	}{
		"Changed":      {"a value was changed", func(t *testing.T) { patch(t, "outsider", merge(t, kind.other, kind.value...)) }, false},
		"Removed":      {"a value was removed", func(t *testing.T) { patch(t, "outsider", merge(t, nil, kind.value...)) }, false},
		"SameManager":  {"changed under our name, but not by an apply", func(t *testing.T) { patch(t, manager, merge(t, kind.other, kind.value...)) }, false},
		"ManagedWiped": {"managedFields were wiped", func(t *testing.T) { patch(t, "outsider", []byte(`{"metadata":{"managedFields":[{}]}}`)) }, false},
		"LabelRemoved": {"the chain label was removed", func(t *testing.T) {
			patch(t, "outsider", []byte(`{"metadata":{"labels":{"penstock.dev/chain":null}}}`))
		}, false},
		"SameValue":       {"the same value was written", func(t *testing.T) { patch(t, "outsider", merge(t, value(), kind.value...)) }, true},
		"Added":           {"another annotation was added", func(t *testing.T) { patch(t, "outsider", []byte(`{"metadata":{"annotations":{"a":"b"}}}`)) }, true},
		"FinalizerAdded":  {"a finalizer was added", func(t *testing.T) { patch(t, "outsider", []byte(`{"metadata":{"finalizers":["example.com/f"]}}`)) }, true},
		"FinalizerGone":   {"and removed", func(t *testing.T) { patch(t, "outsider", []byte(`{"metadata":{"finalizers":null}}`)) }, true},
		"AnotherApplier":  {"another applier agrees", func(t *testing.T) { applyAs(t, w, kind, ref, "other-applier", value()) }, true},
		"DissentingForce": {"another applier disagrees, by force", func(t *testing.T) { applyAs(t, w, kind, ref, "other-applier", kind.other) }, false},
	}
	if kind.status != nil {
		cases["Status"] = struct {
			reason string
			do     func(*testing.T)
			same   bool
		}{"status was written", func(t *testing.T) { patch(t, "controller", merge(t, kind.status, "status"), "status") }, true}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := apply(t, h, kind, ref)
			ours, found := before.Entry(manager)
			if !found {
				t.Fatal("the apply left no entry")
			}
			tc.do(t)
			live, err := h.ReadMetadata(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			after := names().Observe(live)
			theirs, _ := after.Entry(manager)
			if (ours == theirs) != tc.same {
				t.Errorf("%s: want the same entry %t; managedFields: %v", tc.reason, tc.same, live.ManagedFields)
			}
		})
	}
}

// applyAs applies one value with another field manager.
func applyAs(t *testing.T, w targetCluster, kind kindOf, ref manifest.Ref, as string, value any) {
	t.Helper()
	body := merge(t, value, kind.value...)
	full := merge(t, ref.Name, "metadata", "name")
	patch := []byte(`{"apiVersion":"` + ref.APIVersion() + `","kind":"` + ref.Kind + `",` + string(full[1:len(full)-1]) + `,` + string(body[1:]))
	_, err := w.outsider.Resource(kind.resource).Namespace(ref.Namespace).Patch(t.Context(), ref.Name, types.ApplyPatchType, patch,
		metav1.PatchOptions{FieldManager: as, Force: ptr.To(true)})
	if err != nil {
		t.Fatal(err)
	}
}

// representations: apply responses, reads and watches show the same entry of ours, both as metadata
// and as the whole object.
func representations(t *testing.T, w targetCluster, h *targetclient.Client, kind kindOf, ref manifest.Ref) {
	want := apply(t, h, kind, ref)
	compare := func(what string, got observe.Observation) {
		t.Helper()
		got.Object, got.Kept = nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-answer to apply, +this):\n%s", what, diff)
		}
	}
	metadata, err := h.ReadMetadata(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	compare("metadata read", names().Observe(metadata))
	whole, err := h.Read(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	compare("whole object read", names().Observe(whole))

	watches := w.watch(t, w.config("representations"), h)
	watches.Want("chain-a", observe.Interest{ID: ref.ID, Version: ref.Version})
	compare("metadata watched", watches.untilKnown(t, ref.ID, observe.Present))
	reading := observe.Interest{ID: ref.ID, Version: ref.Version}
	reading.Reads.Status = true
	watches.Want("chain-a", reading)
	compare("whole object watched", watches.until(t, ref.ID, "read", func(seen observe.Observation, p observe.Presence) bool {
		return p == observe.Present && seen.Object != nil
	}))
}
