package targetadmission

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/manifest"
)

const engine = "system:serviceaccount:penstock-system:penstock-engine"

// concerned is whether an object has a say in an update of an object by the engine.
func concerned(live *unstructured.Unstructured, id manifest.ID, resource schema.GroupVersionResource) bool {
	for _, c := range constraintsOf(live, requestBy(engine)) {
		if c.concerns(id, resource) {
			return true
		}
	}
	return false
}

func TestConstraints(t *testing.T) {
	const webhook = "kind: ValidatingWebhookConfiguration\nmetadata: {name: x}\nwebhooks:\n- "
	const rules = `rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [UPDATE], scope: "*"}]`
	const policy = "kind: ValidatingAdmissionPolicy\nmetadata: {name: x}\nspec:\n  matchConstraints: {resourceR"
	for name, c := range map[string]struct {
		reason, object string
		want           bool
	}{
		"rule":       {"its rule matches", webhook + rules, true},
		"none":       {"no webhooks, no say", "kind: ValidatingWebhookConfiguration\nmetadata: {name: x}", false},
		"others":     {"it is for another resource", webhook + `rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: ["*"]}]`, false},
		"create":     {"it is for creates", webhook + `rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: [CREATE]}]`, false},
		"subs":       {"it is for subresources", webhook + `rules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments/status], operations: ["*"]}]`, false},
		"all":        {"it is for all", webhook + `rules: [{apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"], operations: ["*"]}]`, true},
		"cluster":    {"it is for what has no namespace", webhook + `rules: [{apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], operations: ["*"], scope: Cluster}]`, false},
		"equivalent": {"deployments of an older group are the same", webhook + `rules: [{apiGroups: [extensions], apiVersions: [v1beta1], resources: [deployments], operations: ["*"]}]`, true},
		"group":      {"all of another group is nothing of this one", webhook + `rules: [{apiGroups: [cert-manager.io], apiVersions: [v1], resources: ["*/*"], operations: ["*"]}]`, false},
		"exact":      {"unless it says otherwise", webhook + `{matchPolicy: Exact, rules: [{apiGroups: [extensions], apiVersions: [v1beta1], resources: [deployments], operations: ["*"]}]}`, false},
		"namespace":  {"it is for this namespace", webhook + `{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ns}}, ` + rules + `}`, true},
		"elsewhere":  {"it is for another namespace", webhook + `{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}, ` + rules + `}`, false},
		"not-here": {"it is for all but this namespace",
			webhook + `{namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, ns]}]}, ` + rules + `}`, false},
		"label":             {"labels of namespaces are not known", webhook + `{namespaceSelector: {matchLabels: {team: a}}, ` + rules + `}`, true},
		"label-elsewhere":   {"but for a name beside them", webhook + `{namespaceSelector: {matchLabels: {team: a, kubernetes.io/metadata.name: other}}, ` + rules + `}`, false},
		"selector":          {"an object may have any labels", webhook + `{objectSelector: {matchLabels: {a: b}}, ` + rules + `}`, true},
		"unreadable":        {"what cannot be read may be anything", webhook + `{rules: 5}`, true},
		"condition":         {"a condition that depends on the object", webhook + `{matchConditions: [{name: a, expression: "object.metadata.name == 'y'"}], ` + rules + `}`, true},
		"condition-user":    {"one that is about somebody else", webhook + `{matchConditions: [{name: a, expression: "request.userInfo.username == 'bob'"}], ` + rules + `}`, false},
		"condition-either":  {"or perhaps about us", webhook + `{matchConditions: [{name: a, expression: "request.userInfo.username == 'bob' || 'a' in request.userInfo.groups"}], ` + rules + `}`, true},
		"condition-library": {"one that we cannot read", webhook + `{matchConditions: [{name: a, expression: "authorizer.group('').resource('pods').check('get').allowed()"}], ` + rules + `}`, true},

		"policy":           {"its rule matches", policy + rules[1:] + "}\n  validations: [{expression: 'object.spec.replicas > 1'}]", true},
		"policy-named":     {"it names the object", policy + `ules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: ["*"], resourceNames: [x]}]}`, true},
		"policy-other":     {"it names another object", policy + `ules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments], operations: ["*"], resourceNames: [other]}]}`, false},
		"policy-true":      {"our update passes whatever it is", policy + rules[1:] + "}\n  validations: [{expression: \"request.operation != 'CONNECT'\"}]", false},
		"policy-false":     {"it never passes", policy + rules[1:] + "}\n  validations: [{expression: 'false'}]", true},
		"policy-audit":     {"an annotation for the audit log may fail", policy + rules[1:] + "}\n  validations: [{expression: 'true'}]\n  auditAnnotations: [{key: a, valueExpression: object.x}]", true},
		"policy-params":    {"it may refuse when there are no parameters", policy + rules[1:] + "}\n  paramKind: {apiVersion: v1, kind: ConfigMap}\n  matchConditions: [{name: a, expression: 'false'}]", true},
		"policy-condition": {"a condition is false", policy + rules[1:] + "}\n  matchConditions: [{name: a, expression: 'false'}]", false},
		"policy-open":      {"it has no constraints", "kind: ValidatingAdmissionPolicy\nmetadata: {name: x}\nspec: {}", true},
		"mutating":         {"who may change it, may refuse it", "kind: MutatingAdmissionPolicy\nmetadata: {name: x}\nspec:\n  matchConstraints: {resourceR" + rules[1:] + "}", true},
	} {
		t.Run(name, func(t *testing.T) {
			live := &unstructured.Unstructured{}
			if err := sigsyaml.Unmarshal([]byte(c.object), &live.Object); err != nil {
				t.Fatal(err)
			}
			trimmed, err := keep(live)
			if err != nil {
				t.Fatal(err)
			}
			id := manifest.ID{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "x"}
			if got := concerned(trimmed.(*unstructured.Unstructured), id, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}); got != c.want {
				t.Errorf("%s: got %t", c.reason, got)
			}
		})
	}
}

// TestOwn: what Penstock itself asks of a cluster does not make it try what it writes.
func TestOwn(t *testing.T) {
	seen := 0
	for _, file := range []string{"webhooks.yaml", "base/rbac.yaml", "base/rbac-engine.yaml"} {
		file = filepath.Join("../../../artifacts/deploy", file)
		for _, live := range documents(t, file) {
			if live.GroupVersionKind().Group != admissionGroup || live.Object["spec"] == nil && live.Object["webhooks"] == nil || live.GetKind() == "ValidatingAdmissionPolicyBinding" {
				continue
			}
			seen++
			configMap, role := manifest.ID{Kind: "ConfigMap", Namespace: "argocd", Name: "x"}, manifest.ID{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "x"}
			if concerned(live, configMap, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}) ||
				concerned(live, role, schema.GroupVersionResource{Group: role.Group, Version: "v1", Resource: "clusterroles"}) {
				t.Errorf("%s: %s %s has a say in what we write", file, live.GetKind(), live.GetName())
			}
		}
	}
	if seen < 4 {
		t.Errorf("saw %d policies and configurations of webhooks; there are more", seen)
	}
}

func documents(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	source, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(source, 4096)
	for {
		live := &unstructured.Unstructured{}
		err := decoder.Decode(&live.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if live.Object != nil {
			all = append(all, live)
		}
	}
}
