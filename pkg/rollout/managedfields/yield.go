package managedfields

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// scaleSubresource is the subresource that autoscalers and `kubectl scale` write to.
const scaleSubresource = "scale"

// Yields maps fields that are left to other managers to these managers. Fields have the spelling of
// manifest.FieldPath.
type Yields map[string]string

// Yielding returns the fields of a manifest that are left to other managers. These are fields
// written through the scale subresource, fields of the policy, and a caBundle that a controller
// injects. Another manager must have the field, and manager must not.
func Yielding(wanted map[string]any, live []metav1.ManagedFieldsEntry, manager string, policy []manifest.FieldPath) Yields {
	found := Yields{}
	policy = append(slices.Clone(policy), injected(wanted)...)
	mine := ownSet(live, manager)
	for path, by := range fieldsOfOthers(live, manager) {
		if by.Manager == BeforeFirstApply || mine[path] {
			continue
		}
		field, err := manifest.ParseFieldPath(path)
		if err != nil || !sets(wanted, field) {
			continue
		}
		listed := slices.ContainsFunc(policy, func(pattern manifest.FieldPath) bool { return covers(pattern, field) })
		if by.Subresource == scaleSubresource || listed {
			found[path] = by.Manager
		}
	}
	return found
}

// StillYielded returns the yielded fields that other managers still have. Without an entry of our
// own, that is unknown, and it returns all of them.
func StillYielded(yielded []string, live []metav1.ManagedFieldsEntry, manager string) []string {
	if len(yielded) == 0 || ApplyOf(live, manager) == nil {
		return yielded
	}
	theirs := fieldsOfOthers(live, manager)
	return slices.DeleteFunc(slices.Clone(yielded), func(path string) bool {
		_, still := theirs[path]
		return !still
	})
}

// And returns the union of both, sorted.
func (y Yields) And(yielded []string) []string {
	all := slices.AppendSeq(slices.Clone(yielded), maps.Keys(y))
	slices.Sort(all)
	return slices.Compact(all)
}

// String lists the fields and their managers.
func (y Yields) String() string {
	var parts []string
	for _, path := range slices.Sorted(maps.Keys(y)) {
		parts = append(parts, fmt.Sprintf(".%s to %s", path, y[path]))
	}
	return strings.Join(parts, ", ")
}

// fieldsOfOthers returns the leaves that other managers have, with an entry of such a manager.
func fieldsOfOthers(live []metav1.ManagedFieldsEntry, manager string) map[string]metav1.ManagedFieldsEntry {
	found := map[string]metav1.ManagedFieldsEntry{}
	for _, entry := range live {
		if IsApplyOf(entry, manager) || entry.Subresource == "status" {
			continue
		}
		set, err := FieldSet(entry)
		if err != nil {
			continue
		}
		set.Leaves().Iterate(func(path fieldpath.Path) {
			if field, ok := fieldPathOf(path); ok {
				if have, twice := found[field.String()]; !twice || have.Subresource != scaleSubresource {
					found[field.String()] = entry
				}
			}
		})
	}
	return found
}

// ownSet returns the leaves that manager has.
func ownSet(live []metav1.ManagedFieldsEntry, manager string) map[string]bool {
	mine := map[string]bool{}
	entry := ApplyOf(live, manager)
	if entry == nil {
		return mine
	}
	set, err := FieldSet(*entry)
	if err != nil {
		return mine
	}
	set.Leaves().Iterate(func(path fieldpath.Path) {
		if field, ok := fieldPathOf(path); ok {
			mine[field.String()] = true
		}
	})
	return mine
}

// covers reports whether a field is at or below the pattern's field.
func covers(pattern, field manifest.FieldPath) bool {
	if len(pattern) > len(field) {
		return false
	}
	for i, step := range pattern {
		have := field[i]
		if step.Field != have.Field {
			return false
		}
		for _, key := range step.Keys {
			if !slices.Contains(have.Keys, key) {
				return false
			}
		}
	}
	return true
}

// Cut removes fields from a manifest.
func Cut(wanted map[string]any, fields []string) {
	for _, text := range fields {
		if field, err := manifest.ParseFieldPath(text); err == nil {
			visit(wanted, field, func(in map[string]any, name string) { delete(in, name) })
		}
	}
}
