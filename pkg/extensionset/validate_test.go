package extensionset

import (
	"cmp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
    - {name: rest, maxUnavailable: 10%, maxFailures: 2, approval: Required, window: {schedule: 0 22 * * Sat, duration: 6h}}
`

// read decodes a set after the text old is replaced.
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
		"Removal":     {"template:", "removalPolicy: Orphan\n  template:", `spec.removalPolicy: Unsupported value: "Orphan": supported values: "Retain", "Delete"`},
		"Teardown":    {"template:", "teardownPolicy: Orphan\n  template:", `spec.teardownPolicy: Unsupported value: "Orphan"`},
		"Schedule":    {"0 22 * * Sat", "now", "spec.strategy.waves[1].window.schedule: Invalid"},
		"Zone":        {"duration: 6h", "duration: 6h, timeZone: Moon", "spec.strategy.waves[1].window.timeZone: Invalid"},
		"Duration":    {"duration: 6h", "duration: 6s", "must be 1m to 744h"},
		"NoDuration":  {", duration: 6h", "", "spec.strategy.waves[1].window.duration: Invalid"},
		"Template":    {"spec: {namespace: argocd, source: {sourceType: Image, image: {ref: example.com/a:1}}}", "spec: {}", "spec.template.spec: Required"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Validate(read(t, tc.old, tc.changed)).ToAggregate(); got == nil || !strings.Contains(got.Error(), tc.want) {
				t.Errorf("%v, want %s", got, tc.want)
			}
		})
	}
}

// TestOverrides: each fault of an override is named with its field.
func TestOverrides(t *testing.T) {
	for name, tc := range map[string]struct{ override, source, want string }{
		"Names":           {"{clusterNames: [edge-1], config: {replicas: 3}}", "", ""},
		"Labels":          {"{clusterSelector: {matchLabels: {site: small}}, version: 1.2.x}", "Catalog", ""},
		"NoClusters":      {"{config: {replicas: 3}}", "", "spec.overrides[0]: Required value: must have exactly one of clusterSelector and clusterNames"},
		"NoNames":         {"{clusterNames: [], config: {replicas: 3}}", "", "spec.overrides[0]: Required value: must have exactly one of clusterSelector and clusterNames"},
		"Both":            {"{clusterNames: [edge-1], clusterSelector: {matchLabels: {a: b}}, config: {replicas: 3}}", "", "spec.overrides[0]: Required value: must have exactly one of clusterSelector and clusterNames"},
		"EveryCluster":    {"{clusterSelector: {}, config: {replicas: 3}}", "", "spec.overrides[0].clusterSelector: Required"},
		"NoSecret":        {"{clusterNames: [Edge_1], config: {replicas: 3}}", "", `spec.overrides[0].clusterNames[0]: Invalid value: "Edge_1"`},
		"Nothing":         {"{clusterNames: [edge-1]}", "", "spec.overrides[0]: Required value: must have config or version"},
		"NoVersion":       {"{clusterNames: [edge-1], version: newest}", "Catalog", `spec.overrides[0].version: Invalid value: "newest"`},
		"VersionOfImages": {"{clusterNames: [edge-1], version: 1.x}", "Image", "spec.overrides[0].version: Forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			set := read(t, "clusterSelector: {matchLabels: {tier: edge}}", "clusterSelector: {matchLabels: {tier: edge}}\n  overrides: ["+tc.override+"]")
			set.Spec.Template.Spec["source"] = map[string]any{"sourceType": cmp.Or(tc.source, "Image")}
			got := Validate(set).ToAggregate()
			if tc.want == "" && got != nil || tc.want != "" && (got == nil || !strings.Contains(got.Error(), tc.want)) {
				t.Errorf("%v, want %s", got, tc.want)
			}
		})
	}
	many := read(t, "", "")
	many.Spec.Overrides = make([]Override, MaxOverrides+1)
	if got := Validate(many).ToAggregate(); got == nil || !strings.Contains(got.Error(), "spec.overrides: Too many") {
		t.Errorf("%v", got)
	}
}

// TestChildOverrides: all overrides of a cluster apply in order, and no override of another
// cluster.
func TestChildOverrides(t *testing.T) {
	small := &metav1.LabelSelector{MatchLabels: map[string]string{"site": "small"}}
	set := read(t, "", "")
	set.Spec.Template.Spec = map[string]any{
		"source": map[string]any{"sourceType": "Catalog", "catalog": map[string]any{"packageName": "argocd", "version": "1.x"}},
		"config": map[string]any{"configType": "Inline", "inline": map[string]any{"replicas": 3.0, "cache": map[string]any{"size": 5.0, "disk": true}}},
	}
	set.Spec.Overrides = []Override{
		{ClusterSelector: small, Version: "1.2.x", Config: map[string]any{"replicas": 1.0, "cache": map[string]any{"disk": nil}}},
		{ClusterNames: []string{"edge-1", "edge-2"}, Config: map[string]any{"replicas": 2.0, "debug": true}},
		{ClusterNames: []string{"edge-3"}, Config: map[string]any{"replicas": nil, "cache": nil}},
	}
	for cluster, tc := range map[string]struct {
		site, version string
		config        any
	}{
		"edge-0": {"large", "1.x", map[string]any{"replicas": 3.0, "cache": map[string]any{"size": 5.0, "disk": true}}},
		"edge-1": {"large", "1.x", map[string]any{"replicas": 2.0, "debug": true, "cache": map[string]any{"size": 5.0, "disk": true}}},
		"edge-2": {"small", "1.2.x", map[string]any{"replicas": 2.0, "debug": true, "cache": map[string]any{"size": 5.0}}},
		"edge-3": {"large", "1.x", nil},
		"edge-4": {"small", "1.2.x", map[string]any{"replicas": 1.0, "cache": map[string]any{"size": 5.0}}},
	} {
		child, err := set.Child(cluster, map[string]string{"site": tc.site})
		if err != nil {
			t.Fatal(err)
		}
		version, _, _ := unstructured.NestedString(child.Object, "spec", "source", "catalog", "version")
		config, _, _ := unstructured.NestedFieldNoCopy(child.Object, "spec", "config", "inline")
		if diff := gocmp.Diff(tc.config, config); diff != "" || version != tc.version {
			t.Errorf("%s: version %s, config %s", cluster, version, diff)
		}
		if _, found, _ := unstructured.NestedMap(child.Object, "spec", "config"); found != (config != nil) {
			t.Errorf("%s has an empty configuration", cluster)
		}
	}
}

// TestChildName: names of children are unique.
func TestChildName(t *testing.T) {
	if a, b := ChildName("a-b", "c"), ChildName("a", "b-c"); a == b {
		t.Errorf("both are %s", a)
	}
}

// TestDefinition: the definition parses, and has the kind of the package.
func TestDefinition(t *testing.T) {
	found, err := Definition().Decode()
	if err != nil || found.Name != DefinitionName || found.Spec.Names.Kind != Kind.Kind || found.Spec.Names.Plural != Resource.Resource {
		t.Errorf("%v %+v", err, found)
	}
}
