package profile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/highdensityswap"
	"github.com/penstock-project/penstock/pkg/governance/profile/loadawarerebalancing"
	"github.com/penstock-project/penstock/pkg/governance/profile/nodehealthremediation"
)

const fieldCases = "../../../../shared/data/field-cases/plans"

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = object.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// files returns the objects in a file of a field case.
func files(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(fieldCases, name))
	if err != nil {
		t.Skipf("the cases of the field are kept beside the repository: %v", err)
	}
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(string(raw), "\n---") {
		objects = append(objects, parse(t, document))
	}
	return objects
}

// machineConfig returns a MachineConfig of workers, with a spec in YAML.
func machineConfig(t *testing.T, name, spec string) *unstructured.Unstructured {
	return parse(t, "{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {name: "+name+", labels: {machineconfiguration.openshift.io/role: worker}}, spec: "+spec+"}")
}

// machineConfigPool returns a pool of workers with its rendered configuration.
func machineConfigPool(t *testing.T, name, nodes, rendered string) *unstructured.Unstructured {
	return parse(t, "{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, metadata: {name: "+name+", labels: {pools/worker: ''}}, spec: {machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: worker}}}, status: {machineCount: "+nodes+", configuration: {name: "+rendered+"}}}")
}

func clusterOf(objects ...*unstructured.Unstructured) profile.Facts {
	facts := profile.NewFacts()
	for _, object := range objects {
		kind := object.GroupVersionKind().GroupKind()
		facts.Objects[kind] = append(facts.Objects[kind], object)
	}
	return facts
}

func rendered(t *testing.T, name, spec string) *unstructured.Unstructured {
	made := machineConfig(t, name, spec)
	made.SetLabels(nil)
	return made
}

// TestWeigh compares the impact of a change with its effect on a pool's merged configuration. The
// previous value and its field manager do not matter.
func TestWeigh(t *testing.T) {
	psi := "{kernelArguments: [psi=1]}"
	lean, high := profile.Item{Impact: v1alpha1.ImpactLow, Reason: "of the profile"}, v1alpha1.ImpactHigh
	workers := func(more ...*unstructured.Unstructured) profile.Facts {
		return clusterOf(append(more, machineConfigPool(t, "worker", "10", "r"), rendered(t, "r", psi))...)
	}
	kubelet := func(more string) *unstructured.Unstructured {
		return parse(t, "{apiVersion: machineconfiguration.openshift.io/v1, kind: KubeletConfig, metadata: {name: k}, spec: {machineConfigPoolSelector: {matchLabels: {pools/worker: ''}}, kubeletConfig: {failSwapOn: "+more+"}}}")
	}
	paused := func(paused string) *unstructured.Unstructured {
		pool := machineConfigPool(t, "worker", "10", "r")
		if paused != "" {
			_ = unstructured.SetNestedField(pool.Object, paused == "true", "spec", "paused")
		}
		return pool
	}
	unit := "{config: {systemd: {units: [{name: a.service, contents: a}]}}}"
	for name, c := range map[string]struct {
		reason        string
		before, after *unstructured.Unstructured
		facts         profile.Facts
		impact        v1alpha1.ImpactSeverity
		nodes         int64
		says          string
	}{
		"in effect by another":   {"the list gets one more, and the operator compares lists", nil, machineConfig(t, "99-psi", psi), workers(), high, 10, "kernel arguments change: 10 nodes reboot, pool by pool, in 10 waves; of the profile"},
		"there already":          {"nothing of it changes", machineConfig(t, "99-psi", psi), machineConfig(t, "99-psi", psi), workers(), lean.Impact, 0, "of the profile"},
		"there, not rolled":      {"its nodes reboot for it yet", machineConfig(t, "99-psi", "{kernelArguments: [x=1]}"), machineConfig(t, "99-psi", "{kernelArguments: [x=1]}"), workers(), high, 10, "nodes do not have this configuration yet"},
		"an argument goes":       {"", machineConfig(t, "99-psi", "{kernelArguments: [psi=1, nosmt]}"), machineConfig(t, "99-psi", psi), workers(), high, 10, "kernel arguments change"},
		"the order changes":      {"", machineConfig(t, "99-psi", "{kernelArguments: [a, b]}"), machineConfig(t, "99-psi", "{kernelArguments: [b, a]}"), workers(), high, 10, "kernel arguments change"},
		"every pool counts":      {"one has it, one does not, both get it", nil, machineConfig(t, "99-psi", psi), clusterOf(machineConfigPool(t, "worker", "30", "r"), machineConfigPool(t, "infra", "2", "n"), rendered(t, "r", psi), rendered(t, "n", "{}")), high, 32, "32 nodes reboot"},
		"deleted":                {"", machineConfig(t, "99-psi", psi), nil, workers(), high, 10, "kernel arguments change"},
		"a unit":                 {"", nil, machineConfig(t, "90-a", unit), workers(), high, 10, "files and units of nodes change"},
		"a unit, summarized":     {"facts have digests", summarized(machineConfig(t, "90-a", unit)), machineConfig(t, "90-a", unit), clusterOf(machineConfigPool(t, "worker", "10", "u"), summarized(rendered(t, "u", unit))), lean.Impact, 0, "of the profile"},
		"users":                  {"Ignition has more than files", nil, machineConfig(t, "90-a", "{config: {passwd: {users: [{name: core}]}}}"), workers(), high, 10, "files and units of nodes change"},
		"an ignition of nothing": {"its version alone is nothing", nil, machineConfig(t, "90-a", "{config: {ignition: {version: 3.2.0}}}"), workers(), lean.Impact, 0, ""},
		"the kernel":             {"", nil, machineConfig(t, "90-a", "{kernelType: realtime}"), workers(), high, 10, "the operating system or its kernel change"},
		"no pool":                {"nothing happens to nodes", nil, machineConfig(t, "99-psi", psi), clusterOf(), lean.Impact, 0, ""},
		"kubelet":                {"", kubelet("true"), kubelet("false"), workers(), high, 10, "the configuration of kubelets changes"},
		"kubelet, same":          {"", kubelet("true"), kubelet("true"), workers(), lean.Impact, 0, ""},
		"unpaused":               {"what waits is rolled out", paused("true"), paused("false"), workers(), high, 10, "no longer paused"},
		"paused":                 {"", paused(""), paused("true"), workers(), lean.Impact, 0, ""},
		"another kind":           {"", nil, parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), workers(), lean.Impact, 0, "of the profile"},
	} {
		t.Run(name, func(t *testing.T) {
			got := profile.Weigh(lean, c.facts, c.before, c.after)
			nodes := int64(0)
			if got.Blast != nil {
				nodes = got.Blast.Nodes
			}
			if got.Impact != c.impact || nodes != c.nodes || !strings.Contains(got.Reason, c.says) || (got.Blast != nil && got.Blast.Reboot) != (c.impact == high) {
				t.Errorf("%s: %s (%s), %+v; want %s of %d nodes, %q", c.reason, got.Impact, got.Reason, got.Blast, c.impact, c.nodes, c.says)
			}
		})
	}
}

func summarized(config *unstructured.Unstructured) *unstructured.Unstructured {
	profile.Summarize(config)
	return config
}

// TestWeighRaisesOnly: the impact of a profile is never lowered, and the larger blast radius
// counts.
func TestWeighRaisesOnly(t *testing.T) {
	facts := clusterOf(machineConfigPool(t, "worker", "10", "r"), rendered(t, "r", "{}"))
	said := profile.Item{Impact: v1alpha1.ImpactHigh, Reason: "mine", Blast: &v1alpha1.BlastRadius{Nodes: 2}}
	got := profile.Weigh(said, facts, nil, machineConfig(t, "a", "{kernelArguments: [a]}"))
	if got.Reason != "mine" || got.Blast.Nodes != 10 || !got.Blast.Reboot {
		t.Errorf("%+v, %+v", got, got.Blast)
	}
	said.Blast = &v1alpha1.BlastRadius{Nodes: 20, Reboot: true}
	if got := profile.Weigh(said, facts, nil, machineConfig(t, "a", "{kernelArguments: [a]}")); got.Blast.Nodes != 20 {
		t.Errorf("%+v", got.Blast)
	}
}

// TestNotesOfMachineConfigs: notes report removed arguments and the winning MachineConfig, without
// their values.
func TestNotesOfMachineConfigs(t *testing.T) {
	facts := clusterOf(machineConfigPool(t, "worker", "10", "r"), rendered(t, "r", "{}"), machineConfig(t, "99-worker-tuning", "{kernelArguments: [psi=0]}"))
	before, after := machineConfig(t, "99-psi", "{kernelArguments: [psi=1, nosmt]}"), machineConfig(t, "99-psi", "{kernelArguments: [psi=1]}")
	notes := strings.Join(profile.Weigh(profile.Item{}, facts, before, after).Notes, "\n")
	for _, want := range []string{"removes 1 of the kernel arguments that MachineConfig 99-psi has now", "pool worker: MachineConfig 99-worker-tuning sets kernel argument psi to something else, is merged later and wins"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in %s", want, notes)
		}
	}
	if strings.Contains(notes, "nosmt") || strings.Contains(notes, "psi=") {
		t.Errorf("a value is shown: %s", notes)
	}
}

// TestFieldPSI covers cases of real clusters: another MachineConfig enables pressure, or the
// profile's MachineConfig has more content.
func TestFieldPSI(t *testing.T) {
	objects := files(t, "01-psi-set-already/cluster.yaml")
	facts := clusterOf(objects...)
	pool := facts.Objects[profile.MachineConfigPoolKind()][0]
	pool.Object["status"] = map[string]any{"machineCount": int64(3), "configuration": map[string]any{"name": "r"}}
	facts.Objects[profile.MachineConfigKind()] = append(facts.Objects[profile.MachineConfigKind()], rendered(t, "r", "{kernelArguments: [psi=1]}"))
	wanted := machineConfig(t, "99-worker-psi-karg", "{kernelArguments: [psi=1]}")
	if got := profile.Weigh(profile.Item{Impact: v1alpha1.ImpactLow}, facts, nil, wanted); got.Impact != v1alpha1.ImpactHigh || !got.Blast.Reboot {
		t.Errorf("psi=1 of another name: %+v", got)
	}
	same := files(t, "01-psi-set-already/same-name.yaml")[0]
	if got := profile.Weigh(profile.Item{Impact: v1alpha1.ImpactLow}, facts, same, wanted); got.Impact != v1alpha1.ImpactHigh || len(got.Notes) != 1 || !strings.Contains(got.Notes[0], "removes 1 of the kernel arguments") {
		t.Errorf("of the same name with more: %+v", got)
	}
	overriding := append(facts.Objects[profile.MachineConfigKind()], files(t, "02-psi-overridden/mc.yaml")...)
	facts.Objects[profile.MachineConfigKind()] = overriding
	if got := profile.Overrides(facts, pool, wanted).String(); got != "MachineConfig 99-worker-tuning sets kernel argument psi to something else" {
		t.Errorf("overridden: %q", got)
	}
}

// TestFieldHosted: three plans that do not change nodes work without the Machine Config Operator.
func TestFieldHosted(t *testing.T) {
	facts := clusterOf(files(t, "04-hosted/cluster.yaml")...)
	for name, file := range map[string]string{
		"kubedeschedulers.operator.openshift.io":                        "operator.openshift.io_kubedeschedulers.yaml",
		"hyperconvergeds.hco.kubevirt.io":                               "hco.kubevirt.io_hyperconvergeds.yaml",
		"nodehealthchecks.remediation.medik8s.io":                       "remediation.medik8s.io_nodehealthchecks.yaml",
		"selfnoderemediationtemplates.self-node-remediation.medik8s.io": "self-node-remediation.medik8s.io_selfnoderemediationtemplates.yaml",
	} {
		for _, crd := range files(t, "../../crds/"+file) {
			crd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
			if definition, ok := profile.DefinitionOf(crd); ok {
				facts.Definitions[name] = definition
			}
		}
		if _, ok := facts.Definitions[name]; !ok {
			t.Fatalf("%s is not in %s", name, file)
		}
	}
	profiles := map[string]profile.Profile{}
	for _, one := range []profile.Profile{loadawarerebalancing.Profile{}, highdensityswap.Profile{}, nodehealthremediation.Profile{}} {
		profiles[string(one.Name())] = one
	}
	for _, object := range files(t, "04-hosted/plans.yaml") {
		var plan v1alpha1.ConfigurationPlan
		if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &plan, true); err != nil {
			t.Fatal(err)
		}
		asked := profiles[string(plan.Spec.Profile)]
		if err := profile.Missing(asked, facts); err != nil {
			t.Errorf("%s: %v", plan.Name, err)
		}
		if items, err := asked.Items(facts, plan.Spec.Options); err != nil || len(items) == 0 {
			t.Errorf("%s: %d items, %v", plan.Name, len(items), err)
		}
	}
}
