package wait

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// kubeletConfig waits until the operator accepts a KubeletConfig (by its last condition), generates
// MachineConfigs from it, and rolls them out to every selected pool.
func kubeletConfig(target, live *unstructured.Unstructured, facts profile.Facts, at Times) Verdict {
	if live == nil {
		return Verdict{State: Waiting, Message: "waiting to see its state"}
	}
	observed, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
	kind, status, message := lastCondition(live)
	switch {
	case observed < live.GetGeneration() || kind == "":
		return Verdict{State: Waiting, Message: "waiting for the Machine Config Operator to look at the KubeletConfig"}
	case kind == "Failure" || status != "True":
		return Verdict{State: Failed, Message: "the Machine Config Operator refuses the KubeletConfig: " + message}
	}
	all := profile.PoolsOfKubeletConfig(facts, target)
	if len(all) == 0 {
		return Verdict{State: Done, Message: "it selects no MachineConfigPool: nothing changes on any node"}
	}
	made := generatedFrom(live.GetName(), facts)
	return worst(all, func(pool *unstructured.Unstructured) Verdict {
		if verdict := unrendered(pool, at); verdict.State != Done {
			return verdict
		}
		rendered := profile.Rendered(facts, pool, "spec")
		if !slices.ContainsFunc(made, func(config *unstructured.Unstructured) bool {
			return rendered != nil && sourceOf(config, pool) && profile.NodeConfigOf(rendered).Has(profile.NodeConfigOf(config))
		}) {
			for _, config := range made {
				if overrides := profile.Overrides(facts, pool, config); len(overrides) > 0 && sourceOf(config, pool) {
					return overridden(pool, "KubeletConfig "+live.GetName(), overrides)
				}
			}
			return Verdict{State: Waiting, Message: fmt.Sprintf("Waiting for KubeletConfig %s to be rendered into MachineConfigPool %q", live.GetName(), pool.GetName())}
		}
		return rolled(pool, facts, at)
	})
}

// kubeletConfigGone waits until the MachineConfigs generated from a KubeletConfig are deleted, and
// every selected pool is without them.
func kubeletConfigGone(target *unstructured.Unstructured, facts profile.Facts, at Times) Verdict {
	if made := generatedFrom(target.GetName(), facts); len(made) > 0 {
		return Verdict{State: Waiting, Message: fmt.Sprintf("waiting for MachineConfig %s, which was made from it, to be deleted", made[0].GetName())}
	}
	all := profile.PoolsOfKubeletConfig(facts, target)
	if len(all) == 0 {
		return Verdict{State: Done, Message: "deleted"}
	}
	return worst(all, func(pool *unstructured.Unstructured) Verdict {
		sources, _, _ := unstructured.NestedSlice(pool.Object, "spec", "configuration", "source")
		for _, item := range sources {
			source, _ := item.(map[string]any)
			name, _ := source["name"].(string)
			known := slices.ContainsFunc(facts.Objects[profile.MachineConfigKind()], func(config *unstructured.Unstructured) bool { return config.GetName() == name })
			if strings.Contains(name, "-generated-kubelet") && !known {
				return Verdict{State: Waiting, Message: fmt.Sprintf("Waiting for MachineConfigPool %q to be rendered without %s", pool.GetName(), name)}
			}
		}
		return rolled(pool, facts, at)
	})
}

// generatedFrom returns the MachineConfigs that the operator generated from a KubeletConfig.
func generatedFrom(name string, facts profile.Facts) []*unstructured.Unstructured {
	var made []*unstructured.Unstructured
	for _, config := range facts.Objects[profile.MachineConfigKind()] {
		for _, owner := range config.GetOwnerReferences() {
			if owner.Kind == profile.KubeletConfigKind().Kind && owner.Name == name {
				made = append(made, config)
			}
		}
	}
	return made
}

// lastCondition returns the last condition of a KubeletConfig, whose conditions are a log.
func lastCondition(object *unstructured.Unstructured) (kind, status, message string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	if len(conditions) == 0 {
		return "", "", ""
	}
	last, _ := conditions[len(conditions)-1].(map[string]any)
	kind, _ = last["type"].(string)
	status, _ = last["status"].(string)
	message, _ = last["message"].(string)
	return kind, status, message
}
