package cel_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
	"github.com/penstock-project/penstock/pkg/governance/profile/loadawarerebalancing"
)

// example reads a published definition, and fails if admission would refuse it.
func example(t testing.TB, file string) *cel.Profile {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../../../artifacts/examples/profiles", file))
	if err != nil {
		t.Fatal(err)
	}
	return compiled(t, string(raw))
}

func compiled(t testing.TB, text string) *cel.Profile {
	t.Helper()
	definition := parsed(t, text)
	if errs := cel.Validate(&definition.Spec, field.NewPath("spec")); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	made, err := cel.New(definition.Name, &definition.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func parsed(t testing.TB, text string) *v1alpha1.ConfigurationProfileDefinition {
	t.Helper()
	definition := &v1alpha1.ConfigurationProfileDefinition{}
	if err := yaml.UnmarshalStrict([]byte(text), definition); err != nil {
		t.Fatal(err)
	}
	v1alpha1.SetObjectDefaults_ConfigurationProfileDefinition(definition)
	return definition
}

func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = out.UnmarshalJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func pool(t testing.TB, name, selector string, paused bool, nodes int, rendered string) *unstructured.Unstructured {
	return object(t, fmt.Sprintf(`
apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfigPool
metadata: {name: %s}
spec: {paused: %t, machineConfigSelector: %s, maxUnavailable: 2}
status: {machineCount: %d, configuration: {name: %s}}`, name, paused, selector, nodes, rendered))
}

func config(t testing.TB, name, arguments string) *unstructured.Unstructured {
	return object(t, fmt.Sprintf("{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfig, metadata: {name: %s}, spec: {kernelArguments: %s}}", name, arguments))
}

// generation returns a KubeDescheduler definition whose schema has the given profiles,
// customizations and limits.
func generation(profiles, customizations, limits []string) profile.Definition {
	values := make([]any, len(profiles))
	for i, name := range profiles {
		values[i] = name
	}
	object := func(names []string) map[string]any {
		properties := map[string]any{}
		for _, name := range names {
			properties[name] = map[string]any{"type": "string"}
		}
		return map[string]any{"type": "object", "properties": properties}
	}
	items := map[string]any{"type": "string"}
	if len(values) > 0 {
		items["enum"] = values
	}
	return profile.Definition{Versions: []profile.Version{{Name: "v1", Schema: map[string]any{"type": "object", "properties": map[string]any{
		"spec": map[string]any{"type": "object", "properties": map[string]any{
			"profiles": map[string]any{"type": "array", "items": items}, "profileCustomizations": object(customizations), "evictionLimits": object(limits),
		}},
	}}}}}
}

// emptied returns a KubeDescheduler definition in which thresholds may be empty.
func emptied(of profile.Definition) profile.Definition {
	spec := of.Versions[0].Schema["properties"].(map[string]any)["spec"].(map[string]any)["properties"].(map[string]any)
	customizations := spec["profileCustomizations"].(map[string]any)["properties"].(map[string]any)
	customizations["devLowNodeUtilizationThresholds"] = map[string]any{"type": "string", "enum": []any{"Low", ""}}
	return of
}

// TestSameAsGo: the published definition of a profile has the same items and reviews as the profile
// in Go, for every cluster and all options.
func TestSameAsGo(t *testing.T) {
	ours := example(t, "load-aware-rebalancing.yaml")
	all := []string{"devEnableEvictionsInBackground", "devEnableSoftTainter", "devDeviationThresholds"}
	generations := map[string]profile.Definition{
		"Any":     generation(nil, all, []string{"total", "node"}),
		"Newest":  generation([]string{"LongLifecycle", "KubeVirtRelieveAndMigrate", "AffinityAndTaints"}, all, []string{"total", "node"}),
		"Dev":     generation([]string{"DevKubeVirtRelieveAndMigrate", "LongLifecycle"}, all[:2], []string{"total"}),
		"Old":     generation([]string{"LongLifecycle"}, nil, nil),
		"Empty":   emptied(generation([]string{"KubeVirtRelieveAndMigrate"}, append([]string{"devLowNodeUtilizationThresholds"}, all...), nil)),
		"Bare":    generation([]string{"KubeVirtRelieveAndMigrate"}, nil, nil),
		"Foreign": generation([]string{"SoftTopologyAndDuplicates"}, all, nil),
	}
	worker := "{matchLabels: {machineconfiguration.openshift.io/role: worker}}"
	custom := "{matchExpressions: [{key: machineconfiguration.openshift.io/role, operator: In, values: [worker, infra]}]}"
	clusters := map[string][]*unstructured.Unstructured{
		"Empty": nil,
		"Workers": {
			pool(t, "infra", custom, true, 3, "rendered-infra"), pool(t, "master", "{matchLabels: {machineconfiguration.openshift.io/role: master}}", false, 3, "rendered-infra"), pool(t, "worker", worker, false, 10, "rendered-worker"),
			config(t, "rendered-infra", `["psi=0 psi=1"]`), config(t, "rendered-worker", `["quiet", "psi=1", "nopsi psi=0"]`),
		},
		"Done": {pool(t, "worker", worker, false, 10, "r"), config(t, "r", `["psi=0", "psi=1"]`)},
		"Other operators": {
			pool(t, "a", "{matchExpressions: [{key: machineconfiguration.openshift.io/role, operator: Exists}]}", false, 1, "none"),
			pool(t, "b", "{matchExpressions: [{key: machineconfiguration.openshift.io/role, operator: NotIn, values: [worker]}]}", false, 1, "none"),
			pool(t, "c", "{matchExpressions: [{key: other, operator: DoesNotExist}]}", false, 0, "none"), pool(t, "d", "{}", false, 1, "none"),
		},
		"No nodes": {pool(t, "worker", worker, false, 0, "none")},
		"Descheduler": {object(t, `{apiVersion: operator.openshift.io/v1, kind: KubeDescheduler, metadata: {name: cluster, namespace: openshift-kube-descheduler-operator},
			spec: {profiles: [AffinityAndTaints, LifecycleAndUtilization, KubeVirtRelieveAndMigrate, TopologyAndDuplicates]}}`)},
		"Thresholds": {object(t, `{apiVersion: operator.openshift.io/v1, kind: KubeDescheduler, metadata: {name: cluster, namespace: openshift-kube-descheduler-operator},
			spec: {profileCustomizations: {devLowNodeUtilizationThresholds: Medium}}}`)},
		"No thresholds": {object(t, `{apiVersion: operator.openshift.io/v1, kind: KubeDescheduler, metadata: {name: cluster, namespace: openshift-kube-descheduler-operator},
			spec: {profileCustomizations: {devLowNodeUtilizationThresholds: ""}}}`)},
		"HyperConverged v1beta1": {object(t, `{apiVersion: hco.kubevirt.io/v1beta1, kind: HyperConverged, metadata: {name: hco, namespace: n},
			spec: {liveMigrationConfig: {parallelMigrationsPerCluster: 23, parallelOutboundMigrationsPerNode: 12}}}`)},
		"HyperConverged v1": {object(t, `{apiVersion: hco.kubevirt.io/v1, kind: HyperConverged, metadata: {name: hco, namespace: n},
			spec: {virtualization: {liveMigrationConfig: {parallelOutboundMigrationsPerNode: 40}}}}`)},
	}
	options := map[string]*v1alpha1.LoadAwareRebalancingOptions{
		"None":       nil,
		"Predictive": {Mode: v1alpha1.DeschedulerPredictive, EnablePSIMetrics: ptr.To(false), DeschedulingIntervalSeconds: ptr.To[int32](600)},
		"Limits":     {EvictionLimitTotal: ptr.To[int32](40), EvictionLimitNode: ptr.To[int32](4), DeviationThresholds: v1alpha1.DeviationHigh},
		"Node":       {EvictionLimitNode: ptr.To[int32](3)},
		"Total":      {EvictionLimitTotal: ptr.To[int32](3)},
	}
	compared := 0
	for generation, definition := range generations {
		for cluster, objects := range clusters {
			for name, given := range options {
				facts := profile.NewFacts()
				facts.Definitions["kubedeschedulers.operator.openshift.io"] = definition
				for _, name := range []string{"machineconfigs", "machineconfigpools"} {
					facts.Definitions[name+".machineconfiguration.openshift.io"] = profile.Definition{Versions: []profile.Version{{Name: "v1"}}}
				}
				for _, object := range objects {
					kind := object.GroupVersionKind().GroupKind()
					facts.Objects[kind] = append(facts.Objects[kind], object)
				}
				want, wantErr := loadawarerebalancing.Profile{}.Items(facts, &v1alpha1.PlanOptions{LoadAwareRebalancing: given})
				got, err := ours.Items(facts, &v1alpha1.PlanOptions{Values: values(t, given)})
				var wantMissing, missing *profile.MissingError
				if errors.As(wantErr, &wantMissing) && errors.As(err, &missing) && missing.Message == wantMissing.Message {
					compared++
					continue
				}
				if err != nil || wantErr != nil {
					t.Errorf("%s, %s, %s: %v, and Go says %v", generation, cluster, name, err, wantErr)
					continue
				}
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("%s, %s, %s (-Go +definition):\n%s", generation, cluster, name, diff)
				}
				compared++
			}
		}
	}
	if most := len(generations) * len(clusters) * len(options); compared != most {
		t.Errorf("%d of %d were compared", compared, most)
	}
	if diff := cmp.Diff(loadawarerebalancing.Profile{}.Requires(), ours.Requires()); diff != "" {
		t.Errorf("what it looks at (-Go +definition):\n%s", diff)
	}
	if ours.Description() != (loadawarerebalancing.Profile{}).Description() {
		t.Errorf("description %q", ours.Description())
	}
}

// values converts options of the profile in Go to values of the definition.
func values(t testing.TB, options *v1alpha1.LoadAwareRebalancingOptions) *v1alpha1.JSONObject {
	t.Helper()
	if options == nil {
		return nil
	}
	raw, err := yaml.Marshal(options)
	if err == nil {
		raw, err = yaml.YAMLToJSON(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &v1alpha1.JSONObject{Raw: raw}
}

// TestNUMA: the published definition for NUMA returns a KubeletConfig and waits with a message.
func TestNUMA(t *testing.T) {
	numa := example(t, "numa.yaml")
	facts := profile.NewFacts()
	for _, name := range []string{"kubeletconfigs", "machineconfigs", "machineconfigpools"} {
		facts.Definitions[name+".machineconfiguration.openshift.io"] = profile.Definition{Versions: []profile.Version{{Name: "v1"}}}
	}
	var missing *profile.MissingError
	if _, err := numa.Items(facts, nil); !errors.As(err, &missing) || missing.Message != "there is no MachineConfigPool worker" {
		t.Fatalf("without a pool: %v", err)
	}
	worker := pool(t, "worker", "{}", false, 3, "old")
	facts.Objects[schema.GroupKind{Group: "machineconfiguration.openshift.io", Kind: "MachineConfigPool"}] = []*unstructured.Unstructured{worker}
	items, err := numa.Items(facts, &v1alpha1.PlanOptions{Values: &v1alpha1.JSONObject{Raw: []byte(`{"policy": "restricted"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	made := items[0]
	if policy, _, _ := unstructured.NestedString(made.Object, "spec", "kubeletConfig", "topologyManagerPolicy"); policy != "restricted" || made.Impact != v1alpha1.ImpactHigh ||
		made.Object["kind"] != "KubeletConfig" || made.Object["apiVersion"] != "machineconfiguration.openshift.io/v1" || !strings.Contains(made.Reason, "3 nodes reboot in 2 waves") {
		t.Errorf("%+v", made)
	}
	if holds, message, err := made.Waits[0].Judge(map[string]any{}); holds || err == nil || message == "" {
		t.Errorf("a KubeletConfig without status: %v, %q, %v", holds, message, err)
	}
	worker.Object["spec"].(map[string]any)["configuration"] = map[string]any{"name": "new"}
	worker.Object["status"].(map[string]any)["updatedMachineCount"] = int64(1)
	waits, err := numa.Waits("align-cpus", facts, nil)
	if err != nil {
		t.Fatal(err)
	}
	if holds, message, err := waits[1].Judge(map[string]any{}); holds || err != nil || message != "1 of 3 nodes have restarted" {
		t.Errorf("nodes restart: %v, %q, %v", holds, message, err)
	}
}
