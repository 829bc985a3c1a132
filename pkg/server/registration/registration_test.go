package registration

import (
	"context"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/penstock-project/penstock/pkg/server/managedobject"
)

func applied(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(fields)}
}

func configMap(version string, entries ...metav1.ManagedFieldsEntry) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", ResourceVersion: version, ManagedFields: entries}}
}

// TestUntouched: nothing is written while our entry in managedFields is unchanged. Other managers'
// writes do not matter.
func TestUntouched(t *testing.T) {
	const ours, other = `{"f:data":{}}`, `{"f:metadata":{}}`
	mine := applied(managedobject.FieldManager, metav1.ManagedFieldsOperationApply, ours)
	for name, tc := range map[string]struct {
		reason string
		now    *corev1.ConfigMap
		want   bool
	}{
		"same":     {"nobody wrote", configMap("1", mine), true},
		"beside":   {"somebody wrote other fields", configMap("2", mine, applied("kubectl", metav1.ManagedFieldsOperationUpdate, other)), true},
		"taken":    {"somebody took a field of ours", configMap("2", applied(managedobject.FieldManager, metav1.ManagedFieldsOperationApply, `{}`)), false},
		"remade":   {"somebody deleted and created it", configMap("2", applied("kubectl", metav1.ManagedFieldsOperationUpdate, ours)), false},
		"updated":  {"an update of ours is no apply", configMap("2", applied(managedobject.FieldManager, metav1.ManagedFieldsOperationUpdate, ours)), false},
		"stripped": {"somebody removed managedFields", configMap("2"), false},
	} {
		t.Run(name, func(t *testing.T) {
			object := managedobject.Object{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Namespace: "ns", Name: "c"}
			k := NewKeeper(nil, nil, "ns", []managedobject.Object{object}, nil)
			if k.untouched(object, tc.now) {
				t.Error("what we never wrote is not as we left it")
			}
			k.noteWritten(t.Context(), object, configMap("1", mine))
			if got := k.untouched(object, tc.now); got != tc.want {
				t.Errorf("%s: untouched is %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestRestore: an object is written again, unless we are being removed from the host.
func TestRestore(t *testing.T) {
	deleting := metav1.NewTime(time.Unix(1, 0))
	for name, tc := range map[string]struct {
		reason    string
		namespace *corev1.Namespace
		// leaving is a part of the reason why nothing is restored; empty if the object is restored.
		leaving string
	}{
		"stays":        {"nobody removes us", &corev1.Namespace{}, ""},
		"gone":         {"the namespace was deleted", nil, "is gone"},
		"deleted":      {"the namespace is being deleted", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &deleting, Finalizers: []string{"x/y"}}}, "is being deleted"},
		"unregistered": {"Penstock was unregistered", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{unregisteredAnnotation: "today"}}}, "kubectl annotate namespace ns " + unregisteredAnnotation + "-"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			if tc.namespace != nil {
				tc.namespace.Name = "ns"
				client = fake.NewClientset(tc.namespace)
			}
			written := 0
			object := managedobject.Object{Namespace: "ns", Name: "c", Apply: func(context.Context) (metav1.Object, error) {
				written++
				return configMap("1"), nil
			}}
			k := NewKeeper(client, nil, "ns", []managedobject.Object{object}, nil)
			if err := k.restore(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			if restored := written == 1; restored != (tc.leaving == "") {
				t.Errorf("%s: restored is %v", tc.reason, restored)
			}
			why, err := whyLeaving(t.Context(), client, "ns")
			if err != nil || !strings.Contains(why, tc.leaving) || tc.leaving == "" && why != "" {
				t.Errorf("%s: %q, %v", tc.reason, why, err)
			}
		})
	}
}

// TestLeadsHere: Unregister removes only webhooks that point to our Service.
func TestLeadsHere(t *testing.T) {
	u := &unregistration{namespace: "ns"}
	for name, tc := range map[string]struct {
		service *admissionv1.ServiceReference
		want    bool
	}{
		"URL":       {nil, false},
		"Ours":      {&admissionv1.ServiceReference{Namespace: "ns", Name: ServiceName}, true},
		"Name":      {&admissionv1.ServiceReference{Namespace: "ns", Name: "other"}, false},
		"Namespace": {&admissionv1.ServiceReference{Namespace: "other", Name: ServiceName}, false},
	} {
		if got := u.leadsHere(tc.service); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestOnlyOurs: a role with a second field manager is not removed.
func TestOnlyOurs(t *testing.T) {
	mine := applied(managedobject.FieldManager, metav1.ManagedFieldsOperationApply, `{}`)
	for name, tc := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		want   bool
	}{
		"Ours":    {[]metav1.ManagedFieldsEntry{mine}, true},
		"Both":    {[]metav1.ManagedFieldsEntry{mine, applied("kubectl", metav1.ManagedFieldsOperationUpdate, `{}`)}, false},
		"Unknown": {nil, false},
	} {
		if got := onlyOurs(tc.fields); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// TestUserRoles: each role of the registration can be parsed and has a name. It is aggregated into
// a role of Kubernetes, or has its own rules.
func TestUserRoles(t *testing.T) {
	roles, err := userRoles()
	if err != nil || len(roles) == 0 {
		t.Fatalf("%d roles, %v", len(roles), err)
	}
	for _, role := range roles {
		if role.Name == nil || *role.Kind != "ClusterRole" || *role.APIVersion != rbacv1.SchemeGroupVersion.String() || len(role.Rules) == 0 {
			t.Errorf("not a role: %+v", role)
		}
	}
}

func TestAPIServiceName(t *testing.T) {
	if got := APIServiceName(schema.GroupVersion{Group: "olm.operatorframework.io", Version: "v1alpha1"}); got != "v1alpha1.olm.operatorframework.io" {
		t.Error(got)
	}
}

// TestFreezePolicy: the policy is about the ConfigMap of the freeze in our namespace, and the
// binding puts it into force.
func TestFreezePolicy(t *testing.T) {
	policy, binding := FreezePolicy("ns"), FreezeBinding()
	if *binding.Spec.PolicyName != *policy.Name || len(binding.Spec.ValidationActions) != 1 || binding.Spec.ValidationActions[0] != admissionv1.Deny {
		t.Errorf("the binding does not put policy %s in force: %+v", *policy.Name, binding.Spec)
	}
	rules := policy.Spec.MatchConstraints.ResourceRules
	if len(rules) == 0 || policy.Spec.MatchConstraints.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] != "ns" {
		t.Errorf("it is about %+v", policy.Spec.MatchConstraints)
	}
}

// TestExpiry: a certificate that cannot be read has no expiry.
func TestExpiry(t *testing.T) {
	if got := Expiry([]byte("no certificate")); !got.IsZero() {
		t.Error(got)
	}
}

// TestAdopt: a leaf of a new authority is served only after every kube-apiserver had time to read
// the new bundle.
func TestAdopt(t *testing.T) {
	now := time.Unix(1000, 0)
	trust := &Trust{since: now}
	if rest := trust.adopt(now.Add(settle / 4)); rest != settle*3/4 {
		t.Errorf("%s are left, want %s", rest, settle*3/4)
	}
	if trust.distributed(nil, now) {
		t.Error("without an authority of ours there is nothing to follow")
	}
}
