package extensionset

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const whole = `
apiVersion: penstock.dev/v1alpha1
kind: ClusterExtensionSet
metadata: {name: argocd}
spec:
  clusterSelector: {matchLabels: {tier: edge}}
  template:
    metadata: {annotations: {penstock.dev/on-failure: Rollback}}
    spec: {namespace: argocd, source: {sourceType: Image, image: {ref: example.com/a:1}}}
  strategy:
    waves:
    - {name: canary, clusterSelector: {matchLabels: {ring: "0"}}, soakSeconds: 3600}
    - {name: rest, maxUnavailable: 10%, maxFailures: 2, approval: Required}
`

// read reads a set, with one text in the place of another.
func read(t *testing.T, old, changed string) *Set {
	t.Helper()
	if !strings.Contains(whole, old) {
		t.Fatalf("no %q", old)
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.Replace(whole, old, changed, 1)), &object.Object); err != nil {
		t.Fatal(err)
	}
	set, err := From(object)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestValidate: each fault is named with its field.
func TestValidate(t *testing.T) {
	if errs := Validate(read(t, "", "")); len(errs) > 0 {
		t.Error(errs)
	}
	for name, tc := range map[string]struct{ old, changed, want string }{
		"Dot":         {"name: argocd}", "name: argo.cd}", "metadata.name"},
		"All":         {"clusterSelector: {matchLabels: {tier: edge}}", "clusterSelector: {}", "spec.clusterSelector: Required"},
		"Target":      {"penstock.dev/on-failure: Rollback", "penstock.dev/target: x", "spec.template.metadata.annotations[penstock.dev/target]: Forbidden"},
		"Approval":    {"penstock.dev/on-failure: Rollback", "penstock.dev/upgrade-approval: Manual", "spec.template.metadata.annotations[penstock.dev/upgrade-approval]: Forbidden"},
		"Annotation":  {"on-failure: Rollback", "on-failure: Sometimes", "Unsupported value"},
		"Zero":        {"maxUnavailable: 10%", "maxUnavailable: 0", "spec.strategy.waves[1].maxUnavailable"},
		"ZeroPercent": {"maxUnavailable: 10%", "maxUnavailable: 0%", "spec.strategy.waves[1].maxUnavailable"},
		"Words":       {"maxUnavailable: 10%", "maxUnavailable: many", "must be a number, or a percentage"},
		"Twice":       {"name: rest", "name: canary", "spec.strategy.waves[1].name: Duplicate"},
		"NotLast":     {`clusterSelector: {matchLabels: {ring: "0"}}, `, "", "spec.strategy.waves[0].clusterSelector: Required"},
		"Template":    {"spec: {namespace: argocd, source: {sourceType: Image, image: {ref: example.com/a:1}}}", "spec: {}", "spec.template.spec: Required"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Validate(read(t, tc.old, tc.changed)).ToAggregate(); got == nil || !strings.Contains(got.Error(), tc.want) {
				t.Errorf("%v, want %s", got, tc.want)
			}
		})
	}
}

// TestChildName: no two children have one name.
func TestChildName(t *testing.T) {
	if a, b := ChildName("a-b", "c"), ChildName("a", "b-c"); a == b {
		t.Errorf("both are %s", a)
	}
}

// TestDefinition: the definition can be read, and has the kind of the package.
func TestDefinition(t *testing.T) {
	found, err := Definition().Decode()
	if err != nil || found.Name != DefinitionName || found.Spec.Names.Kind != Kind.Kind || found.Spec.Names.Plural != Resource.Resource {
		t.Errorf("%v %+v", err, found)
	}
}
