package privilege

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// writesRBAC returns the right to write roles and bindings. It does not include the rights that
// they grant.
func writesRBAC() rbacv1.PolicyRule {
	return rule("create,patch", "rbac.authorization.k8s.io", "roles,clusterroles,rolebindings,clusterrolebindings")
}

func TestGrants(t *testing.T) {
	role := func(rules ...rbacv1.PolicyRule) manifest.Object {
		return object(t, "rbac.authorization.k8s.io/v1", "Role", "lighthouse", "r", fields{"rules": rules})
	}
	roleBinding := func(kind, name string) manifest.Object {
		return object(t, "rbac.authorization.k8s.io/v1", "RoleBinding", "lighthouse", "b", fields{
			"roleRef": fields{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
		})
	}
	secrets := rule("get,list", "", "secrets")
	cases := map[string]struct {
		reason    string
		situation func(*situation)
		objects   []manifest.Object
		code      int32
		says      []string
	}{
		"Escalation": {
			reason: "nobody grants what they do not have", objects: []manifest.Object{clusterRole(t, "r", secrets)},
			situation: func(*situation) {}, code: forbidden, says: []string{"cannot get,list secrets (granted by ClusterRole r)"},
		},
		"Held": {
			reason: "with the rights it is allowed", objects: []manifest.Object{clusterRole(t, "r", secrets)},
			situation: func(w *situation) { w.may("", secrets) },
		},
		"HeldPartly": {
			reason: "atom by atom", objects: []manifest.Object{clusterRole(t, "r", secrets, rule("get", "apps", "deployments,deployments/scale"))},
			situation: func(w *situation) { w.may("", secrets, rule("get", "apps", "deployments")) },
			code:      forbidden, says: []string{"cannot get deployments/scale.apps", "!secrets"},
		},
		"HeldInNamespace": {
			reason: "a right in a namespace is not what a ClusterRole grants", objects: []manifest.Object{clusterRole(t, "r", secrets)},
			situation: func(w *situation) { w.may("lighthouse", secrets) }, code: forbidden,
		},
		"Role": {
			reason: "but what a Role there grants", objects: []manifest.Object{role(secrets)},
			situation: func(w *situation) { w.may("lighthouse", secrets) },
		},
		"RoleElsewhere": {
			reason: "and there only", objects: []manifest.Object{role(secrets)},
			situation: func(w *situation) { w.may("other", secrets) }, code: forbidden, says: []string{"get,list secrets in namespace lighthouse (granted by Role lighthouse/r)"},
		},
		"Names": {
			reason: "some names are not all", objects: []manifest.Object{clusterRole(t, "r", secrets)},
			situation: func(w *situation) { w.may("", rule("get,list", "", "secrets", "one")) }, code: forbidden,
		},
		"NamesHeld": {
			reason: "all names are some", objects: []manifest.Object{clusterRole(t, "r", rule("get", "", "secrets", "one", "two"))},
			situation: func(w *situation) { w.may("", rule("get", "", "secrets", "one")) },
			code:      forbidden, says: []string{"get secrets two", "!secrets one"},
		},
		"Wildcard": {
			reason: "every verb that there is, is not all verbs", objects: []manifest.Object{clusterRole(t, "r", rule("*", "", "secrets"))},
			situation: func(w *situation) { w.may("", rule("get,list,watch,create,update,patch,delete", "", "secrets")) },
			code:      forbidden, says: []string{"* secrets"},
		},
		"SubresourceWildcard": {
			reason: "a subresource of all resources covers that of one", objects: []manifest.Object{clusterRole(t, "r", rule("get", "apps", "deployments/scale"))},
			situation: func(w *situation) { w.may("", rule("get", "apps", "*/scale")) },
		},
		"Path": {
			reason: "paths too", objects: []manifest.Object{clusterRole(t, "r", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics"}})},
			situation: func(*situation) {}, code: forbidden, says: []string{"get /metrics (granted by ClusterRole r)"},
		},
		"PathHeld": {
			reason: "with a star at the end", objects: []manifest.Object{clusterRole(t, "r", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics/*"}})},
			situation: func(w *situation) {
				w.may("", rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/metrics/*"}})
			},
		},
		"Escalate": {
			reason: "the verb escalate is for those who may grant what they have not", objects: []manifest.Object{clusterRole(t, "r", secrets)},
			situation: func(w *situation) { w.may("", rule("escalate", "rbac.authorization.k8s.io", "clusterroles", "r")) },
		},
		"EscalateRoles": {
			reason: "of the same kind of role", objects: []manifest.Object{clusterRole(t, "r", secrets)},
			situation: func(w *situation) { w.may("", rule("escalate", "rbac.authorization.k8s.io", "roles")) }, code: forbidden,
		},
		"Aggregation": {
			reason:    "a role that gathers others can become anything",
			objects:   []manifest.Object{object(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "a", fields{"aggregationRule": fields{"clusterRoleSelectors": []any{fields{}}}})},
			situation: func(w *situation) { w.may("", secrets) }, code: forbidden, says: []string{"* *.*", "* *"},
		},
		"KeptRules": {
			reason:    "a manifest without rules leaves those that are there, and its labels may hand them on",
			objects:   []manifest.Object{object(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "powerful", fields{"metadata": fields{"name": "powerful", "labels": fields{"rbac.authorization.k8s.io/aggregate-to-view": "true"}}})},
			situation: func(w *situation) { w.roles["ClusterRole /powerful"] = []rbacv1.PolicyRule{secrets} },
			code:      forbidden, says: []string{"get,list secrets (granted by ClusterRole powerful)"},
		},
		"KeptRulesHeld": {
			reason: "who has them may", objects: []manifest.Object{clusterRole(t, "powerful")},
			situation: func(w *situation) { w.may("", secrets).roles["ClusterRole /powerful"] = []rbacv1.PolicyRule{secrets} },
		},
		"ReplacedRules": {
			reason: "rules that the manifest has are all that there are then", objects: []manifest.Object{clusterRole(t, "powerful", rule("get", "", "configmaps"))},
			situation: func(w *situation) {
				w.may("", rule("get", "", "configmaps")).roles["ClusterRole /powerful"] = []rbacv1.PolicyRule{secrets}
			},
		},
		"GatheredRules": {
			reason: "but those of an aggregated role come back", objects: []manifest.Object{clusterRole(t, "powerful", rule("get", "", "configmaps"))},
			situation: func(w *situation) {
				w.may("", rule("get", "", "configmaps")).roles["ClusterRole /powerful"] = []rbacv1.PolicyRule{secrets}
				w.aggregated = map[string]bool{"powerful": true}
			},
			code: forbidden, says: []string{"get,list secrets (granted by ClusterRole powerful)"},
		},
		"LetterCase": {
			reason: "a field that API servers do not know must not hide the one that they know",
			objects: []manifest.Object{object(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "r", fields{"rules": []any{fields{
				"verbs": []string{"get"}, "apiGroups": []string{""}, "apigroups": []string{"harmless"}, "resources": []string{"secrets"},
			}}})},
			situation: func(w *situation) { w.may("", rule("get", "harmless", "secrets")) },
			code:      forbidden, says: []string{"get secrets (granted"},
		},
		"Unreadable": {
			reason:    "what cannot be read cannot be checked",
			objects:   []manifest.Object{object(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", "r", fields{"rules": "all"})},
			situation: func(*situation) {}, code: forbidden, says: []string{"reading ClusterRole.rbac.authorization.k8s.io r"},
		},
		"Binding": {
			reason: "a binding grants what is in the role of the cluster", objects: []manifest.Object{clusterRoleBinding(t, "b", "reader")},
			situation: func(w *situation) { w.roles["ClusterRole /reader"] = []rbacv1.PolicyRule{secrets} },
			code:      forbidden, says: []string{"get,list secrets (granted by ClusterRoleBinding b, through ClusterRole reader)"},
		},
		"BindingHeld": {
			reason: "which they have", objects: []manifest.Object{clusterRoleBinding(t, "b", "reader")},
			situation: func(w *situation) { w.may("", secrets).roles["ClusterRole /reader"] = []rbacv1.PolicyRule{secrets} },
		},
		"BindingInNamespace": {
			reason: "in the namespace of the binding", objects: []manifest.Object{roleBinding("ClusterRole", "reader")},
			situation: func(w *situation) {
				w.may("lighthouse", secrets).roles["ClusterRole /reader"] = []rbacv1.PolicyRule{secrets}
			},
		},
		"Bind": {
			reason: "the verb bind is for those who may hand on what they have not", objects: []manifest.Object{clusterRoleBinding(t, "b", "reader")},
			situation: func(w *situation) {
				w.may("", rule("bind", "rbac.authorization.k8s.io", "clusterroles", "reader")).roles["ClusterRole /reader"] = []rbacv1.PolicyRule{secrets}
			},
		},
		"BindInNamespace": {
			reason: "who may bind in a namespace cannot in all", objects: []manifest.Object{clusterRoleBinding(t, "b", "reader")},
			situation: func(w *situation) {
				w.may("lighthouse", rule("bind", "rbac.authorization.k8s.io", "clusterroles")).roles["ClusterRole /reader"] = []rbacv1.PolicyRule{secrets}
			},
			code: forbidden,
		},
		"BindingOfBroughtRole": {
			reason: "a role of the same revision", objects: []manifest.Object{role(secrets), roleBinding("Role", "r")},
			situation: func(w *situation) { w.may("lighthouse", secrets) },
		},
		"BindingBeforeRole": {
			reason:  "until the revision's role is applied the binding is one of the cluster's, which grants more",
			objects: []manifest.Object{clusterRoleBinding(t, "b", "cluster-admin"), clusterRole(t, "cluster-admin", secrets)},
			situation: func(w *situation) {
				w.may("", secrets).roles["ClusterRole /cluster-admin"] = []rbacv1.PolicyRule{rule("*", "*", "*")}
			},
			code: forbidden, says: []string{"* *.* (granted by ClusterRoleBinding b, through ClusterRole cluster-admin)"},
		},
		"BindingOfNothing": {
			reason: "somebody could make the role later", objects: []manifest.Object{clusterRoleBinding(t, "b", "later")},
			situation: func(*situation) {}, code: forbidden, says: []string{"bind clusterroles.rbac.authorization.k8s.io later", "there is no such role yet"},
		},
		"RoleNotScoped": {
			reason:    "a ClusterRole grants in the whole cluster, and its manifest must not say a namespace",
			objects:   []manifest.Object{object(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "lighthouse", "r", fields{"rules": []rbacv1.PolicyRule{secrets}})},
			situation: func(w *situation) { w.may("lighthouse", rule("*", "*", "*")) },
			code:      invalid, says: []string{`spec.phases[0].objects[0].namespace: Invalid value: "lighthouse"`, "ClusterRole.rbac.authorization.k8s.io is cluster-scoped"},
		},
		"BindingNotScoped": {
			reason: "nor that of a ClusterRoleBinding",
			objects: []manifest.Object{role(secrets), object(t, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "lighthouse", "b", fields{
				"roleRef": fields{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
			})},
			situation: func(w *situation) { w.may("lighthouse", rule("*", "*", "*")) },
			code:      invalid, says: []string{`spec.phases[0].objects[1].namespace: Invalid value: "lighthouse"`},
		},
		"TooMany": {
			reason: "nobody is asked thousands of questions", objects: []manifest.Object{clusterRole(t, "r", rule("get", "", many("r", MaxAtoms+1)))},
			situation: func(w *situation) { w.may("", rule("get", "", "*")) }, code: forbidden, says: []string{"more than 2000 rights", "bypass"},
		},
		"JustEnough": {
			reason: "as many as may be, each once", objects: []manifest.Object{clusterRole(t, "r", rule("get", "", many("r", MaxAtoms))), clusterRole(t, "s", rule("get", "", many("r", MaxAtoms)))},
			situation: func(w *situation) { w.may("", rule("get", "", "*")) },
		},
		"Bomb": {
			reason: "a few kilobytes that would be a thousand million rights", objects: []manifest.Object{clusterRole(t, "r", rule(many("v", 1000), many("g", 1000), many("r", 1000)))},
			situation: func(*situation) {}, code: forbidden, says: []string{"more than 2000 rights"},
		},
		"TooManyEscalate": {
			reason: "they are not counted for who may escalate", objects: []manifest.Object{clusterRole(t, "r", rule("get", "", many("r", MaxAtoms+1)))},
			situation: func(w *situation) { w.may("", rule("escalate", "rbac.authorization.k8s.io", "clusterroles")) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newSituation(t).may("", writesRBAC())
			tc.situation(w)
			want(t, tc.reason, w.creates(rev(1, tc.objects...)), tc.code, tc.says...)
		})
	}
}

func many(prefix string, n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprint(prefix, i)
	}
	return strings.Join(words, ",")
}

// TestGrantsHaveTheScopeOfTheirKind covers content that no request can have, and clusters whose
// discovery does not know the kinds: rights in all namespaces are never checked in only one
// namespace.
func TestGrantsHaveTheScopeOfTheirKind(t *testing.T) {
	everything := rule("*", "*", "*")
	objects := map[string]manifest.Object{
		"ClusterRole": object(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "lighthouse", "r", fields{"rules": []rbacv1.PolicyRule{rule("get", "", "secrets")}}),
		"ClusterRoleBinding": object(t, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "lighthouse", "b", fields{
			"roleRef": fields{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
		}),
		"UnknownVersion": object(t, "rbac.authorization.k8s.io/v9", "ClusterRole", "lighthouse", "r", fields{"rules": []rbacv1.PolicyRule{rule("get", "", "secrets")}}),
	}
	for name, granting := range objects {
		t.Run(name, func(t *testing.T) {
			w := newSituation(t).may("", writesRBAC()).may("lighthouse", everything).holds(rev(1, granting).as("Archived"), rev(2))
			w.roles["ClusterRole /reader"] = []rbacv1.PolicyRule{rule("get", "", "secrets")}
			want(t, "stored", w.creates(rev(3, granting).rollbackOf("lighthouse-1")), forbidden, "get secrets (granted by Cluster")
			if name == "UnknownVersion" {
				want(t, "brought", w.creates(rev(3, granting)), forbidden, "get secrets (granted by ClusterRole r)")
			}
		})
	}
}

// TestScopes covers kinds other than roles.
func TestScopes(t *testing.T) {
	definition := func(scope string) manifest.Object {
		return object(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "lamps.example.com", fields{"spec": fields{
			"group": "example.com", "scope": scope, "names": fields{"kind": "Lamp", "plural": "lamps"}, "versions": []any{fields{"name": "v1"}},
		}})
	}
	lamp := object(t, "example.com/v1", "Lamp", "lighthouse", "bright", nil)
	cases := map[string]struct {
		reason  string
		objects []manifest.Object
		code    int32
		says    []string
	}{
		"Known": {
			reason: "what discovery knows", objects: []manifest.Object{object(t, "v1", "Namespace", "lighthouse", "other", nil)},
			code: invalid, says: []string{`spec.phases[0].objects[0].namespace: Invalid value: "lighthouse": Namespace is cluster-scoped: the manifest must have no metadata.namespace`},
		},
		"Brought": {
			reason: "what the revision defines", objects: []manifest.Object{definition("Cluster"), lamp},
			code: invalid, says: []string{"spec.phases[0].objects[1].namespace", "Lamp.example.com is cluster-scoped"},
		},
		"Namespaced": {reason: "a namespaced kind needs one", objects: []manifest.Object{definition("Namespaced"), lamp}},
		"Unknown":    {reason: "the engine checks it when it is known", objects: []manifest.Object{lamp}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newSituation(t).may("", rule("create,patch", "*", "*"))
			want(t, tc.reason, w.creates(rev(1, tc.objects...)), tc.code, tc.says...)
		})
	}
}

func TestScopesAreBounded(t *testing.T) {
	var objects []manifest.Object
	for i := range 3 * maxScopeErrors {
		objects = append(objects, object(t, "v1", "Namespace", "lighthouse", fmt.Sprint("n", i), nil))
	}
	err := newSituation(t).creates(rev(1, objects...))
	want(t, "a long list helps nobody", err, invalid)
	if n := strings.Count(err.Error(), "cluster-scoped"); n != maxScopeErrors {
		t.Errorf("%d objects are named, want %d", n, maxScopeErrors)
	}
}
