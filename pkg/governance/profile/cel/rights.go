package cel

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
)

func verbs(access v1alpha1.DefinitionAccess) []string {
	switch access {
	case v1alpha1.AccessRead:
		return []string{"get", "list", "watch"}
	case v1alpha1.AccessWrite:
		return []string{"get", "list", "watch", "create", "patch", "delete"}
	default:
		return nil
	}
}

// Rights returns the rights of an access to the objects of a definition, in the whole cluster.
func Rights(definition string, access v1alpha1.DefinitionAccess) []authz.Right {
	plural, group := PluralOf(definition)
	var rights []authz.Right
	for _, verb := range verbs(access) {
		rights = append(rights, authz.Right{Verb: verb, Group: group, Resource: plural})
	}
	return rights
}

// Rules returns the rules of the ServiceAccount of a profile: exactly the verbs on the declared
// kinds, and read access to their CustomResourceDefinitions. A forbidden kind gets no rule, even if
// a stored definition declares it.
func Rules(declared []v1alpha1.DeclaredAccess) []rbacv1.PolicyRule {
	strongest, names := map[string]v1alpha1.DefinitionAccess{}, []string{}
	for _, one := range declared {
		if Forbidden(PluralOf(one.Definition)) != "" {
			continue
		}
		before, known := strongest[one.Definition]
		if !known {
			names = append(names, one.Definition)
		}
		if !known || len(verbs(one.Access)) > len(verbs(before)) {
			strongest[one.Definition] = one.Access
		}
	}
	if len(names) == 0 {
		return nil
	}
	rules := []rbacv1.PolicyRule{{
		APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: names, Verbs: verbs(v1alpha1.AccessRead),
	}}
	for _, name := range names {
		if granted := verbs(strongest[name]); len(granted) > 0 {
			plural, group := PluralOf(name)
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{plural}, Verbs: granted})
		}
	}
	return rules
}

// Declared returns the declarations of a definition.
func Declared(spec *v1alpha1.ConfigurationProfileDefinitionSpec) []v1alpha1.DeclaredAccess {
	declared := make([]v1alpha1.DeclaredAccess, len(spec.Requirements))
	for i, one := range spec.Requirements {
		declared[i] = v1alpha1.DeclaredAccess{Definition: one.Definition, Access: one.Access}
	}
	return declared
}
