package plan

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/manifest"
)

func poolID(name string) manifest.ID {
	return manifest.ID{Group: profile.MachineConfigPoolKind().Group, Kind: profile.MachineConfigPoolKind().Kind, Name: name}
}

func configID(name string) manifest.ID {
	return manifest.ID{Group: profile.MachineConfigKind().Group, Kind: profile.MachineConfigKind().Kind, Name: name}
}

func (c *cluster) pool(name string, nodes int64) {
	c.alter(poolID(name), "machine-config-operator", func(pool map[string]any) {
		pool["spec"] = map[string]any{"machineConfigSelector": map[string]any{
			"matchLabels": map[string]any{"machineconfiguration.openshift.io/role": "worker"}}}
	})
	c.roll(name, nodes)
}

// render sets the target configuration of a pool from its present MachineConfigs, and progress
// updates its nodes. In between, the pool still reports that it is updated, to its earlier
// configuration.
func (c *cluster) render(name string) {
	var sources, arguments []any
	facts, err := c.Facts()
	if err != nil {
		return
	}
	for _, config := range facts.Objects[profile.MachineConfigKind()] {
		if config.GetLabels()["machineconfiguration.openshift.io/role"] == "worker" {
			sources = append(sources, map[string]any{"name": config.GetName()})
			own, _, _ := unstructured.NestedSlice(config.Object, "spec", "kernelArguments")
			arguments = append(arguments, own...)
		}
	}
	rendered := fmt.Sprintf("rendered-%s-%d", name, len(arguments))
	c.alter(configID(rendered), "machine-config-operator", func(config map[string]any) {
		config["spec"] = map[string]any{"kernelArguments": arguments}
	})
	c.alter(poolID(name), "machine-config-operator", func(pool map[string]any) {
		spec := pool["spec"].(map[string]any)
		spec["configuration"] = map[string]any{"name": rendered, "source": sources}
	})
}

func (c *cluster) progress(name string, nodes, updated int64) {
	facts, err := c.Facts()
	if err != nil || c.missing[profile.MachineConfigPoolKind()] {
		return
	}
	for _, pool := range facts.Objects[profile.MachineConfigPoolKind()] {
		if pool.GetName() != name {
			continue
		}
		configuration, _, _ := unstructured.NestedMap(pool.Object, "spec", "configuration")
		have, _, _ := unstructured.NestedMap(pool.Object, "status", "configuration")
		truth := "False"
		if updated == nodes {
			truth, have = "True", configuration
		}
		c.alter(poolID(name), "machine-config-operator", func(object map[string]any) {
			object["status"] = map[string]any{
				"machineCount": nodes, "updatedMachineCount": updated, "readyMachineCount": updated, "observedGeneration": pool.GetGeneration(),
				"configuration": have, "conditions": []any{map[string]any{"type": "Updated", "status": truth}},
			}
		})
	}
}

func (c *cluster) roll(name string, nodes int64) {
	if c.value(poolID(name), "spec") == nil {
		return
	}
	c.render(name)
	c.progress(name, nodes, nodes)
}
