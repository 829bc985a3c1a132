// Package highdensityswap is the profile HighDensitySwap: worker nodes have swap, and virtual
// machines get more memory than their Pods request. docs/reference/profiles/high-density-swap.md
// explains each value.
package highdensityswap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// Names and defaults that the operators or this profile define.
const (
	machineConfigs     = "machineconfigs.machineconfiguration.openshift.io"
	machineConfigPools = "machineconfigpools.machineconfiguration.openshift.io"
	kubeletConfigs     = "kubeletconfigs.machineconfiguration.openshift.io"
	hyperConvergeds    = "hyperconvergeds.hco.kubevirt.io"
	healthChecks       = "nodehealthchecks.remediation.medik8s.io"

	machineConfigName = "90-worker-penstock-swap"
	kubeletConfigName = "penstock-swap"
	roleLabel         = "machineconfiguration.openshift.io/role"

	defaultLabel = "CNV_SWAP"
	defaultRatio = 150
	plainRatio   = 100
)

// Names of the items.
const (
	ItemKubelet = "allow-swap"
	ItemSwap    = "enable-swap"
	ItemDensity = "configure-density"
)

func hyperConverged() schema.GroupKind {
	return schema.GroupKind{Group: "hco.kubevirt.io", Kind: "HyperConverged"}
}

// Profile implements profile.Profile.
type Profile struct{}

var _ profile.Profile = Profile{}

// Name returns HighDensitySwap.
func (Profile) Name() v1alpha1.ProfileName { return v1alpha1.ProfileHighDensitySwap }

// Description describes the purpose of the profile.
func (Profile) Description() string {
	return "Worker nodes have swap, and virtual machines more memory than is requested for them, so that more of them fit."
}

// Requires returns the definitions that the profile reads. The Machine Config Operator is optional
// here, because plans without swap, as in a hosted cluster, do not need it. Items checks it for
// other plans.
func (Profile) Requires() []profile.Requirement {
	const mco = "the Machine Config Operator, which is part of OpenShift"
	return []profile.Requirement{
		{Definition: machineConfigs, Kind: profile.MachineConfigKind(), Install: mco, Optional: true, Objects: true},
		{Definition: machineConfigPools, Kind: profile.MachineConfigPoolKind(), Install: mco, Optional: true, Objects: true},
		{Definition: kubeletConfigs, Kind: profile.KubeletConfigKind(), Install: mco, Optional: true, Objects: true},
		{Definition: hyperConvergeds, Kind: hyperConverged(), Install: "the HyperConverged Cluster Operator", Objects: true},
		{Definition: healthChecks, Kind: schema.GroupKind{Group: "remediation.medik8s.io", Kind: "NodeHealthCheck"}, Install: "the Node Health Check Operator", Optional: true, Objects: true},
	}
}

// Items returns the swap items first, because overcommitted memory needs swap on the nodes. If
// kubelets would not start with swap, an item before them reconfigures the kubelets.
func (p Profile) Items(facts profile.Facts, all *v1alpha1.PlanOptions) ([]profile.Item, error) {
	options := defaulted(all)
	var items []profile.Item
	if *options.EnableSwap {
		if err := profile.Served(p, facts, machineConfigs, machineConfigPools); err != nil {
			return nil, err
		}
		pools := profile.PoolsOf(facts, map[string]string{roleLabel: "worker"})
		way, err := methodFor(facts, pools)
		if err != nil {
			return nil, err
		}
		if way.kubeletConfig {
			item, err := allow(facts, pools)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		items = append(items, swap(facts, options, pools, way))
	}
	item, err := density(facts, options)
	if err != nil {
		return nil, err
	}
	return append(items, item), nil
}

func defaulted(all *v1alpha1.PlanOptions) v1alpha1.HighDensitySwapOptions {
	var options v1alpha1.HighDensitySwapOptions
	if all != nil && all.HighDensitySwap != nil {
		options = *all.HighDensitySwap
	}
	options.EnableSwap = ptr.To(ptr.Deref(options.EnableSwap, true))
	options.EnableKSM = ptr.To(ptr.Deref(options.EnableKSM, true))
	options.SwapSource = cmp.Or(options.SwapSource, v1alpha1.SwapSourcePartition)
	options.PartitionLabel = cmp.Or(options.PartitionLabel, defaultLabel)
	if options.MemoryToRequestRatio == nil {
		options.MemoryToRequestRatio = ptr.To[int32](plainRatio)
		if *options.EnableSwap {
			options.MemoryToRequestRatio = ptr.To[int32](defaultRatio)
		}
	}
	return options
}

// way decides how the plan configures kubelets for swap.
type way struct {
	// dropIns: with a drop-in file.
	dropIns bool
	// kubeletConfig: with a KubeletConfig, from which the Machine Config Operator generates files.
	kubeletConfig bool
}

// methodFor chooses a way that works on all nodes, from their rendered configuration. It prefers
// drop-ins. If kubelets read no drop-ins, they may already tolerate swap. Otherwise a KubeletConfig
// is needed. Operator versions that refuse its field set the field themselves.
func methodFor(facts profile.Facts, pools []*unstructured.Unstructured) (way, error) {
	if len(pools) == 0 {
		return way{dropIns: true}, nil
	}
	chosen := way{dropIns: true}
	tolerates := true
	for _, pool := range pools {
		rendered := profile.NodeConfigOf(profile.Rendered(facts, pool, "spec"))
		if !rendered.Known {
			return way{}, &profile.MissingError{Message: fmt.Sprintf(
				"the configuration of the kubelets of pool %s is not known: its rendered MachineConfig is missing, or has neither kubelet.service nor %s", pool.GetName(), profile.KubeletConfigFile)}
		}
		chosen.dropIns = chosen.dropIns && rendered.DropIns
		tolerates = tolerates && rendered.ToleratesSwap
	}
	// Kubelets may tolerate swap because of this plan's KubeletConfig. The plan must then keep it.
	chosen.kubeletConfig = !chosen.dropIns && (!tolerates || slices.ContainsFunc(facts.Objects[profile.KubeletConfigKind()], func(config *unstructured.Unstructured) bool {
		return config.GetName() == kubeletConfigName
	}))
	return chosen, nil
}

// allow returns the item that lets kubelets start on nodes with swap, with a KubeletConfig.
func allow(facts profile.Facts, pools []*unstructured.Unstructured) (profile.Item, error) {
	definition, served := facts.Definitions[kubeletConfigs]
	if !served || !definition.Preferred().Has("spec", "machineConfigPoolSelector") {
		return profile.Item{}, &profile.MissingError{Message: "the kubelets do not start on nodes with swap, read no drop-ins, and there is no KubeletConfig (CustomResourceDefinition " + kubeletConfigs + "): update the cluster"}
	}
	const poolLabel = "pools.operator.machineconfiguration.openshift.io/worker"
	for _, pool := range pools {
		if _, labelled := pool.GetLabels()[poolLabel]; !labelled {
			return profile.Item{}, fmt.Errorf("MachineConfigPool %s selects MachineConfigs of workers, and lacks the label %s, by which a KubeletConfig selects it: its kubelets would not start with swap", pool.GetName(), poolLabel)
		}
	}
	// The operator renders each KubeletConfig separately. The last KubeletConfig of a pool wins
	// completely, including fields that it does not set.
	for _, other := range facts.Objects[profile.KubeletConfigKind()] {
		for _, pool := range profile.PoolsOfKubeletConfig(facts, other) {
			if _, worker := pool.GetLabels()[poolLabel]; worker && other.GetName() != kubeletConfigName {
				return profile.Item{}, fmt.Errorf("KubeletConfig %s configures pool %s already, and a second one would replace what it sets: set kubeletConfig.failSwapOn to false there", other.GetName(), pool.GetName())
			}
		}
	}
	item := profile.Item{Name: ItemKubelet, Impact: v1alpha1.ImpactLow, Reason: "kubelets start on nodes with swap", Object: map[string]any{
		"apiVersion": profile.KubeletConfigKind().Group + "/" + definition.Preferred().Name, "kind": profile.KubeletConfigKind().Kind,
		"metadata": map[string]any{"name": kubeletConfigName},
		"spec": map[string]any{
			"machineConfigPoolSelector": map[string]any{"matchLabels": map[string]any{poolLabel: ""}},
			"kubeletConfig":             map[string]any{"failSwapOn": false},
		},
	}}
	item.Notes = append([]string{"nodes reboot twice in this plan: kubelets of this version must be configured to start with swap before nodes have swap"}, profile.PausedNotes(pools)...)
	return item, nil
}

// swap returns the item that gives nodes swap.
func swap(facts profile.Facts, options v1alpha1.HighDensitySwapOptions, pools []*unstructured.Unstructured, way way) profile.Item {
	config := ignition(options, way.dropIns)
	item := profile.Item{Name: ItemSwap, Impact: v1alpha1.ImpactLow, Reason: "nodes have swap", Object: map[string]any{
		"apiVersion": profile.MachineConfigKind().Group + "/" + facts.Definitions[machineConfigs].Preferred().Name,
		"kind":       profile.MachineConfigKind().Kind,
		"metadata":   map[string]any{"name": machineConfigName, "labels": map[string]any{roleLabel: "worker"}},
		"spec":       map[string]any{"config": config},
	}}
	item.Notes = append(item.Notes, diskNote(options, profile.BlastOf(pools, false).Nodes))
	if way.dropIns {
		item.Notes = append(item.Notes, "pods of the Burstable class use swap (LimitedSwap), in proportion to the memory that they request; system services use none")
	} else {
		item.Notes = append(item.Notes, "kubelets of this version read no drop-ins: wasp-agent, which HyperConverged deploys, decides which pods use swap")
	}
	item.Notes = append(item.Notes, profile.PausedNotes(pools)...)
	if checks := facts.Objects[schema.GroupKind{Group: "remediation.medik8s.io", Kind: "NodeHealthCheck"}]; len(checks) > 0 {
		var names []string
		for _, check := range checks {
			names = append(names, check.GetName())
		}
		item.Notes = append(item.Notes, fmt.Sprintf("NodeHealthCheck %s may treat a node that reboots as failed: add an entry to its spec.pauseRequests while this plan runs", strings.Join(names, ", ")))
	}
	return item
}

// diskNote returns a note about the disk space of swap, and about the boot.
func diskNote(options v1alpha1.HighDensitySwapOptions, nodes int64) string {
	if options.SwapSource == v1alpha1.SwapSourceFile {
		return fmt.Sprintf("disk: each node gives up %d MiB of the file system of /var (%d MiB on %d nodes); a node where less than a fifth would stay free has no swap. The file is created at the first boot, which takes seconds",
			*options.FileSizeMiB, int64(*options.FileSizeMiB)*nodes, nodes)
	}
	return fmt.Sprintf("disk: each node uses the partition with label %s, if it is formatted as swap (mkswap); the plan does not format it. A node without such a partition boots without swap", options.PartitionLabel)
}

// density returns the item that gives virtual machines more memory than they request, through
// fields of HyperConverged.
func density(facts profile.Facts, options v1alpha1.HighDensitySwapOptions) (profile.Item, error) {
	definition := facts.Definitions[hyperConvergeds]
	if len(facts.Objects[hyperConverged()]) == 0 {
		return profile.Item{}, &profile.MissingError{Message: "there is no HyperConverged: create it first, as the HyperConverged Cluster Operator requires"}
	}
	live := facts.Objects[hyperConverged()][0] // a cluster has only one
	version := definition.Preferred()
	path := []string{"spec", "virtualization"}
	if !version.Has("spec", "virtualization", "higherWorkloadDensity", "memoryOvercommitPercentage") {
		path = path[:1]
	}
	if !version.Has(append(path, "higherWorkloadDensity", "memoryOvercommitPercentage")...) {
		return profile.Item{}, &profile.MissingError{Message: "the HyperConverged has no field higherWorkloadDensity.memoryOvercommitPercentage: update the HyperConverged Cluster Operator"}
	}
	ratio := int64(*options.MemoryToRequestRatio)
	item := profile.Item{Name: ItemDensity, Impact: v1alpha1.ImpactMedium,
		Reason: fmt.Sprintf("virtual machines have %d%% of the memory that is requested for them, once they are started anew or live-migrated", ratio),
		Waits:  []profile.Wait{{Expression: reconciled, Message: "waiting for HyperConverged to be available, and done with the change"}},
	}
	fields := map[string]any{"higherWorkloadDensity": map[string]any{"memoryOvercommitPercentage": ratio}}
	item.Notes = append(item.Notes, memoryNote(ratio, *options.EnableSwap))
	switch {
	case *options.EnableKSM && version.Has(append(path, "ksmConfiguration", "nodeLabelSelector")...):
		fields["ksmConfiguration"] = map[string]any{"nodeLabelSelector": map[string]any{}}
		item.Notes = append(item.Notes, "nodes merge equal pages of memory (KSM) under pressure, which takes processor time, and lets virtual machines of a node learn of each other's pages by timing")
	case *options.EnableKSM:
		item.Notes = append(item.Notes, "enableKSM has no effect: this HyperConverged has no field for it")
	}
	if ratio > plainRatio {
		item.Notes = append(item.Notes, "above 100% HyperConverged deploys wasp-agent on worker nodes, which is privileged, and evicts virtual machines from nodes that swap too much")
	}
	spec := fields
	if len(path) > 1 {
		spec = map[string]any{path[1]: fields}
	}
	item.Object = map[string]any{
		"apiVersion": hyperConverged().Group + "/" + version.Name, "kind": hyperConverged().Kind,
		"metadata": map[string]any{"name": live.GetName(), "namespace": live.GetNamespace()},
		"spec":     spec,
	}
	return item, nil
}

// reconciled is true for a HyperConverged whose operator has processed the last change, and whose
// components are available.
const reconciled = `has(self.status) && has(self.status.conditions) && ` +
	`(!has(self.status.observedGeneration) || self.status.observedGeneration >= self.metadata.generation) && ` +
	`self.status.conditions.exists(c, c.type == "Available" && c.status == "True") && ` +
	`!self.status.conditions.exists(c, (c.type == "Progressing" || c.type == "Degraded") && c.status == "True")`

func memoryNote(ratio int64, swap bool) string {
	switch {
	case ratio <= plainRatio:
		return "memory: virtual machines have what is requested for them, and no more"
	case swap:
		return fmt.Sprintf("memory: when all virtual machines of a node use all they have, %d%% of that is in swap, which is slow; if memory still runs out, virtual machines are killed", (ratio-100)*100/ratio)
	default:
		return fmt.Sprintf("memory: without swap, a node whose virtual machines use more than %d%% of what they have runs out of memory, and some of them are killed", 100*100/ratio)
	}
}
