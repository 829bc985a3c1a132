package profile

import (
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

// Kinds of the Machine Config Operator.
const machineConfigGroup = "machineconfiguration.openshift.io"

// MachineConfigKind is the kind of MachineConfigs.
func MachineConfigKind() schema.GroupKind {
	return schema.GroupKind{Group: machineConfigGroup, Kind: "MachineConfig"}
}

// MachineConfigPoolKind is the kind of pools.
func MachineConfigPoolKind() schema.GroupKind {
	return schema.GroupKind{Group: machineConfigGroup, Kind: "MachineConfigPool"}
}

// PoolsOf returns the pools that take a MachineConfig in: custom ones select those
// of workers, too.
func PoolsOf(facts Facts, machineConfig map[string]string) []*unstructured.Unstructured {
	var pools []*unstructured.Unstructured
	for _, pool := range facts.Objects[MachineConfigPoolKind()] {
		raw, found, _ := unstructured.NestedMap(pool.Object, "spec", "machineConfigSelector")
		if !found {
			continue
		}
		var selector metav1.LabelSelector
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
			continue
		}
		if parsed, err := metav1.LabelSelectorAsSelector(&selector); err == nil && parsed.Matches(labels.Set(machineConfig)) {
			pools = append(pools, pool)
		}
	}
	return pools
}

// Rendered returns the configuration that a pool's nodes have, or are to have.
func Rendered(facts Facts, pool *unstructured.Unstructured, field string) *unstructured.Unstructured {
	name, _, _ := unstructured.NestedString(pool.Object, field, "configuration", "name")
	for _, config := range facts.Objects[MachineConfigKind()] {
		if config.GetName() == name && name != "" {
			return config
		}
	}
	return nil
}

// BlastOf sums pools up.
func BlastOf(pools []*unstructured.Unstructured, reboot bool) *v1alpha1.BlastRadius {
	blast := &v1alpha1.BlastRadius{}
	for _, pool := range pools {
		nodes := Count(pool, "machineCount")
		blast.Pools = append(blast.Pools, pool.GetName())
		blast.Nodes += nodes
		// Pools roll side by side.
		blast.Waves = max(blast.Waves, waves(nodes, maxUnavailable(pool, nodes)))
	}
	slices.Sort(blast.Pools)
	blast.Reboot = reboot && blast.Nodes > 0
	return blast
}

// Count reads a number of a pool's status.
func Count(pool *unstructured.Unstructured, field string) int64 {
	count, _, _ := unstructured.NestedInt64(pool.Object, "status", field)
	return count
}

func waves(nodes, atOnce int64) int64 { return (nodes + atOnce - 1) / atOnce }

// maxUnavailable is how many nodes of a pool are updated at once: a number or a
// share, rounded down, at least 1.
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
