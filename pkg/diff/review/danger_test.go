package review_test

import (
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
	"github.com/penstock-project/penstock/pkg/note"
)

// dangerousRights returns rights with which a subject can extend its own power, one by one.
func dangerousRights() []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	add := func(group string, resources, verbs []string) {
		for _, resource := range resources {
			for _, verb := range verbs {
				all = append(all, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}})
			}
		}
	}
	write := []string{"create", "update", "patch"}
	add("rbac.authorization.k8s.io", []string{"roles", "clusterroles"}, append([]string{"escalate", "bind"}, write...))
	add("rbac.authorization.k8s.io", []string{"rolebindings", "clusterrolebindings"}, write)
	add("", []string{"users", "groups", "serviceaccounts"}, []string{"impersonate"})
	add("authentication.k8s.io", []string{"uids", "userextras/scopes"}, []string{"impersonate"})
	add("authentication.k8s.io", []string{"users", "groups"}, []string{"impersonate:user-info"})
	add("apps", []string{"deployments"}, []string{"impersonate-on:user-info:get"})
	add("", []string{"nodes/proxy"}, []string{"get", "create"})
	add("", []string{"serviceaccounts/token", "persistentvolumes"}, []string{"create"})
	add("certificates.k8s.io", []string{"certificatesigningrequests/approval"}, []string{"update", "patch"})
	add("certificates.k8s.io", []string{"signers"}, []string{"approve", "sign"})
	add("privilegechecks.policy.penstock.dev", []string{"privilegechecks"}, []string{"bypass"})
	add("", []string{"secrets"}, []string{"get", "list", "watch", "update", "patch", "delete", "deletecollection"})
	add("", []string{"pods/exec", "pods/attach", "pods/portforward"}, []string{"get", "create"})
	add("", []string{"pods/ephemeralcontainers"}, []string{"update", "patch"})
	add("admissionregistration.k8s.io", []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations", "mutatingadmissionpolicies",
		"mutatingadmissionpolicybindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings"}, append([]string{"delete", "deletecollection"}, write...))
	add("apiregistration.k8s.io", []string{"apiservices"}, write)
	return append(all, rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}})
}

func severityOf(t *testing.T, rule rbacv1.PolicyRule) note.Severity {
	rules, err := json.Marshal([]rbacv1.PolicyRule{rule})
	if err != nil {
		t.Fatal(err)
	}
	role := difftest.Object(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrules: "+string(rules))
	worst := note.Info
	for _, one := range compare(t, nil, role).Notes {
		if one.Reason == note.RightsGained && one.Severity.Rank() < worst.Rank() {
			worst = one.Severity
		}
	}
	return worst
}

// TestWiderRules: a rule that allows a dangerous right by a wildcard has at least the severity of
// the rule that names the right.
func TestWiderRules(t *testing.T) {
	dangerous := dangerousRights()
	groups, resources, verbs := []string{"*", "apps"}, []string{"*", "*/*", "deployments"}, []string{"*", "list"}
	severities := make([]note.Severity, len(dangerous))
	for i, one := range dangerous {
		severities[i] = severityOf(t, one)
		if severities[i] == note.Info {
			t.Errorf("%v is %s", one, severities[i])
		}
		groups, verbs = append(groups, one.APIGroups...), append(verbs, one.Verbs...)
		for _, resource := range one.Resources {
			resources = append(resources, resource)
			if _, subresource, nested := strings.Cut(resource, "/"); nested {
				resources = append(resources, "*/"+subresource)
			}
		}
	}
	check := func(tb rapid.TB, rule rbacv1.PolicyRule) {
		severity := severityOf(t, rule)
		for i, one := range dangerous {
			one.ResourceNames = rule.ResourceNames
			if one.NonResourceURLs != nil {
				one.ResourceNames = nil
			}
			if covers, _ := validation.Covers([]rbacv1.PolicyRule{rule}, []rbacv1.PolicyRule{one}); covers && severity.Rank() > severities[i].Rank() {
				tb.Errorf("%v is %s, and allows %v, which is %s", rule, severity, one, severities[i])
			}
		}
	}
	// Each right alone, with wildcards in any of its parts.
	for _, one := range dangerous {
		for wild := range 8 {
			wider := *one.DeepCopy()
			if one.NonResourceURLs != nil {
				for _, url := range []string{"/*", "**", "*"} {
					wider.NonResourceURLs = []string{url}
					if severityOf(t, wider) == note.Info {
						t.Errorf("%s is %s, and allows any URL", url, note.Info)
					}
				}
				break
			}
			if wild&1 != 0 {
				wider.APIGroups = []string{"*"}
			}
			if wild&2 != 0 {
				wider.Resources = []string{"*"}
				if _, subresource, nested := strings.Cut(one.Resources[0], "/"); nested {
					wider.Resources = []string{"*/" + subresource}
				}
			}
			if wild&4 != 0 {
				wider.Verbs = []string{"*"}
			}
			for _, names := range [][]string{nil, {"one"}} {
				wider.ResourceNames = names
				check(t, wider)
			}
		}
	}
	some := func(rt *rapid.T, label string, of []string) []string {
		return rapid.SliceOfN(rapid.SampledFrom(of), 1, 3).Draw(rt, label)
	}
	rapid.Check(t, func(rt *rapid.T) {
		rule := rbacv1.PolicyRule{APIGroups: some(rt, "groups", groups), Resources: some(rt, "resources", resources), Verbs: some(rt, "verbs", verbs)}
		if rapid.Bool().Draw(rt, "named") {
			rule.ResourceNames = []string{"one"}
		}
		check(rt, rule)
	})
}
