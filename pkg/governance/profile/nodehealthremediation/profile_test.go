package nodehealthremediation_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/nodehealthremediation"
)

const (
	healthChecks = "nodehealthchecks.remediation.medik8s.io"
	selfNode     = "selfnoderemediationtemplates.self-node-remediation.medik8s.io"
	fenceAgents  = "fenceagentsremediationtemplates.fence-agents-remediation.medik8s.io"
)

// nodes builds the cluster of a test.
type nodes struct {
	facts profile.Facts
}

// cluster has the definition of Node Health Check, with the fields that the profile uses, and
// further definitions.
func cluster(definitions ...string) *nodes {
	w := &nodes{profile.NewFacts()}
	field := func(fields map[string]any) map[string]any { return map[string]any{"properties": fields} }
	w.facts.Definitions[healthChecks] = profile.Definition{Versions: []profile.Version{{Name: "v1alpha1", Schema: field(map[string]any{"spec": field(map[string]any{"minHealthy": map[string]any{}})})}}}
	for _, name := range definitions {
		w.facts.Definitions[name] = profile.Definition{Versions: []profile.Version{{Name: "v1alpha1"}}}
	}
	return w
}

func (w *nodes) with(group, kind, namespace, name string, content map[string]any) *nodes {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range content {
		object.Object[key] = value
	}
	object.SetAPIVersion(group + "/v1")
	object.SetKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	of := object.GroupVersionKind().GroupKind()
	w.facts.Objects[of] = append(w.facts.Objects[of], object)
	return w
}

func (w *nodes) self(name string) *nodes {
	return w.with("self-node-remediation.medik8s.io", "SelfNodeRemediationTemplate", "workload-availability", name, nil)
}

func (w *nodes) fence(name string) *nodes {
	return w.with("fence-agents-remediation.medik8s.io", "FenceAgentsRemediationTemplate", "workload-availability", name, nil)
}

func (w *nodes) pool(name string, nodes, unavailable int64) *nodes {
	return w.with("machineconfiguration.openshift.io", "MachineConfigPool", "", name,
		map[string]any{"status": map[string]any{"machineCount": nodes, "unavailableMachineCount": unavailable}})
}

// usual has Self Node Remediation, three control planes and three workers.
func usual() *nodes {
	return cluster(selfNode).self("self-node-remediation-automatic-strategy-template").pool("master", 3, 0).pool("worker", 3, 0)
}

func (w *nodes) items(t *testing.T, options v1alpha1.NodeHealthRemediationOptions) []profile.Item {
	t.Helper()
	items, err := nodehealthremediation.Profile{}.Items(w.facts, &v1alpha1.PlanOptions{NodeHealthRemediation: &options})
	if err != nil {
		t.Fatal(err)
	}
	return items
}

func written(t *testing.T, item profile.Item) string {
	t.Helper()
	raw, err := yaml.Marshal(item.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestWorkers(t *testing.T) {
	items := usual().items(t, v1alpha1.NodeHealthRemediationOptions{})
	if len(items) != 1 || items[0].Impact != v1alpha1.ImpactMedium || items[0].Blast.Nodes != 3 {
		t.Fatalf("%+v", items)
	}
	want := `apiVersion: remediation.medik8s.io/v1alpha1
kind: NodeHealthCheck
metadata:
  name: remediate-workers
spec:
  minHealthy: 51%
  remediationTemplate:
    apiVersion: self-node-remediation.medik8s.io/v1alpha1
    kind: SelfNodeRemediationTemplate
    name: self-node-remediation-automatic-strategy-template
    namespace: workload-availability
  selector:
    matchExpressions:
    - key: node-role.kubernetes.io/worker
      operator: Exists
    - key: node-role.kubernetes.io/control-plane
      operator: DoesNotExist
    - key: node-role.kubernetes.io/master
      operator: DoesNotExist
  unhealthyConditions:
  - duration: 300s
    status: "False"
    type: Ready
  - duration: 300s
    status: Unknown
    type: Ready
`
	if diff := cmp.Diff(want, written(t, items[0])); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOptions: every option reaches its field, and control planes never count as workers.
func TestOptions(t *testing.T) {
	items := usual().items(t, v1alpha1.NodeHealthRemediationOptions{
		NodeSelector: map[string]string{"rack": "a"}, MinHealthy: ptr.To(intstr.FromInt32(2)), IncludeControlPlane: ptr.To(true),
		UnhealthyConditions: []v1alpha1.UnhealthyCondition{{Type: "Ready", Status: metav1.ConditionUnknown, Duration: metav1.Duration{Duration: 90 * time.Second}}},
	})
	if len(items) != 2 {
		t.Fatalf("%+v", items)
	}
	for _, text := range []string{"minHealthy: 2\n", "matchLabels:\n      rack: a", "duration: 1m30s", "control-plane\n      operator: DoesNotExist"} {
		if got := written(t, items[0]); !strings.Contains(got, text) {
			t.Errorf("no %q in\n%s", text, got)
		}
	}
	got := written(t, items[1])
	if !strings.Contains(got, "minHealthy: 2\n") || strings.Contains(got, "rack") || strings.Contains(got, "DoesNotExist") || !strings.Contains(got, "key: node-role.kubernetes.io/control-plane\n      operator: Exists") {
		t.Errorf("the control plane has\n%s", got)
	}
}

// TestRemediators: one of the two remediators is required, and the template is never guessed.
func TestRemediators(t *testing.T) {
	const usualName = "self-node-remediation-automatic-strategy-template"
	pools := func(w *nodes) *nodes { return w.pool("master", 3, 0).pool("worker", 5, 0) }
	for name, c := range map[string]struct {
		of      *nodes
		options v1alpha1.NodeHealthRemediationOptions
		// want is the kind and name of the template, or the expected error.
		want    string
		missing bool
	}{
		"none":                         {cluster(), v1alpha1.NodeHealthRemediationOptions{}, "install the Self Node Remediation Operator, or the Fence Agents Remediation Operator", true},
		"self":                         {cluster(selfNode).self("other").self(usualName), v1alpha1.NodeHealthRemediationOptions{}, "SelfNodeRemediationTemplate " + usualName, false},
		"the only one":                 {cluster(selfNode).self("mine"), v1alpha1.NodeHealthRemediationOptions{}, "SelfNodeRemediationTemplate mine", false},
		"two of one":                   {cluster(selfNode).self("b").self("a"), v1alpha1.NodeHealthRemediationOptions{}, "there are workload-availability/a, workload-availability/b: set template", false},
		"two of one name":              {cluster(selfNode).self(usualName).with("self-node-remediation.medik8s.io", "SelfNodeRemediationTemplate", "another", usualName, nil), v1alpha1.NodeHealthRemediationOptions{}, "there are another/" + usualName + ", workload-availability/" + usualName + ": set template", false},
		"no template":                  {cluster(selfNode), v1alpha1.NodeHealthRemediationOptions{}, "there is no SelfNodeRemediationTemplate", true},
		"fence":                        {cluster(fenceAgents).fence("ipmi"), v1alpha1.NodeHealthRemediationOptions{}, "FenceAgentsRemediationTemplate ipmi", false},
		"fence, no template":           {cluster(fenceAgents), v1alpha1.NodeHealthRemediationOptions{}, "there is no FenceAgentsRemediationTemplate", true},
		"both":                         {cluster(selfNode, fenceAgents).self(usualName).fence("ipmi"), v1alpha1.NodeHealthRemediationOptions{}, "FenceAgentsRemediationTemplate ipmi", false},
		"both, one without a template": {cluster(selfNode, fenceAgents).self(usualName), v1alpha1.NodeHealthRemediationOptions{}, "SelfNodeRemediationTemplate " + usualName, false},
		"both, asked":                  {cluster(selfNode, fenceAgents).self(usualName).fence("ipmi"), v1alpha1.NodeHealthRemediationOptions{Remediator: v1alpha1.RemediatorSelfNode}, "SelfNodeRemediationTemplate " + usualName, false},
		"asked for none":               {cluster(selfNode).self(usualName), v1alpha1.NodeHealthRemediationOptions{Remediator: v1alpha1.RemediatorFenceAgents}, "install the Fence Agents Remediation Operator", true},
		"by name": {cluster(selfNode).self("a").self("b"), v1alpha1.NodeHealthRemediationOptions{Template: &v1alpha1.TemplateReference{Namespace: "workload-availability", Name: "b"}},
			"SelfNodeRemediationTemplate b", false},
		"unknown name": {cluster(selfNode).self("a"), v1alpha1.NodeHealthRemediationOptions{Template: &v1alpha1.TemplateReference{Namespace: "workload-availability", Name: "c"}},
			"there is no SelfNodeRemediationTemplate workload-availability/c", true},
	} {
		t.Run(name, func(t *testing.T) {
			items, err := nodehealthremediation.Profile{}.Items(pools(c.of).facts, &v1alpha1.PlanOptions{NodeHealthRemediation: &c.options})
			if err != nil {
				if var0 := new(profile.MissingError); errors.As(err, &var0) != c.missing || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v (missing %v), want %q", err, !c.missing, c.want)
				}
				return
			}
			template, _, _ := unstructured.NestedStringMap(items[0].Object, "spec", "remediationTemplate")
			if got := template["kind"] + " " + template["name"]; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestRefusals: options that would remediate all control planes at once, or never a node, are
// refused with the reason.
func TestRefusals(t *testing.T) {
	selfOnly := func() *nodes { return cluster(selfNode).self("mine") }
	all := ptr.To(true)
	for name, c := range map[string]struct {
		of      *nodes
		options v1alpha1.NodeHealthRemediationOptions
		want    string
	}{
		"two control planes":     {selfOnly().pool("master", 2, 0).pool("worker", 3, 0), v1alpha1.NodeHealthRemediationOptions{IncludeControlPlane: all}, "with fewer than three etcd has no quorum"},
		"unknown control planes": {selfOnly(), v1alpha1.NodeHealthRemediationOptions{IncludeControlPlane: all}, "several could be remediated at once"},
		"compact":                {selfOnly().pool("master", 3, 0).pool("worker", 0, 0), v1alpha1.NodeHealthRemediationOptions{}, "set includeControlPlane"},
		"one worker":             {selfOnly().pool("worker", 1, 0), v1alpha1.NodeHealthRemediationOptions{}, "nothing could take over"},
		"two workers":            {selfOnly().pool("worker", 2, 0), v1alpha1.NodeHealthRemediationOptions{}, "minHealthy 51% of 2 worker nodes is 2: no node would ever be remediated"},
		"as many as there are":   {selfOnly().pool("worker", 3, 0), v1alpha1.NodeHealthRemediationOptions{MinHealthy: ptr.To(intstr.FromInt32(3))}, "it has to be below 3"},
		"more than there are":    {selfOnly().pool("worker", 3, 0), v1alpha1.NodeHealthRemediationOptions{MinHealthy: ptr.To(intstr.FromInt32(7))}, "is 7: no node would ever be remediated"},
		"machine health check": {usual().with("machine.openshift.io", "MachineHealthCheck", "openshift-machine-api", "workers", nil), v1alpha1.NodeHealthRemediationOptions{},
			"MachineHealthCheck openshift-machine-api/workers remediates machines, and the Node Health Check Operator disables itself"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := nodehealthremediation.Profile{}.Items(c.of.facts, &v1alpha1.PlanOptions{NodeHealthRemediation: &c.options})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	// The MachineHealthCheck that OpenShift creates for spot instances does not count.
	usual().with("machine.openshift.io", "MachineHealthCheck", "openshift-machine-api", "machine-api-termination-handler", nil).items(t, v1alpha1.NodeHealthRemediationOptions{})
}

// TestThresholds: for any number of nodes and threshold, an accepted plan remediates at least one
// node, and never more than a minority of control planes.
func TestThresholds(t *testing.T) {
	for controlPlanes := range int64(8) {
		for workers := range int64(8) {
			for _, threshold := range []intstr.IntOrString{intstr.FromInt32(1), intstr.FromInt32(4), intstr.FromString("1%"), intstr.FromString("51%"), intstr.FromString("99%")} {
				w := cluster(selfNode).self("mine").pool("master", controlPlanes, 0).pool("worker", workers, 0)
				items, err := nodehealthremediation.Profile{}.Items(w.facts, &v1alpha1.PlanOptions{NodeHealthRemediation: &v1alpha1.NodeHealthRemediationOptions{MinHealthy: &threshold, IncludeControlPlane: ptr.To(true)}})
				if err != nil {
					continue
				}
				for _, item := range items {
					nodes := map[string]int64{nodehealthremediation.ItemWorkers: workers, nodehealthremediation.ItemControlPlane: controlPlanes}[item.Name]
					value, _, _ := unstructured.NestedFieldNoCopy(item.Object, "spec", "minHealthy")
					healthy := intstr.Parse(fmt.Sprint(value))
					needed, err := intstr.GetScaledValueFromIntOrPercent(&healthy, int(nodes), true)
					if err != nil {
						t.Fatal(err)
					}
					down := nodes - int64(needed)
					if down < 1 || down >= nodes || item.Name == nodehealthremediation.ItemControlPlane && nodes-down < nodes/2+1 {
						t.Errorf("%s: of %d nodes, %d can be down at minHealthy %v", item.Name, nodes, down, value)
					}
				}
			}
		}
	}
}

func TestNotes(t *testing.T) {
	role := func(operator string) map[string]any {
		return map[string]any{"spec": map[string]any{"selector": map[string]any{"matchExpressions": []any{
			map[string]any{"key": "node-role.kubernetes.io/control-plane", "operator": operator}, map[string]any{"key": "rack", "operator": "Exists"}}}}}
	}
	check := func(w *nodes, name string, content map[string]any) *nodes {
		return w.with("remediation.medik8s.io", "NodeHealthCheck", "", name, content)
	}
	for name, c := range map[string]struct {
		of     *nodes
		impact v1alpha1.ImpactSeverity
		want   []string
		not    string
	}{
		"another check":       {check(usual(), "old", role("DoesNotExist")), v1alpha1.ImpactMedium, []string{"NodeHealthCheck old may select the same nodes"}, ""},
		"of everything":       {check(usual(), "old", nil), v1alpha1.ImpactMedium, []string{"NodeHealthCheck old may select the same nodes"}, ""},
		"of control planes":   {check(usual(), "old", role("Exists")), v1alpha1.ImpactMedium, nil, "NodeHealthCheck old"},
		"its own":             {check(usual(), "remediate-workers", nil), v1alpha1.ImpactMedium, nil, "may select"},
		"unavailable now":     {cluster(selfNode).self("mine").pool("worker", 4, 1), v1alpha1.ImpactHigh, nil, "not known"},
		"nobody counts":       {cluster(selfNode).self("mine"), v1alpha1.ImpactMedium, []string{"the number of nodes is not known"}, ""},
		"not all are counted": {usual().with("machineconfiguration.openshift.io", "MachineConfigPool", "", "new", nil), v1alpha1.ImpactMedium, []string{"the number of nodes is not known"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			item := c.of.items(t, v1alpha1.NodeHealthRemediationOptions{})[0]
			notes := strings.Join(item.Notes, "\n")
			for _, text := range c.want {
				if !strings.Contains(notes, text) {
					t.Errorf("no %q in %s", text, notes)
				}
			}
			if item.Impact != c.impact || c.not != "" && strings.Contains(notes, c.not) {
				t.Errorf("impact %s (%s), notes %s", item.Impact, item.Reason, notes)
			}
		})
	}
}

// TestRealDefinition: the real definition has every field that the profile sets.
func TestRealDefinition(t *testing.T) {
	raw, err := os.ReadFile("../../../../../shared/data/crds/remediation.medik8s.io_nodehealthchecks.yaml")
	if err != nil {
		t.Skipf("the definitions of other projects are kept beside the repository: %v", err)
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(raw, &crd.Object); err != nil {
		t.Fatal(err)
	}
	crd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
	definition, ok := profile.DefinitionOf(crd)
	if !ok {
		t.Fatal("it serves nothing")
	}
	w := usual()
	w.facts.Definitions[healthChecks] = definition
	item := w.items(t, v1alpha1.NodeHealthRemediationOptions{})[0]
	spec := item.Object["spec"].(map[string]any)
	for name := range spec {
		if !definition.Preferred().Has("spec", name) {
			t.Errorf("the definition has no spec.%s", name)
		}
	}
	for _, path := range [][]string{{"selector", "matchExpressions", "[]", "operator"}, {"selector", "matchLabels"}, {"unhealthyConditions", "[]", "duration"}, {"remediationTemplate", "namespace"}} {
		if !definition.Preferred().Has(append([]string{"spec"}, path...)...) {
			t.Errorf("the definition has no %v", path)
		}
	}
	old := definition
	old.Versions = []profile.Version{{Name: "v1alpha1"}}
	w.facts.Definitions[healthChecks] = old
	if _, err := (nodehealthremediation.Profile{}).Items(w.facts, nil); !errors.As(err, new(*profile.MissingError)) {
		t.Errorf("without minHealthy: %v", err)
	}
}

// selecting returns a pool that selects nodes with a label.
func selecting(name, key, value string, nodes, unavailable int64) map[string]any {
	return map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{"matchLabels": map[string]any{key: value}}},
		"status": map[string]any{"machineCount": nodes, "unavailableMachineCount": unavailable}}
}

// TestSelectedNodes: the counts cover the nodes that nodeSelector selects according to the pools.
// If a pool does not decide, all of its nodes count.
func TestSelectedNodes(t *testing.T) {
	pool := func(w *nodes, name, value string, nodes, unavailable int64) *nodes {
		return w.with("machineconfiguration.openshift.io", "MachineConfigPool", "", name, selecting(name, "rack", value, nodes, unavailable))
	}
	racks := func() *nodes {
		return pool(pool(cluster(selfNode).self("mine"), "a", "a", 4, 0), "b", "b", 6, 2)
	}
	options := v1alpha1.NodeHealthRemediationOptions{NodeSelector: map[string]string{"rack": "a"}}
	if item := racks().items(t, options)[0]; item.Blast.Nodes != 4 || item.Impact != v1alpha1.ImpactMedium || len(item.Blast.Pools) != 1 {
		t.Errorf("one rack of two: %+v, %s (%s)", item.Blast, item.Impact, item.Reason)
	}
	item := racks().pool("worker", 3, 1).items(t, options)[0]
	if notes := strings.Join(item.Notes, "\n"); item.Blast.Nodes != 7 || item.Impact != v1alpha1.ImpactHigh || !strings.Contains(notes, "how many of pool worker nodeSelector selects is not known") {
		t.Errorf("with a pool that says nothing: %+v, %s, %s", item.Blast, item.Impact, notes)
	}
	none := v1alpha1.NodeHealthRemediationOptions{NodeSelector: map[string]string{"rack": "c"}}
	if _, err := (nodehealthremediation.Profile{}).Items(racks().facts, &v1alpha1.PlanOptions{NodeHealthRemediation: &none}); err == nil || !strings.Contains(err.Error(), "nodeSelector selects no worker node") {
		t.Errorf("no rack: %v", err)
	}
}

// TestExcludingFields: an existing field that conflicts with a field of the profile is an error
// that names it.
func TestExcludingFields(t *testing.T) {
	for field, value := range map[string]any{"maxUnhealthy": "40%", "escalatingRemediations": []any{map[string]any{"order": int64(1)}}} {
		w := usual().with("remediation.medik8s.io", "NodeHealthCheck", "", "remediate-workers", map[string]any{"spec": map[string]any{field: value}})
		if _, err := (nodehealthremediation.Profile{}).Items(w.facts, nil); !errors.As(err, new(*profile.MissingError)) || !strings.Contains(err.Error(), "spec."+field+", which excludes") {
			t.Errorf("%s: %v", field, err)
		}
		other := usual().with("remediation.medik8s.io", "NodeHealthCheck", "", "another", map[string]any{"spec": map[string]any{field: value}})
		other.items(t, v1alpha1.NodeHealthRemediationOptions{})
	}
}
