package registration

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func identityOf(name, profile string) []runtime.Object {
	cluster := metav1.ObjectMeta{Name: name, Labels: map[string]string{"hco.kubevirt.io/profile-definition": profile}}
	inside := *cluster.DeepCopy()
	inside.Namespace = "ns"
	return []runtime.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: cluster}, &rbacv1.ClusterRole{ObjectMeta: cluster}, &corev1.ServiceAccount{ObjectMeta: inside},
		&rbacv1.RoleBinding{ObjectMeta: inside}, &rbacv1.Role{ObjectMeta: inside},
	}
}

// TestUnregisterProfiles: the identities of profiles are removed. Objects of other owners with
// similar names or labels stay. A failed removal can be repeated.
func TestUnregisterProfiles(t *testing.T) {
	all := slices.Concat(identityOf("penstock-profile-numa", "numa"), identityOf("penstock-profile-swap", "swap"),
		identityOf("theirs", "numa"), identityOf("penstock-profile-author", ""), identityOf("penstock-profile-", ""))
	client := fake.NewClientset(all...)
	failing := true
	client.PrependReactor("delete", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
		return failing, nil, errors.New("not now")
	})
	var removed []string
	u := &unregistration{core: client, namespace: "ns", removed: func(what string) { removed = append(removed, what) }}
	if err := u.profiles(t.Context()); err == nil {
		t.Fatal("a failure is not told")
	}
	want := []string{
		"clusterrolebinding penstock-profile-numa", "clusterrolebinding penstock-profile-swap", "clusterrole penstock-profile-numa", "clusterrole penstock-profile-swap",
	}
	if diff := cmp.Diff(want, removed); diff != "" {
		t.Errorf("rights go first (-want +got):\n%s", diff)
	}
	failing = false
	for range 2 {
		if err := u.profiles(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"serviceaccount", "rolebinding", "role"} {
		want = append(want, kind+" ns/penstock-profile-numa", kind+" ns/penstock-profile-swap")
	}
	if diff := cmp.Diff(want, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	var options metav1.ListOptions
	for kind, count := range map[string]func(context.Context) int{
		"ClusterRoleBindings": func(ctx context.Context) int {
			l, _ := client.RbacV1().ClusterRoleBindings().List(ctx, options)
			return len(l.Items)
		},
		"ClusterRoles": func(ctx context.Context) int {
			l, _ := client.RbacV1().ClusterRoles().List(ctx, options)
			return len(l.Items)
		},
		"ServiceAccounts": func(ctx context.Context) int {
			l, _ := client.CoreV1().ServiceAccounts("ns").List(ctx, options)
			return len(l.Items)
		},
		"RoleBindings": func(ctx context.Context) int {
			l, _ := client.RbacV1().RoleBindings("ns").List(ctx, options)
			return len(l.Items)
		},
		"Roles": func(ctx context.Context) int {
			l, _ := client.RbacV1().Roles("ns").List(ctx, options)
			return len(l.Items)
		},
	} {
		if n := count(t.Context()); n != 3 {
			t.Errorf("%d %s are left, want those of others, 3", n, kind)
		}
	}
}
