package extension

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
)

// longestGrant bounds the roles in a condition, in bytes. Longer roles would need a file.
const longestGrant = 4000

// grant returns the roles and bindings that give a user the rights to install content, for an
// administrator to review and apply. It is empty if the text is too long for a condition.
func grant(extension, who string, phases []source.Phase) string {
	content, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": grantObjects("install-"+extension, who, grants(phases))})
	if err != nil || len(content) > longestGrant {
		return ""
	}
	return fmt.Sprintf("to grant the necessary rights, if you agree:\nkubectl apply -f - <<'EOF'\n%s\nEOF", content)
}

// grantObjects returns a Role and a binding for each namespace, and a ClusterRole and a binding for
// the rest.
func grantObjects(name, who string, rules map[string][]rbacv1.PolicyRule) []map[string]any {
	subject := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: who}
	if account, is := strings.CutPrefix(who, "system:serviceaccount:"); is {
		namespace, account, _ := strings.Cut(account, ":")
		subject = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}
	}
	var objects []map[string]any
	for _, namespace := range slices.Sorted(maps.Keys(rules)) {
		kind, what := "Role", map[string]string{"name": name}
		if namespace == "" {
			kind = "ClusterRole"
		} else {
			what["namespace"] = namespace
		}
		for _, object := range []map[string]any{
			{"kind": kind, "rules": rules[namespace]},
			{"kind": kind + "Binding", "roleRef": rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}, "subjects": []rbacv1.Subject{subject}},
		} {
			object["apiVersion"], object["metadata"] = rbacv1.SchemeGroupVersion.String(), what
			objects = append(objects, object)
		}
	}
	return objects
}

// grants returns rules for all objects by name, and for the rights that roles among them grant, by
// namespace. The namespace "" has the rules for cluster-scoped objects. Resource names are guessed
// from kinds, which is correct for Kubernetes' own kinds.
func grants(phases []source.Phase) map[string][]rbacv1.PolicyRule {
	type place struct {
		namespace string
		resource  schema.GroupResource
	}
	rules := map[string][]rbacv1.PolicyRule{
		"": {{APIGroups: []string{olmv1alpha1.SchemeGroupVersion.Group}, Resources: []string{"clusterextensionrevisions"}, Verbs: []string{"create"}}},
	}
	names := map[place][]string{}
	var order []place
	handed := map[string][]rbacv1.PolicyRule{}
	for _, phase := range phases {
		for _, object := range phase.Objects {
			resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: object.ID.Group, Version: object.Version, Kind: object.ID.Kind})
			key := place{object.ID.Namespace, resource.GroupResource()}
			if names[key] == nil {
				order = append(order, key)
			}
			names[key] = append(names[key], object.ID.Name)
			handed[key.namespace] = append(handed[key.namespace], rulesIn(object)...)
		}
	}
	for _, key := range order {
		rules[key.namespace] = append(rules[key.namespace], rbacv1.PolicyRule{
			APIGroups: []string{key.resource.Group}, Resources: []string{key.resource.Resource}, ResourceNames: names[key], Verbs: []string{"create", "patch", "delete"},
		})
	}
	for namespace, more := range handed {
		rules[namespace] = append(rules[namespace], more...)
	}
	return rules
}

// rulesIn returns the rules that a role grants. A user needs all of them to write the role.
func rulesIn(object manifest.Object) []rbacv1.PolicyRule {
	if object.ID.Group != rbacv1.GroupName || !strings.HasSuffix(object.ID.Kind, "Role") {
		return nil
	}
	var role struct {
		Rules []rbacv1.PolicyRule `json:"rules"`
	}
	if err := json.Unmarshal(object.JSON, &role); err != nil {
		return nil
	}
	return role.Rules
}
