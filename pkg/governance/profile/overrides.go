package profile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Override is a part of a MachineConfig that wins over another MachineConfig.
type Override struct {
	// By is the name of the winning MachineConfig.
	By string
	// What names the part: a kernel argument, a file or a unit, such as "kernel argument psi".
	What string
}

// OverrideList has one override for each overridden part.
type OverrideList []Override

func (l OverrideList) has(what string) bool {
	return slices.ContainsFunc(l, func(o Override) bool { return o.What == what })
}

// String returns the names of the winning MachineConfigs.
func (l OverrideList) String() string {
	var words []string
	for _, one := range l {
		words = append(words, fmt.Sprintf("MachineConfig %s sets %s to something else", one.By, one.What))
	}
	return strings.Join(words, ", ")
}

// Overrides returns the MachineConfigs of a pool that the Machine Config Operator merges after
// wanted, and that set the same parts to other values. The operator merges in the order of names,
// and the last value wins.
func Overrides(facts Facts, pool, wanted *unstructured.Unstructured) OverrideList {
	winners := map[string]string{}
	arguments, needs := wantedArguments(wanted), NodeConfigOf(wanted)
	others := slices.Clone(facts.Objects[MachineConfigKind()])
	slices.SortFunc(others, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	for _, other := range others {
		if other.GetName() <= wanted.GetName() || merged(other, pool) == nil || isRendered(other, pool) {
			continue
		}
		for key, value := range wantedArguments(other) {
			if want, asked := arguments[key]; asked {
				note(winners, "kernel argument "+key, other.GetName(), want != value)
			}
		}
		has := NodeConfigOf(other)
		for path, digest := range has.Files {
			if want, asked := needs.Files[path]; asked {
				note(winners, "file "+path, other.GetName(), want != digest)
			}
		}
		for name, digest := range has.Units {
			if want, asked := needs.Units[name]; asked {
				note(winners, "unit "+name, other.GetName(), want != digest)
			}
		}
	}
	var list OverrideList
	for _, what := range slices.Sorted(maps.Keys(winners)) {
		list = append(list, Override{By: winners[what], What: what})
	}
	return list
}

// isRendered reports whether a MachineConfig is the rendered result of a pool, and not a source.
func isRendered(config, pool *unstructured.Unstructured) bool {
	for _, field := range []string{"spec", "status"} {
		if name, _, _ := unstructured.NestedString(pool.Object, field, "configuration", "name"); name == config.GetName() {
			return true
		}
	}
	return false
}

// note records the last MachineConfig that sets a part to another value. A later MachineConfig with
// the wanted value removes the record.
func note(winners map[string]string, what, name string, differs bool) {
	if differs {
		winners[what] = name
		return
	}
	delete(winners, what)
}

// overrideNotes returns notes that name the MachineConfigs that win over a wanted MachineConfig.
func overrideNotes(facts Facts, wanted *unstructured.Unstructured) []string {
	if wanted == nil {
		return nil
	}
	var notes []string
	for _, pool := range PoolsOf(facts, wanted.GetLabels()) {
		if list := Overrides(facts, pool, wanted); len(list) > 0 {
			notes = append(notes, fmt.Sprintf("pool %s: %s, is merged later and wins: the item fails until that is removed", pool.GetName(), list))
		}
	}
	return notes
}
