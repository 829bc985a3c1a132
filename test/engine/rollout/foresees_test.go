//go:build integration

package rollout_test

import (
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/test/framework/objects"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// upgrade is one that is known to be accepted, as far as its manifests say: a ConfigMap, a
// Deployment, a Service, a RoleBinding and a Role change in it.
func upgrade(ns, value string) []map[string]any {
	service := objects.New("v1", "Service", ns, "service")
	service["metadata"].(map[string]any)["labels"] = map[string]any{"value": value}
	service["spec"] = map[string]any{"selector": map[string]any{"app": "x"}, "ports": []any{map[string]any{"port": int64(80)}}}
	binding := objects.New("rbac.authorization.k8s.io/v1", "RoleBinding", ns, "binding")
	binding["metadata"].(map[string]any)["labels"] = map[string]any{"value": value}
	binding["roleRef"] = map[string]any{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": "view"}
	role := objects.New("rbac.authorization.k8s.io/v1", "Role", ns, "role")
	role["rules"] = []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get", value}}}
	return []map[string]any{configMap(ns, "a", value), deployment(ns, "app", value), service, binding, role}
}

// TestForesees: what else than validation may refuse an update has it tried, and what is refused
// is refused before the first write of its phase.
func TestForesees(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.runControllers()
	client, err := kubernetes.NewForConfig(w.User("outsider", "system:masters").Config())
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		reason string
		// meddle is what others do before the upgrade.
		meddle func(t *testing.T, c *chain)
		// tried are the objects that are; refused is what the server says of one of them, empty
		// if it takes them all.
		tried   []string
		refused string
	}{
		"known": {reason: "nothing else has a say", meddle: func(*testing.T, *chain) {}},
		"webhook": {
			reason: "a webhook for ConfigMaps may refuse one",
			meddle: func(_ *testing.T, c *chain) {
				c.webhook(c.name, false, func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return denied("not this one") })
			},
			tried: []string{"a"}, refused: "not this one",
		},
		"webhook-elsewhere": {
			reason: "one for another namespace may not",
			meddle: func(_ *testing.T, c *chain) {
				c.webhook("kube-public", false, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return denied("not this one") })
			},
		},
		"mutating": {
			reason: "who may change it, may refuse it",
			meddle: func(_ *testing.T, c *chain) {
				c.webhook(c.name, true, func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse { return allowed() })
			},
			tried: []string{"a"},
		},
		"policy": {
			reason: "a policy may refuse a Deployment",
			meddle: func(t *testing.T, c *chain) { forbidDeployments(t, client, c.name) },
			tried:  []string{"app"}, refused: "no such Deployment",
		},
		"manager": {
			reason: "somebody else wrote to it: nobody knows what",
			meddle: func(t *testing.T, c *chain) {
				c.patch(manifest.ID{Kind: "ConfigMap", Namespace: c.name, Name: "a"}, "somebody", `{"metadata":{"labels":{"theirs":"1"}}}`)
			},
			tried: []string{"a"},
		},
		"immutable": {
			reason: "somebody else made it immutable",
			meddle: func(t *testing.T, c *chain) {
				c.patch(manifest.ID{Kind: "ConfigMap", Namespace: c.name, Name: "a"}, "somebody", `{"immutable":true}`)
			},
			tried: []string{"a"}, refused: "immutable",
		},
		"quota": {
			reason: "quotas have a say in Services",
			meddle: func(t *testing.T, c *chain) {
				_, err := client.CoreV1().ResourceQuotas(c.name).Create(t.Context(), &corev1.ResourceQuota{
					ObjectMeta: metav1.ObjectMeta{Name: "services"},
					Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceServices: resource.MustParse("5")}},
				}, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
			},
			tried: []string{"service"},
		},
		"engine": {
			reason: "what the engine may do by artifacts/deploy is enough",
			meddle: func(t *testing.T, c *chain) {
				c.grant(t, client, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"create", "patch", "delete"}},
					rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "clusterroles"}, Verbs: []string{"escalate", "bind"}})
				c.admin = c.User("foresees-engine").Config()
				c.run()
			},
		},
		"bind": {
			reason: "to bind bindings is not to bind roles",
			meddle: func(t *testing.T, c *chain) {
				c.grant(t, client, rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"create", "patch", "delete"}},
					rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings"}, Verbs: []string{"bind"}})
				c.admin = c.User("foresees-bind").Config()
				c.run()
			},
			tried: []string{"binding", "role"}, refused: "attempting to grant",
		},
		"rights": {
			reason: "who may not do everything, may not be allowed this",
			meddle: func(t *testing.T, c *chain) {
				c.grant(t, client, rbacv1.PolicyRule{APIGroups: []string{"", "apps", rbacv1.GroupName}, Verbs: []string{"create", "patch", "escalate", "bind"},
					Resources: []string{"deployments", "configmaps", "services", "rolebindings", "roles", "clusterroles"}})
				c.admin = c.User("foresees-rights").Config()
				c.run()
			},
			tried: []string{"a", "app", "service", "binding", "role"},
		},
		"right": {
			reason: "and is told before the first write",
			meddle: func(t *testing.T, c *chain) {
				c.grant(t, client, rbacv1.PolicyRule{APIGroups: []string{"", rbacv1.GroupName}, Verbs: []string{"create", "patch", "escalate", "bind"},
					Resources: []string{"configmaps", "services", "rolebindings", "roles", "clusterroles"}})
				c.admin = c.User("foresees-right").Config()
				c.run()
			},
			tried: []string{"a", "app", "service", "binding", "role"}, refused: "cannot patch",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := w.in(t).chain("foresees-" + name)
			c.foresees = true
			c.home()
			one := rev(1).phase("all", upgrade(c.name, "1")...)
			c.roll(one)
			row.meddle(t, c)
			c.until("complete", complete)
			c.seen(one.objects()[0])
			mark := c.Audit().Mark()
			two := rev(2).phase("all", upgrade(c.name, "2")...)
			c.become(two, one)
			if row.refused == "" {
				c.until("complete", complete)
				c.settled(t, two.objects()...)
			} else {
				report := c.until("refused", func(r rollout.Report) bool { return strings.Contains(messages(r), row.refused) })
				if got := c.value(two.objects()[0]) + c.live("app") + c.live("service"); got != "1example.com/app:11" {
					t.Errorf("%s: something of the phase was written: %s (%s)", row.reason, got, messages(report))
				}
			}
			tried := map[string]bool{}
			for _, request := range c.requests(mark) {
				if strings.Contains(request.URI, "dryRun=All") {
					tried[request.Name] = true
				}
			}
			want := map[string]bool{}
			for _, object := range row.tried {
				want[object] = true
			}
			if fmt.Sprint(tried) != fmt.Sprint(want) {
				t.Errorf("%s: tried %v, want %v\n%s", row.reason, tried, want, c.requests(mark))
			}
		})
	}
}

// live is what the upgrade changes in a live object that is no ConfigMap.
func (c *chain) live(name string) string {
	c.t.Helper()
	if name == "service" {
		return c.get(manifest.ID{Kind: "Service", Namespace: c.name, Name: name}).GetLabels()["value"]
	}
	live := c.get(manifest.ID{Group: "apps", Kind: "Deployment", Namespace: c.name, Name: name})
	spec := live.Object["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
	return spec["containers"].([]any)[0].(map[string]any)["image"].(string)
}

// grant gives the user of the chain's name rights in its namespace, and to watch.
func (c *chain) grant(t *testing.T, client kubernetes.Interface, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: c.name}, Rules: append(rules,
		rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}})}
	if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: c.name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: c.name}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, "the rights to count", func() (bool, string) {
		out := c.User(c.name).Kubectl("auth", "can-i", "patch", "configmaps", "-n", c.name)
		return strings.TrimSpace(out.Stdout) == "yes", out.Stdout + out.Stderr
	})
}

// forbidDeployments refuses updates of Deployments in a namespace.
func forbidDeployments(t *testing.T, client kubernetes.Interface, ns string) {
	t.Helper()
	fail := admissionregistrationv1.Fail
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: ns}, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail,
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ns}},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"deployments"}},
			}}},
		},
		Validations: []admissionregistrationv1.Validation{{Expression: "object.spec.template.spec.containers[0].image == oldObject.spec.template.spec.containers[0].image", Message: "no such Deployment"}},
	}}
	if _, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: ns, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	poll.Eventually(t, "the policy to count", func() (bool, string) {
		out := another(t, client, ns)
		return strings.Contains(out, "no such Deployment"), out
	})
}

// another tries another image of the Deployment, and returns what the server says.
func another(t *testing.T, client kubernetes.Interface, ns string) string {
	t.Helper()
	live, err := client.AppsV1().Deployments(ns).Get(t.Context(), "app", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	live.Spec.Template.Spec.Containers[0].Image = "another"
	_, err = client.AppsV1().Deployments(ns).Update(t.Context(), live, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	return fmt.Sprint(err)
}
