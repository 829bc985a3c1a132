package applycheck

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/text"
)

const (
	coreType      = "io.k8s.api.core.v1."
	envVar        = coreType + "EnvVar"
	containerPort = coreType + "ContainerPort"
)

// repeatable reports list items that kube-apiserver accepts twice when it creates an object. Equal
// items then have the meaning of one item.
func repeatable(element string) bool {
	switch element {
	case envVar, containerPort, coreType + "LocalObjectReference", coreType + "ObjectReference", coreType + "HostAlias":
		return true
	}
	return false
}

// Mend is a repair that keeps the meaning of an object and makes it acceptable for server-side
// apply.
type Mend struct {
	// Path is the path of the removed item, by its index before the removal.
	Path Path
	// Kept is the index of the kept item in its list, before the removal.
	Kept int
	// Problem describes the duplicate and its repair, without values.
	Problem string
}

// repeats are the items of a list that share a key.
type repeats struct {
	list    Path
	element string
	indexes []int
}

// Mend removes duplicate items whose meaning is the same for every server, and returns the
// removals:
//
//   - Equal items: the first one stays.
//   - Environment variables with the same name: the last one stays, as in the kubelet. Both stay
//     when a variable between them reads the earlier value, or when the last one is optional.
//   - Container ports with the same number and different names: the first one stays, and only if
//     asHelm is true, because Helm has accepted the object already.
func (t *Type) Mend(object map[string]any, asHelm bool) []Mend {
	groups := map[string]*repeats{}
	var order []string
	t.walk(object, func(list Path, element string, first, index int) {
		if !repeatable(element) {
			return
		}
		id := fmt.Sprint(list, first)
		if groups[id] == nil {
			groups[id] = &repeats{list: slices.Clone(list), element: element, indexes: []int{first}}
			order = append(order, id)
		}
		groups[id].indexes = append(groups[id].indexes, index)
	})
	var mends []Mend
	dropped := map[string]map[int]bool{}
	lists := map[string]Path{}
	for _, id := range order {
		group := groups[id]
		items, _ := at(object, group.list).([]any)
		kept, problem := group.keep(items, asHelm)
		if problem == "" {
			continue
		}
		name := fmt.Sprint(group.list)
		if dropped[name] == nil {
			dropped[name], lists[name] = map[int]bool{}, group.list
		}
		for _, index := range group.indexes {
			if index == kept {
				continue
			}
			dropped[name][index] = true
			mends = append(mends, Mend{Path: append(slices.Clone(group.list), Step{Index: index}), Kept: kept, Problem: problem})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dropped)) {
		items, _ := at(object, lists[name]).([]any)
		set(object, lists[name], without(items, dropped[name]))
	}
	return mends
}

// keep returns the index of the kept item and a description of the repair. The description is empty
// if removing an item could change the meaning.
func (g *repeats) keep(items []any, asHelm bool) (kept int, problem string) {
	first, last := g.indexes[0], g.indexes[len(g.indexes)-1]
	equal := true
	for _, index := range g.indexes[1:] {
		equal = equal && reflect.DeepEqual(normal(g.element, items[first]), normal(g.element, items[index]))
	}
	if equal {
		return first, fmt.Sprintf("repeats item %d (counted from 0) and is left out", first)
	}
	if g.element == containerPort && asHelm {
		return first, fmt.Sprintf("is the port of item %d (counted from 0) with another name and is left out: a Service or a probe that refers to this name finds no port", first)
	}
	if g.element != envVar {
		return 0, ""
	}
	variable, _ := items[last].(map[string]any)
	name, _ := variable["name"].(string)
	if name == "" || mayBeAbsent(variable) || readBetween(items[first+1:last+1], name) {
		return 0, ""
	}
	return last, fmt.Sprintf("%q is set again in item %d (counted from 0), and the last value counts: this one is left out",
		text.Clip(name, maxNameBytes), last)
}

// normal returns an item with the default value of its key.
func normal(element string, item any) any {
	port, ok := item.(map[string]any)
	if element != containerPort || !ok || port["protocol"] != nil {
		return item
	}
	port = maps.Clone(port)
	port["protocol"] = "TCP"
	return port
}

// mayBeAbsent reports whether the kubelet skips a variable if its source is absent. Then an earlier
// variable of the same name counts.
func mayBeAbsent(variable map[string]any) bool {
	from, _ := variable["valueFrom"].(map[string]any)
	for _, source := range from {
		if source, ok := source.(map[string]any); ok && source["optional"] == true {
			return true
		}
	}
	return false
}

// readBetween reports whether one of the variables refers to another by $(name), which the kubelet
// replaces by the value at that position.
func readBetween(variables []any, name string) bool {
	for _, one := range variables {
		variable, _ := one.(map[string]any)
		value, _ := variable["value"].(string)
		if strings.Contains(value, "$("+name+")") {
			return true
		}
	}
	return false
}

func at(value any, path Path) any {
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[step.Field]
		case []any:
			if step.Index >= len(v) {
				return nil
			}
			value = v[step.Index]
		default:
			return nil
		}
	}
	return value
}

func set(root any, path Path, value any) {
	switch parent := at(root, path[:len(path)-1]).(type) {
	case map[string]any:
		parent[path[len(path)-1].Field] = value
	case []any:
		parent[path[len(path)-1].Index] = value
	}
}

func without(items []any, dropped map[int]bool) []any {
	var kept []any
	for i, item := range items {
		if !dropped[i] {
			kept = append(kept, item)
		}
	}
	return kept
}
