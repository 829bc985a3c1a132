package profile

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// machineConfigGroup is the group of the kinds of the Machine Config Operator.
const machineConfigGroup = "machineconfiguration.openshift.io"

// MachineConfigKind returns the kind of MachineConfigs.
func MachineConfigKind() schema.GroupKind {
	return schema.GroupKind{Group: machineConfigGroup, Kind: "MachineConfig"}
}

// MachineConfigPoolKind returns the kind of pools.
func MachineConfigPoolKind() schema.GroupKind {
	return schema.GroupKind{Group: machineConfigGroup, Kind: "MachineConfigPool"}
}

// KubeletConfigKind returns the kind of KubeletConfigs.
func KubeletConfigKind() schema.GroupKind {
	return schema.GroupKind{Group: machineConfigGroup, Kind: "KubeletConfig"}
}

// PoolsOf returns the pools that include a MachineConfig with the given labels. Custom pools also
// include MachineConfigs of workers.
func PoolsOf(facts Facts, machineConfig map[string]string) []*unstructured.Unstructured {
	return poolsWhere(facts, func(pool *unstructured.Unstructured) bool {
		return selects(pool, machineConfig, "spec", "machineConfigSelector")
	})
}

// PoolsOfKubeletConfig returns the pools that a KubeletConfig selects by their labels. An empty
// selector selects no pool.
func PoolsOfKubeletConfig(facts Facts, config *unstructured.Unstructured) []*unstructured.Unstructured {
	return poolsWhere(facts, func(pool *unstructured.Unstructured) bool { return selectedBy(config, pool) })
}

// poolsWhere returns the pools for which holds is true.
func poolsWhere(facts Facts, holds func(*unstructured.Unstructured) bool) []*unstructured.Unstructured {
	var pools []*unstructured.Unstructured
	for _, pool := range facts.Objects[MachineConfigPoolKind()] {
		if holds(pool) {
			pools = append(pools, pool)
		}
	}
	return pools
}

// selectedBy reports whether a KubeletConfig or ContainerRuntimeConfig selects a pool.
func selectedBy(config, pool *unstructured.Unstructured) bool {
	selector, _, _ := unstructured.NestedMap(specOf(config), "machineConfigPoolSelector")
	return len(selector) > 0 && selects(config, pool.GetLabels(), "spec", "machineConfigPoolSelector")
}

// selects reports whether a selector of an object matches labels.
func selects(object *unstructured.Unstructured, by map[string]string, path ...string) bool {
	raw, found, _ := unstructured.NestedMap(object.Object, path...)
	if !found {
		return false
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return false
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	return err == nil && parsed.Matches(labels.Set(by))
}

// RebootImpact returns the impact of a change that reboots the nodes of pools. change describes the
// change. A pool without a number of nodes counts as large.
func RebootImpact(pools []*unstructured.Unstructured, change string) (v1alpha1.ImpactSeverity, string, *v1alpha1.BlastRadius) {
	blast := BlastOf(pools, true)
	var unknown []string
	for _, pool := range pools {
		if !Counted(pool) {
			unknown = append(unknown, pool.GetName())
		}
	}
	switch {
	case len(pools) == 0:
		return v1alpha1.ImpactLow, "no MachineConfigPool selects it", blast
	case len(unknown) > 0:
		return v1alpha1.ImpactHigh, fmt.Sprintf("%s: the number of nodes that reboot is not known, because MachineConfigPool %s does not report its number of nodes", change, strings.Join(unknown, ", ")), blast
	case blast.Nodes == 0:
		return v1alpha1.ImpactLow, "the pools have no nodes", blast
	default:
		return v1alpha1.ImpactHigh, fmt.Sprintf("%s: %d nodes reboot, pool by pool, in %d waves", change, blast.Nodes, blast.Waves), blast
	}
}

// PausedNotes returns notes that name the paused pools.
func PausedNotes(pools []*unstructured.Unstructured) []string {
	var notes []string
	for _, pool := range pools {
		if paused, _, _ := unstructured.NestedBool(pool.Object, "spec", "paused"); paused {
			notes = append(notes, fmt.Sprintf("pool %s is paused: the plan waits until it is unpaused", pool.GetName()))
		}
	}
	return notes
}

// Rendered returns the configuration of a pool's nodes: the target if field is "spec", and the
// current if it is "status".
func Rendered(facts Facts, pool *unstructured.Unstructured, field string) *unstructured.Unstructured {
	name, _, _ := unstructured.NestedString(pool.Object, field, "configuration", "name")
	for _, config := range facts.Objects[MachineConfigKind()] {
		if config.GetName() == name && name != "" {
			return config
		}
	}
	return nil
}

// BlastOf returns the blast radius of pools.
func BlastOf(pools []*unstructured.Unstructured, reboot bool) *v1alpha1.BlastRadius {
	blast, unknown := &v1alpha1.BlastRadius{}, false
	for _, pool := range pools {
		unknown = unknown || !Counted(pool)
		nodes := Count(pool, "machineCount")
		blast.Pools = append(blast.Pools, pool.GetName())
		blast.Nodes += nodes
		// Pools update at the same time.
		blast.Waves = max(blast.Waves, waves(nodes, maxUnavailable(pool, nodes)))
	}
	slices.Sort(blast.Pools)
	blast.Reboot = reboot && (blast.Nodes > 0 || unknown)
	return blast
}

// Counted reports whether a pool has a number of nodes. The Machine Config Operator sets it in its
// first reconcile.
func Counted(pool *unstructured.Unstructured) bool {
	_, found, err := unstructured.NestedInt64(pool.Object, "status", "machineCount")
	return found && err == nil
}

// Count reads a number of a pool's status.
func Count(pool *unstructured.Unstructured, field string) int64 {
	count, _, _ := unstructured.NestedInt64(pool.Object, "status", field)
	return count
}

func waves(nodes, atOnce int64) int64 { return (nodes + atOnce - 1) / atOnce }

// maxUnavailable returns the number of a pool's nodes that are updated at the same time, at least
// 1. A percentage of the pool is rounded down.
func maxUnavailable(pool *unstructured.Unstructured, nodes int64) int64 {
	if pool.GetName() == "arbiter" {
		return 1
	}
	value, _, _ := unstructured.NestedFieldNoCopy(pool.Object, "spec", "maxUnavailable")
	switch v := value.(type) {
	case int64:
		return max(1, v)
	case string:
		share, percent := strings.CutSuffix(v, "%")
		number, err := strconv.ParseInt(share, 10, 64)
		switch {
		case err != nil:
			return 1
		case percent:
			return max(1, int64(math.Floor(float64(nodes)*float64(number)/100)))
		default:
			return max(1, number)
		}
	default:
		return 1
	}
}
