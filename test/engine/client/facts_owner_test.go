//go:build integration

package client_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// ownedBy sets the controller owner of a manifest.
func ownedBy(uid types.UID) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: "example.com/v1", Kind: "Owner", Name: "owner", UID: uid, Controller: ptr.To(true)}})
	}
}

// handover: one apply replaces the owner. kube-apiserver refuses a second controller.
func handover(t *testing.T, w targetCluster, h *targetclient.Client, kind kindOf) {
	const first, second = "11111111-0000-0000-0000-000000000000", "22222222-0000-0000-0000-000000000000"
	ref := kind.ref(w.namespace(t), "x")
	made, err := h.Apply(t.Context(), ref, kind.manifest(t, ref, ownedBy(first)), targetclient.ApplyOptions{FieldManager: manager, CreateOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	moved, err := h.Apply(t.Context(), ref, kind.manifest(t, ref, ownedBy(second)),
		targetclient.ApplyOptions{FieldManager: manager, UID: made.UID, ResourceVersion: made.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	if owners := moved.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != second {
		t.Errorf("want only the new owner after one request: %v", owners)
	}
	_, err = h.Apply(t.Context(), ref, kind.manifest(t, ref, ownedBy(first)),
		targetclient.ApplyOptions{FieldManager: "penstock/chain-b", UID: moved.UID, ResourceVersion: moved.ResourceVersion})
	if !apierrors.IsInvalid(err) {
		t.Errorf("want a refusal of two controllers: %v", err)
	}
}

// forged: an object created by POST cannot have an Apply entry.
func forged(t *testing.T, w targetCluster, kind kindOf) {
	ref := kind.ref(w.namespace(t), "x")
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(kind.manifest(t, ref)); err != nil {
		t.Fatal(err)
	}
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: ref.APIVersion(), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:a":{}}}`)}})
	made, err := w.outsider.Resource(kind.resource).Namespace(ref.Namespace).Create(t.Context(), o, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		t.Fatal(err)
	}
	if _, ours := ptr.To(observed(made)).Entry(manager); ours {
		t.Errorf("a POST left an Apply entry: %v", made.GetManagedFields())
	}
}

func observed(o *unstructured.Unstructured) observe.Observation { return names().Observe(o) }

// undeclared: an apply with a field outside the schema fails, also without strict field validation.
func undeclared(t *testing.T, w targetCluster, h *targetclient.Client, kind kindOf) {
	ref := kind.ref(w.namespace(t), "x")
	body := kind.manifest(t, ref, func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, "1", "spec", "noSuchField"); err != nil {
			t.Fatal(err)
		}
	})
	_, err := h.Apply(t.Context(), ref, body, targetclient.ApplyOptions{FieldManager: manager, CreateOnly: true})
	if err == nil || !strings.Contains(err.Error(), "field not declared in schema") {
		t.Errorf("want a refusal of an undeclared field: %v", err)
	}
	if _, err := h.ReadMetadata(t.Context(), ref); !apierrors.IsNotFound(err) {
		t.Errorf("want no object after the refusal: %v", err)
	}
}
