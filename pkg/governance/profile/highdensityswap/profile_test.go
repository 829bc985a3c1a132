package highdensityswap

import (
	"encoding/base64"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// fields returns a schema with the given path, with the properties of a list as the last step.
func fields(path ...string) map[string]any {
	schema := map[string]any{}
	for i := len(path) - 1; i >= 0; i-- {
		schema = map[string]any{"properties": map[string]any{path[i]: schema}}
	}
	return schema
}

func definition(version string, schema map[string]any) profile.Definition {
	return profile.Definition{Versions: []profile.Version{{Name: version, Schema: schema}}}
}

func add(f profile.Facts, group, kind, name string, content map[string]any) {
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion(group + "/v1")
	object.SetKind(kind)
	object.SetName(name)
	of := schema.GroupKind{Group: group, Kind: kind}
	f.Objects[of] = append(f.Objects[of], object)
}

// kubelet describes the kubelet configuration of a cluster's nodes.
type kubelet struct {
	dropIns, tolerates bool
}

// rendered returns a rendered configuration with the files that matter.
func (k kubelet) rendered() map[string]any {
	unit, conf := "[Service]\nExecStart=/usr/bin/kubelet --config=/etc/kubernetes/kubelet.conf\n", "kind: KubeletConfiguration\n"
	if k.dropIns {
		unit = "[Service]\nExecStart=/usr/bin/kubelet --config=/etc/kubernetes/kubelet.conf \\\n  --config-dir=/etc/openshift/kubelet.conf.d\n"
	}
	if k.tolerates {
		conf += "failSwapOn: false\n"
	}
	return map[string]any{"spec": map[string]any{"config": map[string]any{
		"storage": map[string]any{"files": []any{map[string]any{"path": profile.KubeletConfigFile, "contents": map[string]any{"source": "data:," + url.PathEscape(conf)}}}},
		"systemd": map[string]any{"units": []any{map[string]any{"name": "kubelet.service", "contents": unit}}},
	}}}
}

const mco = "machineconfiguration.openshift.io"

// cluster returns facts with three workers and a HyperConverged of v1.
func cluster(k kubelet) profile.Facts {
	f := profile.NewFacts()
	f.Definitions[machineConfigs] = definition("v1", nil)
	f.Definitions[machineConfigPools] = definition("v1", nil)
	f.Definitions[kubeletConfigs] = definition("v1", fields("spec", "machineConfigPoolSelector"))
	spec := fields("spec", "virtualization", "higherWorkloadDensity", "memoryOvercommitPercentage")
	virtualization := spec["properties"].(map[string]any)["spec"].(map[string]any)["properties"].(map[string]any)["virtualization"].(map[string]any)["properties"].(map[string]any)
	virtualization["ksmConfiguration"] = fields("nodeLabelSelector")
	f.Definitions[hyperConvergeds] = definition("v1", spec)
	add(f, "hco.kubevirt.io", "HyperConverged", "kubevirt-hyperconverged", map[string]any{"metadata": map[string]any{"namespace": "openshift-cnv"}})
	add(f, mco, "MachineConfig", "rendered-worker-1", k.rendered())
	pool(f, "worker", 3)
	return f
}

func pool(f profile.Facts, name string, nodes int64) *unstructured.Unstructured {
	content := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"pools.operator.machineconfiguration.openshift.io/worker": ""}},
		"spec": map[string]any{
			"machineConfigSelector": map[string]any{"matchLabels": map[string]any{roleLabel: "worker"}}, "configuration": map[string]any{"name": "rendered-worker-1"}},
		"status": map[string]any{"configuration": map[string]any{"name": "rendered-worker-1"}, "machineCount": nodes},
	}
	add(f, mco, "MachineConfigPool", name, content)
	pools := f.Objects[profile.MachineConfigPoolKind()]
	return pools[len(pools)-1]
}

func itemsOf(t *testing.T, f profile.Facts, options v1alpha1.HighDensitySwapOptions) []profile.Item {
	t.Helper()
	items, err := Profile{}.Items(f, &v1alpha1.PlanOptions{HighDensitySwap: &options})
	if err != nil {
		t.Fatal(err)
	}
	return items
}

// weighed returns an item with its impact on nodes. It assumes that the cluster stores the item
// unchanged.
func weighed(f profile.Facts, item profile.Item) profile.Item {
	var before *unstructured.Unstructured
	after := &unstructured.Unstructured{Object: item.Object}
	for _, config := range f.Objects[after.GroupVersionKind().GroupKind()] {
		if config.GetName() == after.GetName() {
			before = config
		}
	}
	return profile.Weigh(item, f, before, after)
}

func namesOf(items []profile.Item) string {
	var names []string
	for _, item := range items {
		names = append(names, item.Name)
	}
	return strings.Join(names, " ")
}

// TestCapabilities: the rendered configuration of nodes decides how kubelets are configured, and
// not a version. A KubeletConfig is created only if kubelets neither read drop-ins nor tolerate
// swap.
func TestCapabilities(t *testing.T) {
	for name, c := range map[string]struct {
		kubelet kubelet
		want    string
		dropIn  bool
	}{
		"drop-ins":            {kubelet{dropIns: true}, "enable-swap configure-density", true},
		"drop-ins, tolerates": {kubelet{dropIns: true, tolerates: true}, "enable-swap configure-density", true},
		"tolerates":           {kubelet{tolerates: true}, "enable-swap configure-density", false},
		"neither":             {kubelet{}, "allow-swap enable-swap configure-density", false},
	} {
		t.Run(name, func(t *testing.T) {
			items := itemsOf(t, cluster(c.kubelet), v1alpha1.HighDensitySwapOptions{})
			if got := namesOf(items); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			raw, _ := yaml.Marshal(items[len(items)-2].Object)
			if strings.Contains(string(raw), dropInFile) != c.dropIn {
				t.Errorf("a drop-in: %v\n%s", !c.dropIn, raw)
			}
			for _, item := range items {
				if item.Name != ItemKubelet {
					continue
				}
				spec, _, _ := unstructured.NestedMap(item.Object, "spec", "kubeletConfig")
				if diff := cmp.Diff(map[string]any{"failSwapOn": false}, spec); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// TestRefusals: an item that cannot be computed, or would undo another owner's work, is an error
// with a reason.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(f profile.Facts)
		kubelet kubelet
		want    string
		missing bool
	}{
		"nothing rendered": {func(f profile.Facts) { f.Objects[profile.MachineConfigKind()] = nil }, kubelet{}, "the configuration of the kubelets of pool worker is not known", true},
		"no KubeletConfig": {func(f profile.Facts) { delete(f.Definitions, kubeletConfigs) }, kubelet{}, "there is no KubeletConfig", true},
		"another KubeletConfig": {func(f profile.Facts) {
			add(f, mco, "KubeletConfig", "max-pods", map[string]any{"spec": map[string]any{"machineConfigPoolSelector": map[string]any{"matchLabels": map[string]any{"pools.operator.machineconfiguration.openshift.io/worker": ""}}}})
		}, kubelet{}, "KubeletConfig max-pods configures pool worker already", false},
		"a pool without the label": {func(f profile.Facts) { pool(f, "infra", 2).SetLabels(nil) }, kubelet{}, "MachineConfigPool infra selects MachineConfigs of workers, and lacks the label", false},
		"no HyperConverged":        {func(f profile.Facts) { delete(f.Objects, hyperConverged()) }, kubelet{dropIns: true}, "there is no HyperConverged", true},
		"an old one":               {func(f profile.Facts) { f.Definitions[hyperConvergeds] = definition("v1beta1", nil) }, kubelet{dropIns: true}, "no field higherWorkloadDensity", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := cluster(c.kubelet)
			c.change(f)
			_, err := Profile{}.Items(f, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, new(*profile.MissingError)) != c.missing {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	// A KubeletConfig that selects other pools, or no pool, is no obstacle.
	f := cluster(kubelet{})
	add(f, mco, "KubeletConfig", "masters", map[string]any{"spec": map[string]any{"machineConfigPoolSelector": map[string]any{"matchLabels": map[string]any{"master": ""}}}})
	add(f, mco, "KubeletConfig", "nowhere", map[string]any{"spec": map[string]any{}})
	itemsOf(t, f, v1alpha1.HighDensitySwapOptions{})
}

// TestReview: the review states the cost in memory, disk and time.
func TestReview(t *testing.T) {
	file := v1alpha1.HighDensitySwapOptions{SwapSource: v1alpha1.SwapSourceFile, FileSizeMiB: ptr.To[int32](4096)}
	for name, c := range map[string]struct {
		options v1alpha1.HighDensitySwapOptions
		change  func(f profile.Facts)
		impact  v1alpha1.ImpactSeverity
		reason  string
		notes   []string
	}{
		"partition": {v1alpha1.HighDensitySwapOptions{}, func(profile.Facts) {}, v1alpha1.ImpactHigh, "files and units of nodes change: 3 nodes reboot, pool by pool, in 3 waves",
			[]string{"partition with label CNV_SWAP, if it is formatted as swap", "33% of that is in swap", "deploys wasp-agent", "KSM"}},
		"file": {file, func(profile.Facts) {}, v1alpha1.ImpactHigh, "3 nodes reboot", []string{"each node gives up 4096 MiB of the file system of /var (12288 MiB on 3 nodes)"}},
		"nobody counts": {v1alpha1.HighDensitySwapOptions{}, func(f profile.Facts) {
			unstructured.RemoveNestedField(f.Objects[profile.MachineConfigPoolKind()][0].Object, "status", "machineCount")
		}, v1alpha1.ImpactHigh,
			"the number of nodes that reboot is not known, because MachineConfigPool worker does not report its number of nodes", nil},
		"paused": {v1alpha1.HighDensitySwapOptions{}, func(f profile.Facts) {
			_ = unstructured.SetNestedField(f.Objects[profile.MachineConfigPoolKind()][0].Object, true, "spec", "paused")
		}, v1alpha1.ImpactHigh, "3 nodes",
			[]string{"pool worker is paused"}},
		"health checks": {v1alpha1.HighDensitySwapOptions{}, func(f profile.Facts) {
			add(f, "remediation.medik8s.io", "NodeHealthCheck", "workers", map[string]any{})
		}, v1alpha1.ImpactHigh, "3 nodes",
			[]string{"NodeHealthCheck workers may treat a node that reboots as failed"}},
		"there already": {v1alpha1.HighDensitySwapOptions{}, func(f profile.Facts) {
			config := ignition(defaulted(nil), true)
			rendered := f.Objects[profile.MachineConfigKind()][0]
			units, _, _ := unstructured.NestedSlice(rendered.Object, "spec", "config", "systemd", "units")
			files, _, _ := unstructured.NestedSlice(rendered.Object, "spec", "config", "storage", "files")
			ours, _, _ := unstructured.NestedSlice(config, "systemd", "units")
			oursFiles, _, _ := unstructured.NestedSlice(config, "storage", "files")
			_ = unstructured.SetNestedSlice(rendered.Object, append(units, ours...), "spec", "config", "systemd", "units")
			_ = unstructured.SetNestedSlice(rendered.Object, append(files, oursFiles...), "spec", "config", "storage", "files")
			add(f, mco, "MachineConfig", machineConfigName, map[string]any{"metadata": map[string]any{"labels": map[string]any{roleLabel: "worker"}}, "spec": map[string]any{"config": config}})
		}, v1alpha1.ImpactLow, "nodes have swap", nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, summarized := range []bool{false, true} {
				f := cluster(kubelet{dropIns: true})
				c.change(f)
				if summarized {
					for _, config := range f.Objects[profile.MachineConfigKind()] {
						profile.Summarize(config)
					}
				}
				items := itemsOf(t, f, c.options)
				items[0] = weighed(f, items[0])
				if items[0].Impact != c.impact || !strings.Contains(items[0].Reason, c.reason) {
					t.Errorf("%s: %s", items[0].Impact, items[0].Reason)
				}
				notes := strings.Join(append(items[0].Notes, items[1].Notes...), "\n")
				for _, text := range c.notes {
					if !strings.Contains(notes, text) {
						t.Errorf("no %q in\n%s", text, notes)
					}
				}
			}
		})
	}
}

// TestWithoutSwap: without swap no node reboots, and virtual machines get the memory that they
// request.
func TestWithoutSwap(t *testing.T) {
	hosted := cluster(kubelet{})
	for _, definition := range []string{machineConfigs, machineConfigPools, kubeletConfigs} {
		delete(hosted.Definitions, definition)
	}
	if err := profile.Missing(Profile{}, hosted); err != nil {
		t.Errorf("a hosted cluster: %v", err)
	}
	if _, err := (Profile{}).Items(hosted, nil); !errors.As(err, new(*profile.MissingError)) || !strings.Contains(err.Error(), machineConfigs) || !strings.Contains(err.Error(), machineConfigPools) {
		t.Errorf("swap in a hosted cluster: %v", err)
	}
	items := itemsOf(t, hosted, v1alpha1.HighDensitySwapOptions{EnableSwap: ptr.To(false), EnableKSM: ptr.To(false)})
	if namesOf(items) != ItemDensity {
		t.Fatal(namesOf(items))
	}
	raw, _ := yaml.Marshal(items[0].Object)
	want := "apiVersion: hco.kubevirt.io/v1\nkind: HyperConverged\nmetadata:\n  name: kubevirt-hyperconverged\n  namespace: openshift-cnv\nspec:\n  virtualization:\n    higherWorkloadDensity:\n      memoryOvercommitPercentage: 100\n"
	if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Error(diff)
	}
}

// TestRealDefinitions: the item sets fields of HyperConverged where the definition has them.
func TestRealDefinitions(t *testing.T) {
	for file, want := range map[string]string{
		"hco.kubevirt.io_hyperconvergeds.yaml": "hco.kubevirt.io/v1 virtualization", "mock_hyperconverged_v1beta1_only.yaml": "hco.kubevirt.io/v1beta1 higherWorkloadDensity,ksmConfiguration",
	} {
		raw, err := os.ReadFile("../../../../../shared/data/crds/" + file)
		if err != nil {
			t.Skipf("the definitions of other projects are kept beside the repository: %v", err)
		}
		crd := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &crd.Object); err != nil {
			t.Fatal(err)
		}
		crd.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}}
		f := cluster(kubelet{dropIns: true})
		f.Definitions[hyperConvergeds], _ = profile.DefinitionOf(crd)
		items := itemsOf(t, f, v1alpha1.HighDensitySwapOptions{})
		object := items[len(items)-1].Object
		var names []string
		for _, name := range []string{"higherWorkloadDensity", "ksmConfiguration", "virtualization"} {
			if _, found, _ := unstructured.NestedFieldNoCopy(object, "spec", name); found {
				names = append(names, name)
			}
		}
		if got := object["apiVersion"].(string) + " " + strings.Join(names, ","); got != want {
			t.Errorf("%s: got %s, want %s", file, got, want)
		}
	}
}

// TestSummaries: a summary has the same result as the whole object, for all forms of files.
func TestSummaries(t *testing.T) {
	config := func(source string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "MachineConfig", "spec": map[string]any{"config": map[string]any{
			"storage": map[string]any{"files": []any{map[string]any{"path": "/etc/a", "mode": int64(420), "contents": map[string]any{"source": source}}}}}}}}
	}
	plain, encoded := config("data:,a%20b"), config("data:text/plain;charset=utf-8;base64,"+base64.StdEncoding.EncodeToString([]byte("a b")))
	if !profile.NodeConfigOf(plain).Has(profile.NodeConfigOf(encoded)) || profile.NodeConfigOf(plain).Has(profile.NodeConfigOf(config("data:,c"))) {
		t.Error("files are compared by how they are written")
	}
	whole := profile.NodeConfigOf(plain)
	profile.Summarize(plain)
	if diff := cmp.Diff(whole, profile.NodeConfigOf(plain)); diff != "" {
		t.Error(diff)
	}
}

// TestSameOnceInEffect: a plan in effect does not change when it is computed again, although its
// KubeletConfig makes kubelets tolerate swap.
func TestSameOnceInEffect(t *testing.T) {
	before := itemsOf(t, cluster(kubelet{}), v1alpha1.HighDensitySwapOptions{})
	f := cluster(kubelet{tolerates: true})
	add(f, mco, "KubeletConfig", kubeletConfigName, map[string]any{"spec": before[0].Object["spec"]})
	after := itemsOf(t, f, v1alpha1.HighDensitySwapOptions{})
	if namesOf(before) != namesOf(after) {
		t.Fatalf("before: %s, once in effect: %s", namesOf(before), namesOf(after))
	}
	for i := range before {
		if diff := cmp.Diff(before[i].Object, after[i].Object); diff != "" {
			t.Errorf("%s (-before +in effect):\n%s", before[i].Name, diff)
		}
	}
}
