package registration

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
)

// profiles removes the identities of user-defined profiles, beginning with their rights. Remove the
// identity of the engine first: a process that still runs would write the profiles' identities
// again in its name.
func (u *unregistration) profiles(ctx context.Context) error {
	roles, accounts := u.core.RbacV1(), u.core.CoreV1().ServiceAccounts(u.namespace)
	for _, kind := range []struct {
		// what is the kind. namespace is the prefix of names in messages.
		what, namespace string
		list            func(context.Context, metav1.ListOptions) (runtime.Object, error)
		remove          func(context.Context, string, metav1.DeleteOptions) error
	}{
		{"clusterrolebinding", "", listing(roles.ClusterRoleBindings().List), roles.ClusterRoleBindings().Delete},
		{"clusterrole", "", listing(roles.ClusterRoles().List), roles.ClusterRoles().Delete},
		{"serviceaccount", u.namespace + "/", listing(accounts.List), accounts.Delete},
		{"rolebinding", u.namespace + "/", listing(roles.RoleBindings(u.namespace).List), roles.RoleBindings(u.namespace).Delete},
		{"role", u.namespace + "/", listing(roles.Roles(u.namespace).List), roles.Roles(u.namespace).Delete},
	} {
		list, err := kind.list(ctx, metav1.ListOptions{LabelSelector: serviceaccounts.ProfileLabel})
		if err != nil {
			return fmt.Errorf("listing each %s of a profile: %w", kind.what, err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			found, err := meta.Accessor(item)
			if err != nil || !serviceaccounts.OfProfile(found) {
				return err
			}
			return u.gone(kind.what+" "+kind.namespace+found.GetName(), kind.remove(ctx, found.GetName(), metav1.DeleteOptions{}))
		}); err != nil {
			return err
		}
	}
	return nil
}

// listing adapts the List method of a typed client.
func listing[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return list(ctx, options)
	}
}
