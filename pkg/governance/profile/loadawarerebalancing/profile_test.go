package loadawarerebalancing_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/loadawarerebalancing"
)

const data = "../../../../../shared/data/crds"

// definition reads a real CustomResourceDefinition and marks it as established.
func definition(t *testing.T, file string) profile.Definition {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(data, file))
	if os.IsNotExist(err) {
		t.Skipf("%s is not here: the definitions of other projects are kept beside the repository", file)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range strings.Split(string(raw), "\n---") {
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &crd.Object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if crd.GetKind() != "CustomResourceDefinition" {
			continue
		}
		crd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
		if found, ok := profile.DefinitionOf(crd); ok {
			return found
		}
	}
	t.Fatalf("%s: no definition in it", file)
	return profile.Definition{}
}

// cluster returns facts with the definitions of a generation and some objects.
func cluster(t *testing.T, descheduler string, objects ...*unstructured.Unstructured) profile.Facts {
	t.Helper()
	facts := profile.Facts{
		Definitions: map[string]profile.Definition{
			"kubedeschedulers.operator.openshift.io":               definition(t, descheduler),
			"machineconfigs.machineconfiguration.openshift.io":     definition(t, "machineconfiguration.openshift.io_machineconfigs.yaml"),
			"machineconfigpools.machineconfiguration.openshift.io": definition(t, "machineconfiguration.openshift.io_machineconfigpools.yaml"),
		},
		Objects: map[schema.GroupKind][]*unstructured.Unstructured{},
	}
	for _, object := range objects {
		kind := object.GroupVersionKind().GroupKind()
		facts.Objects[kind] = append(facts.Objects[kind], object)
	}
	return facts
}

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

func items(t *testing.T, facts profile.Facts, options *v1alpha1.LoadAwareRebalancingOptions) map[string]profile.Item {
	t.Helper()
	made, err := loadawarerebalancing.Profile{}.Items(facts, &v1alpha1.PlanOptions{LoadAwareRebalancing: options})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]profile.Item{}
	for _, item := range made {
		byName[item.Name] = item
	}
	return byName
}

const current = "operator.openshift.io_kubedeschedulers.yaml"

// TestGenerations: each generation of the descheduler gets exactly the fields that its schema has.
func TestGenerations(t *testing.T) {
	full := map[string]any{"devEnableEvictionsInBackground": true, "devEnableSoftTainter": true, "devDeviationThresholds": "AsymmetricLow"}
	for file, c := range map[string]struct {
		profile        string
		customizations map[string]any
		limits         map[string]any
	}{
		current:                          {"KubeVirtRelieveAndMigrate", full, map[string]any{"total": int64(5), "node": int64(1)}},
		"kubedescheduler-ocp-4-21.yaml":  {"KubeVirtRelieveAndMigrate", full, map[string]any{"total": int64(5), "node": int64(1)}},
		"kubedescheduler-ocp-4-19.yaml":  {"DevKubeVirtRelieveAndMigrate", full, map[string]any{"total": int64(5)}},
		"kubedescheduler-ocp-4-17.yaml":  {"LongLifecycle", nil, nil},
		"mock_kubedescheduler_v510.yaml": {"LongLifecycle", nil, nil},
		"mock_kubedescheduler_v514.yaml": {"DevKubeVirtRelieveAndMigrate", full, map[string]any{"total": int64(5)}},
		"mock_kubedescheduler_v521.yaml": {"DevKubeVirtRelieveAndMigrate", full, map[string]any{"total": int64(5)}},
		"mock_kubedescheduler_v532.yaml": {"KubeVirtRelieveAndMigrate", full, map[string]any{"total": int64(5), "node": int64(1)}},
	} {
		t.Run(file, func(t *testing.T) {
			item := items(t, cluster(t, file), nil)[loadawarerebalancing.ItemDescheduler]
			want := map[string]any{
				"managementState": "Managed", "deschedulingIntervalSeconds": int64(60), "mode": "Automatic", "profiles": []any{c.profile},
			}
			if c.customizations != nil {
				want["profileCustomizations"] = c.customizations
			}
			if c.limits != nil {
				want["evictionLimits"] = c.limits
			}
			if diff := cmp.Diff(want, item.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if !strings.Contains(strings.Join(item.Notes, "\n"), "real evictions") {
				t.Errorf("the notes do not say that evictions start: %q", item.Notes)
			}
		})
	}
}

// TestDefect16NoNodeLimitWhereThereIsNone: a descheduler without a node limit in its schema gets
// none. The items do not depend on missing fields of the live object.
func TestDefect16NoNodeLimitWhereThereIsNone(t *testing.T) {
	item := items(t, cluster(t, "kubedescheduler-ocp-4-19.yaml"), &v1alpha1.LoadAwareRebalancingOptions{EvictionLimitNode: ptr.To[int32](3)})[loadawarerebalancing.ItemDescheduler]
	limits, _, _ := unstructured.NestedMap(item.Object, "spec", "evictionLimits")
	if _, set := limits["node"]; set {
		t.Errorf("limits %v have one for nodes", limits)
	}
	if !strings.Contains(strings.Join(item.Notes, "\n"), "evictionLimitNode has no effect") {
		t.Errorf("nobody is told: %q", item.Notes)
	}
}

func TestOptions(t *testing.T) {
	made := items(t, cluster(t, current), &v1alpha1.LoadAwareRebalancingOptions{
		EnablePSIMetrics: ptr.To(false), DeschedulingIntervalSeconds: ptr.To[int32](3600), Mode: v1alpha1.DeschedulerPredictive,
		DeviationThresholds: v1alpha1.DeviationHigh, EvictionLimitTotal: ptr.To[int32](40), EvictionLimitNode: ptr.To[int32](4),
	})
	want := map[string]any{
		"managementState": "Managed", "deschedulingIntervalSeconds": int64(3600), "mode": "Predictive", "profiles": []any{"KubeVirtRelieveAndMigrate"},
		"profileCustomizations": map[string]any{"devEnableEvictionsInBackground": true, "devEnableSoftTainter": true, "devDeviationThresholds": "High"},
		"evictionLimits":        map[string]any{"total": int64(40), "node": int64(4)},
	}
	item := made[loadawarerebalancing.ItemDescheduler]
	if diff := cmp.Diff(want, item.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if len(made) != 1 || item.Impact != v1alpha1.ImpactLow {
		t.Errorf("%d items, impact %s; want the descheduler alone, Low", len(made), item.Impact)
	}
}

func TestPreservedProfiles(t *testing.T) {
	for name, c := range map[string]struct {
		have, want []any
		dropped    int
	}{
		"none":         {nil, []any{"KubeVirtRelieveAndMigrate"}, 0},
		"affinity":     {[]any{"AffinityAndTaints"}, []any{"AffinityAndTaints", "KubeVirtRelieveAndMigrate"}, 0},
		"both":         {[]any{"SoftTopologyAndDuplicates", "AffinityAndTaints"}, []any{"SoftTopologyAndDuplicates", "AffinityAndTaints", "KubeVirtRelieveAndMigrate"}, 0},
		"incompatible": {[]any{"LongLifecycle", "AffinityAndTaints"}, []any{"AffinityAndTaints", "KubeVirtRelieveAndMigrate"}, 1},
		"chosen":       {[]any{"KubeVirtRelieveAndMigrate"}, []any{"KubeVirtRelieveAndMigrate"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			live := parse(t, "{apiVersion: operator.openshift.io/v1, kind: KubeDescheduler, metadata: {name: cluster, namespace: openshift-kube-descheduler-operator}, spec: {}}")
			live.Object["spec"] = map[string]any{"profiles": c.have}
			item := items(t, cluster(t, current, live), nil)[loadawarerebalancing.ItemDescheduler]
			got, _, _ := unstructured.NestedSlice(item.Object, "spec", "profiles")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("profiles (-want +got):\n%s", diff)
			}
			notes := strings.Join(item.Notes, "\n")
			if told := strings.Contains(notes, fmt.Sprintf("removes %d of the profiles in spec.profiles", c.dropped)); told != (c.dropped > 0) || strings.Contains(notes, "LongLifecycle") {
				t.Errorf("notes: %q", item.Notes)
			}
		})
	}
}

// TestDefect20LimitsOfBothVersionsOfHyperConverged: the limits are read from the fields that
// HyperConverged has in each of its versions.
func TestDefect20LimitsOfBothVersionsOfHyperConverged(t *testing.T) {
	for name, text := range map[string]string{
		"v1":      "{apiVersion: hco.kubevirt.io/v1, kind: HyperConverged, metadata: {name: h}, spec: {virtualization: {liveMigrationConfig: {parallelMigrationsPerCluster: 20, parallelOutboundMigrationsPerNode: 3}}}}",
		"v1beta1": "{apiVersion: hco.kubevirt.io/v1beta1, kind: HyperConverged, metadata: {name: h}, spec: {liveMigrationConfig: {parallelMigrationsPerCluster: 20, parallelOutboundMigrationsPerNode: 3}}}",
	} {
		t.Run(name, func(t *testing.T) {
			item := items(t, cluster(t, current, parse(t, text)), nil)[loadawarerebalancing.ItemDescheduler]
			limits, _, _ := unstructured.NestedMap(item.Object, "spec", "evictionLimits")
			if diff := cmp.Diff(map[string]any{"total": int64(18), "node": int64(3)}, limits); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
	for _, file := range []string{"hco.kubevirt.io_hyperconvergeds.yaml", "mock_hyperconverged_v1beta1_only.yaml"} {
		found := definition(t, file)
		for _, version := range found.Versions {
			if !version.Has("spec", "virtualization", "liveMigrationConfig", "parallelMigrationsPerCluster") && !version.Has("spec", "liveMigrationConfig", "parallelMigrationsPerCluster") {
				t.Errorf("%s %s has the limit at none of the paths that are read", file, version.Name)
			}
		}
		if file == "hco.kubevirt.io_hyperconvergeds.yaml" && found.Preferred().Name != "v1" {
			t.Errorf("%s: %s is preferred, want v1", file, found.Preferred().Name)
		}
	}
}

const worker = `
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: worker}
spec:
  machineConfigSelector: {matchLabels: {machineconfiguration.openshift.io/role: worker}}
  maxUnavailable: 25%
status: {machineCount: 10, configuration: {name: rendered-worker-1}}
`

func rendered(t *testing.T, arguments ...string) *unstructured.Unstructured {
	return parse(t, "{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {name: rendered-worker-1}, spec: {kernelArguments: ["+strings.Join(arguments, ", ")+"]}}")
}

// TestImpactOfPSI: the impact depends on the change of a pool's merged configuration, which package
// profile tests.
func TestImpactOfPSI(t *testing.T) {
	for name, c := range map[string]struct {
		ours, arguments []string
		want            v1alpha1.ImpactSeverity
		blast           *v1alpha1.BlastRadius
	}{
		"off":              {nil, nil, v1alpha1.ImpactHigh, &v1alpha1.BlastRadius{Pools: []string{"worker"}, Nodes: 10, Reboot: true, Waves: 5}},
		"on":               {[]string{"psi=1"}, []string{"psi=1"}, v1alpha1.ImpactLow, nil},
		"on by another":    {nil, []string{"psi=1"}, v1alpha1.ImpactHigh, &v1alpha1.BlastRadius{Pools: []string{"worker"}, Nodes: 10, Reboot: true, Waves: 5}},
		"on with one more": {[]string{"psi=1", "nosmt"}, []string{"psi=1", "nosmt"}, v1alpha1.ImpactHigh, &v1alpha1.BlastRadius{Pools: []string{"worker"}, Nodes: 10, Reboot: true, Waves: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			facts := cluster(t, current, parse(t, worker), rendered(t, c.arguments...))
			var before *unstructured.Unstructured
			if c.ours != nil {
				before = rendered(t, c.ours...)
				before.SetName("99-worker-psi-karg")
				before.SetLabels(map[string]string{"machineconfiguration.openshift.io/role": "worker"})
			}
			item := items(t, facts, nil)[loadawarerebalancing.ItemPSI]
			item = profile.Weigh(item, facts, before, &unstructured.Unstructured{Object: item.Object})
			if item.Impact != c.want {
				t.Errorf("impact %s (%s), want %s", item.Impact, item.Reason, c.want)
			}
			if diff := cmp.Diff(c.blast, item.Blast); diff != "" {
				t.Errorf("blast radius (-want +got):\n%s", diff)
			}
		})
	}
	weighed := func(pools ...*unstructured.Unstructured) profile.Item {
		facts := cluster(t, current, append(pools, rendered(t))...)
		item := items(t, facts, nil)[loadawarerebalancing.ItemPSI]
		return profile.Weigh(item, facts, nil, &unstructured.Unstructured{Object: item.Object})
	}
	silent := parse(t, worker)
	unstructured.RemoveNestedField(silent.Object, "status", "machineCount")
	if item := weighed(silent); item.Impact != v1alpha1.ImpactHigh || !item.Blast.Reboot || !strings.Contains(item.Reason, "is not known") {
		t.Errorf("of a pool that does not say how many nodes it has: %s (%s), %+v", item.Impact, item.Reason, item.Blast)
	}
	if item := weighed(); item.Impact != v1alpha1.ImpactLow {
		t.Errorf("without pools the impact is %s", item.Impact)
	}
}

// TestThresholdsExclude: fields that the descheduler's operator refuses together with the plan's
// fields are emptied, or reported as an obstacle.
func TestThresholdsExclude(t *testing.T) {
	live := parse(t, "{apiVersion: operator.openshift.io/v1, kind: KubeDescheduler, metadata: {name: cluster, namespace: openshift-kube-descheduler-operator}, spec: {profileCustomizations: {devLowNodeUtilizationThresholds: Medium, podLifetime: 24h}}}")
	item := items(t, cluster(t, current, live), nil)[loadawarerebalancing.ItemDescheduler]
	thresholds, set, _ := unstructured.NestedString(item.Object, "spec", "profileCustomizations", "devLowNodeUtilizationThresholds")
	if notes := strings.Join(item.Notes, "\n"); !set || thresholds != "" || !strings.Contains(notes, "empties spec.profileCustomizations.devLowNodeUtilizationThresholds") {
		t.Errorf("%q (%v), notes %s", thresholds, set, notes)
	}
	empty := live.DeepCopy()
	_ = unstructured.SetNestedField(empty.Object, "", "spec", "profileCustomizations", "devLowNodeUtilizationThresholds")
	again := items(t, cluster(t, current, empty), nil)[loadawarerebalancing.ItemDescheduler]
	if diff := cmp.Diff(item.Object, again.Object); diff != "" || strings.Contains(strings.Join(again.Notes, "\n"), "empties") {
		t.Errorf("once it is emptied, the plan is another one: %s, notes %q", diff, again.Notes)
	}
	none := parse(t, "{apiVersion: operator.openshift.io/v1, kind: KubeDescheduler, metadata: {name: cluster, namespace: openshift-kube-descheduler-operator}, spec: {}}")
	without := items(t, cluster(t, current, none), nil)[loadawarerebalancing.ItemDescheduler]
	if _, set, _ := unstructured.NestedString(without.Object, "spec", "profileCustomizations", "devLowNodeUtilizationThresholds"); set {
		t.Error("it is set where it was not")
	}
	facts := cluster(t, current, live)
	strict := facts.Definitions["kubedeschedulers.operator.openshift.io"]
	spec := strict.Versions[0].Schema["properties"].(map[string]any)["spec"].(map[string]any)["properties"].(map[string]any)
	field := spec["profileCustomizations"].(map[string]any)["properties"].(map[string]any)["devLowNodeUtilizationThresholds"].(map[string]any)
	field["enum"] = []any{"Low", "Medium", "High"}
	if _, err := (loadawarerebalancing.Profile{}).Items(facts, nil); !errors.As(err, new(*profile.MissingError)) || !strings.Contains(err.Error(), "spec.profileCustomizations.devLowNodeUtilizationThresholds") {
		t.Errorf("where it cannot be emptied: %v", err)
	}
}

// TestFieldThresholds: for a KubeDescheduler of a user, without pressure, the plan empties the
// thresholds and keeps the other customizations.
func TestFieldThresholds(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(data, "..", "field-cases", "plans", "03-thresholds", "descheduler.yaml"))
	if err != nil {
		t.Skipf("the cases of the field are kept beside the repository: %v", err)
	}
	made := items(t, cluster(t, current, parse(t, string(raw))), &v1alpha1.LoadAwareRebalancingOptions{EnablePSIMetrics: ptr.To(false)})
	item := made[loadawarerebalancing.ItemDescheduler]
	customizations, _, _ := unstructured.NestedMap(item.Object, "spec", "profileCustomizations")
	if thresholds, set := customizations["devLowNodeUtilizationThresholds"]; len(made) != 1 || !set || thresholds != "" || customizations["devDeviationThresholds"] == nil {
		t.Errorf("%d items, customizations %v", len(made), customizations)
	}
	for _, kept := range []string{"podLifetime", "namespaces"} {
		if value, set := customizations[kept]; set {
			t.Errorf("the plan sets %s to %v, and it belongs to somebody else", kept, value)
		}
	}
	if notes := strings.Join(item.Notes, "\n"); !strings.Contains(notes, "empties spec.profileCustomizations.devLowNodeUtilizationThresholds") {
		t.Errorf("notes: %s", notes)
	}
}

// TestFieldExport: from the KubeDescheduler of a real cluster, the plan computes the exported
// object.
func TestFieldExport(t *testing.T) {
	var found []*unstructured.Unstructured
	for _, file := range []string{"kd.yaml", "export.yaml"} {
		raw, err := os.ReadFile(filepath.Join(data, "..", "field-cases", "plans", "15-argo", file))
		if err != nil {
			t.Skipf("the cases of the field are kept beside the repository: %v", err)
		}
		found = append(found, parse(t, strings.TrimPrefix(string(raw), "---\n")))
	}
	live, exported := found[0], found[1]
	exported.SetAnnotations(nil)
	item := items(t, cluster(t, "kubedescheduler-ocp-4-21.yaml", live), nil)[loadawarerebalancing.ItemDescheduler]
	got, err := yaml.Marshal(item.Object)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.Marshal(exported.Object)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the plan (-export +plan):\n%s", diff)
	}
}

// TestOrder: the MachineConfig comes first, because the descheduler uses the pressure that nodes
// report.
func TestOrder(t *testing.T) {
	made, err := loadawarerebalancing.Profile{}.Items(cluster(t, current), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, item := range made {
		names = append(names, item.Name)
	}
	if diff := cmp.Diff([]string{"enable-psi-metrics", "configure-descheduler"}, names); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
}

func TestMissing(t *testing.T) {
	err := profile.Missing(loadawarerebalancing.Profile{}, profile.Facts{})
	var missing *profile.MissingError
	if !errors.As(err, &missing) {
		t.Fatalf("an empty cluster: %v", err)
	}
	for _, says := range []string{"kubedeschedulers.operator.openshift.io", "Kube Descheduler Operator"} {
		if !strings.Contains(missing.Message, says) {
			t.Errorf("%q does not say %q", missing.Message, says)
		}
	}
	if strings.Contains(missing.Message, "HyperConverged") {
		t.Errorf("%q asks for what is optional", missing.Message)
	}
	hosted := cluster(t, current)
	for _, definition := range []string{"machineconfigs", "machineconfigpools"} {
		delete(hosted.Definitions, definition+".machineconfiguration.openshift.io")
	}
	if made := items(t, hosted, &v1alpha1.LoadAwareRebalancingOptions{EnablePSIMetrics: ptr.To(false)}); len(made) != 1 {
		t.Errorf("a plan that leaves nodes alone, in a hosted cluster: %v", made)
	}
	if _, err := (loadawarerebalancing.Profile{}).Items(hosted, nil); !errors.As(err, &missing) || !strings.Contains(missing.Message, "MachineConfig (CustomResourceDefinition machineconfigs.") || !strings.Contains(missing.Message, "machineconfigpools.") {
		t.Errorf("one that needs nodes: %v", err)
	}
	facts := cluster(t, current)
	if err := profile.Missing(loadawarerebalancing.Profile{}, facts); err != nil {
		t.Errorf("a whole cluster: %v", err)
	}
	old := facts.Definitions["kubedeschedulers.operator.openshift.io"]
	old.Versions = slices.Clone(old.Versions)
	old.Versions[0].Schema = map[string]any{"properties": map[string]any{"spec": map[string]any{"properties": map[string]any{
		"profiles": map[string]any{"items": map[string]any{"enum": []any{"AffinityAndTaints"}}}}}}}
	facts.Definitions["kubedeschedulers.operator.openshift.io"] = old
	if _, err := (loadawarerebalancing.Profile{}).Items(facts, nil); !errors.As(err, &missing) {
		t.Errorf("a descheduler without a fitting profile: %v", err)
	}
}
