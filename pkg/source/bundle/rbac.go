package bundle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serviceAccounts adds the ServiceAccounts that permissions name, in the install namespace.
func (in *installation) serviceAccounts() error {
	var names []string
	for _, one := range slices.Concat(in.strategy().Permissions, in.strategy().ClusterPermissions) {
		if name := one.serviceAccount(); name != defaultServiceAccount {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := in.add(&corev1.ServiceAccount{TypeMeta: typed("v1", "ServiceAccount"), ObjectMeta: in.namespaced(name)}); err != nil {
			return err
		}
	}
	return nil
}

// permissions adds the namespaced rights: a Role in the watched namespace. If the operator watches
// all namespaces, it adds a ClusterRole instead, which also allows to read namespaces.
func (in *installation) permissions() error {
	for i, one := range in.strategy().Permissions {
		path := []any{"spec", "install", "spec", "permissions", i}
		if in.config.WatchNamespace == "" {
			one.Rules = append(slices.Clone(one.Rules), rbacv1.PolicyRule{
				Verbs: []string{"get", "list", "watch"}, APIGroups: []string{corev1.GroupName}, Resources: []string{"namespaces"},
			})
			if err := in.clusterRole(one, path); err != nil {
				return err
			}
			continue
		}
		if err := in.role(one, path); err != nil {
			return err
		}
	}
	return nil
}

func (in *installation) clusterPermissions() error {
	for i, one := range in.strategy().ClusterPermissions {
		if err := in.clusterRole(one, []any{"spec", "install", "spec", "clusterPermissions", i}); err != nil {
			return err
		}
	}
	return nil
}

func (in *installation) role(one permission, path []any) error {
	name, err := roleName(in.csv.Metadata.Name, one)
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: name, Namespace: in.config.WatchNamespace}
	if err := in.addFrom(&rbacv1.Role{TypeMeta: typed(rbacAPI, "Role"), ObjectMeta: meta, Rules: one.Rules}, path); err != nil {
		return err
	}
	return in.addFrom(&rbacv1.RoleBinding{
		TypeMeta: typed(rbacAPI, "RoleBinding"), ObjectMeta: meta,
		Subjects: in.subjects(one), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}, path)
}

func (in *installation) clusterRole(one permission, path []any) error {
	name, err := roleName(in.csv.Metadata.Name, one)
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: name}
	if err := in.addFrom(&rbacv1.ClusterRole{TypeMeta: typed(rbacAPI, "ClusterRole"), ObjectMeta: meta, Rules: one.Rules}, path); err != nil {
		return err
	}
	return in.addFrom(&rbacv1.ClusterRoleBinding{
		TypeMeta: typed(rbacAPI, "ClusterRoleBinding"), ObjectMeta: meta,
		Subjects: in.subjects(one), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}, path)
}

const rbacAPI = "rbac.authorization.k8s.io/v1"

func (in *installation) subjects(one permission) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: one.serviceAccount(), Namespace: in.options.InstallNamespace}}
}

func typed(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}
