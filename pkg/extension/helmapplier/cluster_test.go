package helmapplier

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes/fake"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestRolledOutBy: the label alone does not identify the owner, since any user and the control
// plane can copy it.
func TestRolledOutBy(t *testing.T) {
	for name, tc := range map[string]struct {
		label, manager string
		operation      metav1.ManagedFieldsOperationType
		want           string
	}{
		"Applied":  {"keeper", "penstock/keeper", metav1.ManagedFieldsOperationApply, "keeper"},
		"Label":    {"keeper", "kubectl", metav1.ManagedFieldsOperationApply, ""},
		"Updated":  {"keeper", "penstock/keeper", metav1.ManagedFieldsOperationUpdate, ""},
		"Other":    {"keeper", "penstock/other", metav1.ManagedFieldsOperationApply, ""},
		"Nobody's": {"", "penstock/", metav1.ManagedFieldsOperationApply, ""},
	} {
		t.Run(name, func(t *testing.T) {
			object := &metav1.ObjectMeta{Labels: map[string]string{olmv1alpha1.ChainLabel: tc.label}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: tc.manager, Operation: tc.operation}}}
			if got := rolledOutBy(object); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestIsProtected: the namespace of an object decides; for a Namespace it is the Namespace itself.
func TestIsProtected(t *testing.T) {
	protect := map[string]string{olmv1alpha1.ProtectLabel: "true"}
	client := fake.NewClientset(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept", Labels: protect}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "open"}})
	u := &upgrade{namespaces: client.CoreV1().Namespaces()}
	for name, tc := range map[string]struct {
		kind, namespace, name string
		want                  bool
	}{
		"Kept":          {"ConfigMap", "kept", "a", true},
		"Open":          {"ConfigMap", "open", "a", false},
		"Gone":          {"ConfigMap", "gone", "a", false},
		"Cluster":       {"PersistentVolume", "", "kept", false},
		"Namespace":     {"Namespace", "", "kept", true},
		"OpenNamespace": {"Namespace", "", "open", false},
	} {
		t.Run(name, func(t *testing.T) {
			info := &resource.Info{Namespace: tc.namespace, Name: tc.name, Mapping: &meta.RESTMapping{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: tc.kind}}}
			if got, err := u.isProtected(t.Context(), info); err != nil || got != tc.want {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
}
