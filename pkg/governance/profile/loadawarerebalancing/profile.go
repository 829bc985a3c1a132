// Package loadawarerebalancing is the profile LoadAwareRebalancing: nodes report pressure, and the
// descheduler moves virtual machines away from nodes with more pressure than others.
// docs/reference/profiles/load-aware-rebalancing.md explains each value.
package loadawarerebalancing

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// Names and defaults that the operators define.
const (
	deschedulerDefinition = "kubedeschedulers.operator.openshift.io"
	machineConfigs        = "machineconfigs.machineconfiguration.openshift.io"
	machineConfigPools    = "machineconfigpools.machineconfiguration.openshift.io"
	hyperConvergeds       = "hyperconvergeds.hco.kubevirt.io"

	deschedulerName      = "cluster"
	deschedulerNamespace = "openshift-kube-descheduler-operator"
	machineConfigName    = "99-worker-psi-karg"

	// Defaults of HyperConverged for fields that are not set.
	defaultMigrationsTotal = 5
	defaultMigrationsNode  = 1
)

// Names of the items.
const (
	ItemPSI         = "enable-psi-metrics"
	ItemDescheduler = "configure-descheduler"
)

func descheduler() schema.GroupKind {
	return schema.GroupKind{Group: "operator.openshift.io", Kind: "KubeDescheduler"}
}

func hyperConverged() schema.GroupKind {
	return schema.GroupKind{Group: "hco.kubevirt.io", Kind: "HyperConverged"}
}

// Profile implements profile.Profile.
type Profile struct{}

var _ profile.Profile = Profile{}

// Name returns LoadAwareRebalancing.
func (Profile) Name() v1alpha1.ProfileName { return v1alpha1.ProfileLoadAwareRebalancing }

// Description describes the purpose of the profile.
func (Profile) Description() string {
	return "The descheduler live-migrates virtual machines away from nodes under pressure (PSI)."
}

// Requires returns the definitions that the profile reads. The Machine Config Operator is optional
// here, because plans that do not change nodes, as in a hosted cluster, do not need it. Items
// checks it for other plans.
func (Profile) Requires() []profile.Requirement {
	const mco = "the Machine Config Operator, which is part of OpenShift"
	return []profile.Requirement{
		{Definition: deschedulerDefinition, Kind: descheduler(), Install: "the Kube Descheduler Operator", Objects: true},
		{Definition: machineConfigs, Kind: profile.MachineConfigKind(), Install: mco, Optional: true, Objects: true},
		{Definition: machineConfigPools, Kind: profile.MachineConfigPoolKind(), Install: mco, Optional: true, Objects: true},
		{Definition: hyperConvergeds, Kind: hyperConverged(), Install: "the HyperConverged Cluster Operator", Optional: true, Objects: true},
	}
}

// Items returns the MachineConfig first, because the descheduler uses the pressure that nodes
// report.
func (p Profile) Items(facts profile.Facts, all *v1alpha1.PlanOptions) ([]profile.Item, error) {
	var options v1alpha1.LoadAwareRebalancingOptions
	if all != nil && all.LoadAwareRebalancing != nil {
		options = *all.LoadAwareRebalancing
	}
	var items []profile.Item
	if options.EnablePSIMetrics == nil || *options.EnablePSIMetrics {
		if err := profile.Served(p, facts, machineConfigs, machineConfigPools); err != nil {
			return nil, err
		}
		items = append(items, psi(facts))
	}
	item, err := descheduling(facts, options)
	if err != nil {
		return nil, err
	}
	return append(items, item), nil
}

// psi returns the item that makes the kernel of all workers report pressure.
func psi(facts profile.Facts) profile.Item {
	labels := map[string]string{"machineconfiguration.openshift.io/role": "worker"}
	item := profile.Item{
		Name: ItemPSI, Impact: v1alpha1.ImpactLow, Reason: "nodes report pressure (PSI)",
		Object: map[string]any{
			"apiVersion": profile.MachineConfigKind().Group + "/" + facts.Definitions[machineConfigs].Preferred().Name,
			"kind":       profile.MachineConfigKind().Kind,
			"metadata": map[string]any{
				"name":   machineConfigName,
				"labels": map[string]any{"machineconfiguration.openshift.io/role": "worker"},
			},
			"spec": map[string]any{"kernelArguments": []any{"psi=1"}},
		},
	}
	pools := profile.PoolsOf(facts, labels)
	if len(pools) == 0 {
		item.Notes = append(item.Notes, "no MachineConfigPool selects MachineConfigs of role worker: nothing happens until there is one")
	}
	item.Notes = append(item.Notes, profile.PausedNotes(pools)...)
	return item
}

// descheduling returns the item that configures the descheduler, with the fields of its schema.
func descheduling(facts profile.Facts, options v1alpha1.LoadAwareRebalancingOptions) (profile.Item, error) {
	version := facts.Definitions[deschedulerDefinition].Preferred()
	chosen, err := chooseProfile(version)
	if err != nil {
		return profile.Item{}, err
	}
	item := profile.Item{Name: ItemDescheduler, Impact: v1alpha1.ImpactMedium, Reason: "virtual machines are live-migrated"}
	mode := cmp.Or(options.Mode, v1alpha1.DeschedulerAutomatic)
	if mode == v1alpha1.DeschedulerAutomatic {
		item.Notes = append(item.Notes, "mode Automatic starts real evictions; Predictive, the default of the KubeDescheduler, only says what it would evict")
	} else {
		item.Impact, item.Reason = v1alpha1.ImpactLow, "mode Predictive evicts nothing"
	}
	profiles, dropped := profilesWith(chosen, current(facts))
	if dropped > 0 {
		// The diff names them for users who can read the KubeDescheduler.
		item.Notes = append(item.Notes, fmt.Sprintf("removes %d of the profiles in spec.profiles", dropped))
	}
	spec := map[string]any{
		"managementState":             "Managed",
		"deschedulingIntervalSeconds": int64(ptr.Deref(options.DeschedulingIntervalSeconds, 60)),
		"mode":                        string(mode),
		"profiles":                    profiles,
	}
	if chosen != profileLongLifecycle {
		addCustomizations(spec, version, options)
		excluded, err := exclude(spec, version, current(facts))
		if err != nil {
			return profile.Item{}, err
		}
		item.Notes = append(item.Notes, excluded...)
		item.Notes = append(item.Notes, addLimits(spec, version, facts, options)...)
	} else {
		item.Notes = append(item.Notes, "this descheduler has no profile for virtual machines; LongLifecycle is the closest, and it has no eviction limits of its own here")
	}
	item.Object = map[string]any{
		"apiVersion": descheduler().Group + "/" + version.Name,
		"kind":       descheduler().Kind,
		"metadata":   map[string]any{"name": deschedulerName, "namespace": deschedulerNamespace},
		"spec":       spec,
	}
	return item, nil
}

// Profiles of the descheduler, the best first.
const (
	profileRelieve       = "KubeVirtRelieveAndMigrate"
	profileDevRelieve    = "DevKubeVirtRelieveAndMigrate"
	profileLongLifecycle = "LongLifecycle"
)

// chooseProfile returns the best profile that this descheduler supports.
func chooseProfile(version profile.Version) (string, error) {
	known := version.Enum("spec", "profiles", "[]")
	if len(known) == 0 {
		return profileRelieve, nil // it allows any
	}
	for _, candidate := range []string{profileRelieve, profileDevRelieve, profileLongLifecycle} {
		if slices.Contains(known, candidate) {
			return candidate, nil
		}
	}
	return "", &profile.MissingError{Message: fmt.Sprintf(
		"the KubeDescheduler has none of the profiles %s, %s and %s: update the Kube Descheduler Operator", profileRelieve, profileDevRelieve, profileLongLifecycle)}
}

// current returns the present descheduler, or nil.
func current(facts profile.Facts) *unstructured.Unstructured {
	for _, object := range facts.Objects[descheduler()] {
		if object.GetName() == deschedulerName && object.GetNamespace() == deschedulerNamespace {
			return object
		}
	}
	return nil
}

// profilesWith returns the chosen profile and the present profiles that are compatible with it. The
// list is replaced as a whole, and the KubeDescheduler refuses most combinations.
func profilesWith(chosen string, current *unstructured.Unstructured) (profiles []any, dropped int) {
	if current == nil {
		return []any{chosen}, 0
	}
	have, _, _ := unstructured.NestedStringSlice(current.Object, "spec", "profiles")
	for _, name := range have {
		switch name {
		case chosen:
		case "AffinityAndTaints", "SoftTopologyAndDuplicates":
			profiles = append(profiles, name)
		default:
			dropped++
		}
	}
	return append(profiles, chosen), dropped
}

// addCustomizations sets the customizations that the schema has.
func addCustomizations(spec map[string]any, version profile.Version, options v1alpha1.LoadAwareRebalancingOptions) {
	customizations := map[string]any{}
	for name, value := range map[string]any{
		"devEnableEvictionsInBackground": true,
		"devEnableSoftTainter":           true,
		"devDeviationThresholds":         string(cmp.Or(options.DeviationThresholds, v1alpha1.DeviationAsymmetricLow)),
	} {
		if version.Has("spec", "profileCustomizations", name) {
			customizations[name] = value
		}
	}
	if len(customizations) > 0 {
		spec["profileCustomizations"] = customizations
	}
}

// thresholds is a field of LowNodeUtilization that the operator refuses together with
// devDeviationThresholds.
const thresholds = "devLowNodeUtilizationThresholds"

// exclude empties a present field of the KubeDescheduler that its operator refuses together with
// the plan's fields. If the schema does not allow the empty value, a user must remove the field.
func exclude(spec map[string]any, version profile.Version, current *unstructured.Unstructured) ([]string, error) {
	customizations, _ := spec["profileCustomizations"].(map[string]any)
	if current == nil || customizations["devDeviationThresholds"] == nil {
		return nil, nil
	}
	// If the field is already empty, this plan may have emptied it. The plan then stays the same.
	value, set, _ := unstructured.NestedString(current.Object, "spec", "profileCustomizations", thresholds)
	if !set {
		return nil, nil
	}
	if !slices.Contains(version.Enum("spec", "profileCustomizations", thresholds), "") {
		return nil, &profile.MissingError{Message: fmt.Sprintf("KubeDescheduler %s/%s has spec.profileCustomizations.%s, which its operator refuses beside devDeviationThresholds: remove that field", deschedulerNamespace, deschedulerName, thresholds)}
	}
	customizations[thresholds] = ""
	if value == "" {
		return nil, nil
	}
	return []string{"empties spec.profileCustomizations." + thresholds + ", which the descheduler's operator refuses beside devDeviationThresholds"}, nil
}

// addLimits limits evictions to the capacity of live migration.
func addLimits(spec map[string]any, version profile.Version, facts profile.Facts, options v1alpha1.LoadAwareRebalancingOptions) []string {
	total, node, source := migrations(facts)
	limits, notes := map[string]any{}, []string{}
	if version.Has("spec", "evictionLimits", "total") {
		limits["total"] = int64(ptr.Deref(options.EvictionLimitTotal, scaled(total)))
	}
	if version.Has("spec", "evictionLimits", "node") {
		limits["node"] = int64(ptr.Deref(options.EvictionLimitNode, scaled(node)))
	} else if options.EvictionLimitNode != nil {
		notes = append(notes, "evictionLimitNode has no effect: this KubeDescheduler has no limit for a node")
	}
	if len(limits) == 0 {
		return notes
	}
	spec["evictionLimits"] = limits
	if options.EvictionLimitTotal == nil || options.EvictionLimitNode == nil && limits["node"] != nil {
		notes = append(notes, "eviction limits follow from the limits of live migrations in "+source)
	}
	return notes
}

// migrations returns the allowed numbers of live migrations. In v1 they are below
// spec.virtualization, in v1beta1 directly below spec.
func migrations(facts profile.Facts) (total, node int32, source string) {
	total, node, source = defaultMigrationsTotal, defaultMigrationsNode, "the defaults of HyperConverged, 5 in the cluster and 1 from a node"
	if objects := facts.Objects[hyperConverged()]; len(objects) > 0 {
		object := objects[0] // a cluster has only one
		config, found, _ := unstructured.NestedMap(object.Object, "spec", "virtualization", "liveMigrationConfig")
		if !found {
			config, _, _ = unstructured.NestedMap(object.Object, "spec", "liveMigrationConfig")
		}
		if value, ok := config["parallelMigrationsPerCluster"].(int64); ok && value > 0 {
			total, source = int32(min(value, 1000)), "HyperConverged "+object.GetName()
		}
		if value, ok := config["parallelOutboundMigrationsPerNode"].(int64); ok && value > 0 {
			node, source = int32(min(value, 100)), "HyperConverged "+object.GetName()
		}
	}
	return total, min(node, total), source
}

// scaled reserves a fifth of the migrations above ten for other purposes.
func scaled(migrations int32) int32 {
	if migrations < 10 {
		return migrations
	}
	return 10 + (migrations-10)*4/5
}
