package profile

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// ContainerRuntimeConfigKind returns the kind of ContainerRuntimeConfigs. The Machine Config
// Operator generates MachineConfigs from them, as from KubeletConfigs.
func ContainerRuntimeConfigKind() schema.GroupKind {
	return schema.GroupKind{Group: machineConfigGroup, Kind: "ContainerRuntimeConfig"}
}

// Weigh returns an item with the impact of its change on nodes. The Machine Config Operator merges
// all MachineConfigs of a pool, and reboots the nodes of the pool if the result differs. A single
// value that is already in effect proves nothing, because the operator compares whole lists.
//
// before and after are the present and the future target; nil means that it does not exist. Weigh can
// raise the impact of the profile and never lowers it. It ignores kinds that do not change the
// configuration of nodes.
func Weigh(item Item, facts Facts, before, after *unstructured.Unstructured) Item {
	kind := firstOf(after, before).GroupVersionKind().GroupKind()
	var change string
	var pools []*unstructured.Unstructured
	switch kind {
	case MachineConfigKind():
		change, pools = weighMachineConfig(facts, before, after)
		item.Notes = append(slices.Clone(item.Notes), droppedArguments(before, after)...)
		item.Notes = append(item.Notes, overrideNotes(facts, after)...)
	case KubeletConfigKind(), ContainerRuntimeConfigKind():
		if !reflect.DeepEqual(specOf(before), specOf(after)) {
			change = "the configuration of kubelets changes"
			if kind == ContainerRuntimeConfigKind() {
				change = "the configuration of container runtimes changes"
			}
			pools = poolsWhere(facts, func(pool *unstructured.Unstructured) bool {
				return selectedBy(before, pool) || selectedBy(after, pool)
			})
		}
	case MachineConfigPoolKind():
		change, pools = weighPool(before, after)
	default:
		return item
	}
	if change == "" {
		return item
	}
	impact, reason, blast := RebootImpact(pools, change)
	if worse(impact, item.Impact) {
		if item.Reason != "" {
			reason += "; " + item.Reason
		}
		item.Impact, item.Reason = impact, reason
	}
	if item.Blast == nil || blast.Nodes > item.Blast.Nodes || blast.Reboot && !item.Blast.Reboot {
		item.Blast = blast
	}
	return item
}

func worse(one, other v1alpha1.ImpactSeverity) bool {
	order := []v1alpha1.ImpactSeverity{"", v1alpha1.ImpactNone, v1alpha1.ImpactLow, v1alpha1.ImpactMedium, v1alpha1.ImpactHigh}
	return slices.Index(order, one) > slices.Index(order, other)
}

// weighMachineConfig describes the changes of the configuration of pools, and returns these pools:
// pools that lose, get or keep the MachineConfig with other content, and pools whose nodes do not
// have its content yet.
func weighMachineConfig(facts Facts, before, after *unstructured.Unstructured) (change string, pools []*unstructured.Unstructured) {
	changes := map[string]bool{}
	pools = poolsWhere(facts, func(pool *unstructured.Unstructured) bool {
		was, is := merged(before, pool), merged(after, pool)
		found := contributionChanges(was, is)
		if len(found) == 0 && is != nil && !boots(facts, pool, is) {
			found = []string{"what nodes boot with"}
		}
		for _, one := range found {
			changes[one] = true
		}
		return len(found) > 0
	})
	if len(changes) == 0 && len(contributionChanges(before, after)) > 0 {
		return "the configuration of nodes changes", nil // in no present pool
	}
	if len(changes) == 0 {
		return "", nil
	}
	words := slices.Sorted(maps.Keys(changes))
	if len(words) == 1 && words[0] == "what nodes boot with" {
		return "nodes do not have this configuration yet", pools
	}
	return strings.Join(words, ", ") + " change", pools
}

// merged returns the MachineConfig if a pool includes it, or nil.
func merged(config, pool *unstructured.Unstructured) *unstructured.Unstructured {
	if config == nil || !selects(pool, config.GetLabels(), "spec", "machineConfigSelector") {
		return nil
	}
	return config
}

// boots reports whether the nodes of a pool have the content of a MachineConfig. Overridden files
// and units count as present.
func boots(facts Facts, pool, config *unstructured.Unstructured) bool {
	rendered := Rendered(facts, pool, "status")
	have, wanted := argumentsOf(rendered), argumentsOf(config)
	if slices.ContainsFunc(wanted, func(argument string) bool { return !slices.Contains(have, argument) }) {
		return false
	}
	overridden := Overrides(facts, pool, config)
	nodes, needs := NodeConfigOf(rendered), NodeConfigOf(config)
	for path, digest := range needs.Files {
		if nodes.Files[path] != digest && !overridden.has("file "+path) {
			return false
		}
	}
	for name, digest := range needs.Units {
		if nodes.Units[name] != digest && !overridden.has("unit "+name) {
			return false
		}
	}
	return true
}

// contributionChanges describes the changes of a rendered configuration by a change of a
// MachineConfig.
func contributionChanges(before, after *unstructured.Unstructured) []string {
	var changes []string
	if !slices.Equal(argumentsOf(before), argumentsOf(after)) {
		changes = append(changes, "kernel arguments")
	}
	was, is := NodeConfigOf(before), NodeConfigOf(after)
	if !maps.Equal(was.Files, is.Files) || !maps.Equal(was.Units, is.Units) || !reflect.DeepEqual(otherConfig(before), otherConfig(after)) {
		changes = append(changes, "files and units of nodes")
	}
	other := func(config *unstructured.Unstructured) map[string]any {
		spec := maps.Clone(specOf(config))
		delete(spec, "kernelArguments")
		delete(spec, "config")
		return withoutEmpty(spec)
	}
	if !reflect.DeepEqual(other(before), other(after)) {
		changes = append(changes, "the operating system or its kernel")
	}
	return changes
}

// otherConfig returns the parts of an Ignition configuration besides files, units and the version,
// which has no effect. These parts of a summarized configuration are unknown.
func otherConfig(config *unstructured.Unstructured) map[string]any {
	found, _, _ := unstructured.NestedMap(specOf(config), "config")
	if _, summarized := found[summaryField]; summarized {
		return map[string]any{}
	}
	unstructured.RemoveNestedField(found, "ignition", "version")
	unstructured.RemoveNestedField(found, "storage", "files")
	unstructured.RemoveNestedField(found, "systemd", "units")
	return withoutEmpty(found)
}

// withoutEmpty removes empty values. nil is an empty map.
func withoutEmpty(from map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range from {
		if fields, isMap := value.(map[string]any); isMap {
			if fields = withoutEmpty(fields); len(fields) > 0 {
				out[key] = fields
			}
			continue
		}
		if list, isList := value.([]any); value == nil || value == "" || value == false || isList && len(list) == 0 {
			continue
		}
		out[key] = value
	}
	return out
}

// weighPool describes a change of a MachineConfigPool that may reboot its nodes: another set of
// MachineConfigs or nodes, or the end of a pause.
func weighPool(before, after *unstructured.Unstructured) (change string, pools []*unstructured.Unstructured) {
	if before == nil || after == nil {
		return "the MachineConfigPool of nodes changes", []*unstructured.Unstructured{firstOf(before, after)}
	}
	was, is := specOf(before), specOf(after)
	for _, key := range []string{"machineConfigSelector", "nodeSelector", "configuration", "osImageStream"} {
		if !reflect.DeepEqual(was[key], is[key]) {
			return "spec." + key + " of the pool changes", []*unstructured.Unstructured{before}
		}
	}
	if was["paused"] == true && is["paused"] != true {
		return "the pool is no longer paused", []*unstructured.Unstructured{before}
	}
	return "", nil
}

// droppedArguments returns a note about kernel arguments that a MachineConfig loses. It does not
// quote them. The diff shows them to users who can read the MachineConfig.
func droppedArguments(before, after *unstructured.Unstructured) []string {
	if before == nil || after == nil {
		return nil
	}
	is, count := argumentsOf(after), 0
	for _, argument := range argumentsOf(before) {
		if !slices.Contains(is, argument) {
			count++
		}
	}
	if count == 0 {
		return nil
	}
	return []string{fmt.Sprintf("removes %d of the kernel arguments that MachineConfig %s has now; the subresource diff shows them", count, before.GetName())}
}

// specOf returns the spec of an object, nil for nil.
func specOf(object *unstructured.Unstructured) map[string]any {
	if object == nil {
		return nil
	}
	spec, _ := object.Object["spec"].(map[string]any)
	return spec
}

func firstOf(objects ...*unstructured.Unstructured) *unstructured.Unstructured {
	for _, object := range objects {
		if object != nil {
			return object
		}
	}
	return &unstructured.Unstructured{Object: map[string]any{}}
}
