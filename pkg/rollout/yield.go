package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// scaleSubresource is through which autoscalers and `kubectl scale` write.
const scaleSubresource = "scale"

// yields says for each field of a manifest that is left to somebody else who that
// is.
type yields map[string]string

// yielding finds, in managedFields, the fields of a manifest that are to be left to
// somebody else: those that were written through the scale subresource, and those
// that the policy lists, when another manager has them and we have not. The fields
// of the managers in taken are ours from now on.
func yielding(wanted map[string]any, live []metav1.ManagedFieldsEntry, manager string, policy []manifest.FieldPath, taken []string) yields {
	found := yields{}
	mine := ownSet(live, manager)
	for path, by := range othersFields(live, manager) {
		if by.Manager == firstApply || by.Subresource == "" && slices.Contains(taken, by.Manager) || mine[path] {
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

// stillYielded keeps of the fields that were yielded those that somebody else still
// has. Where our own entry is gone, nobody can tell, and all of them stay yielded.
func stillYielded(yielded []string, live []metav1.ManagedFieldsEntry, manager string) []string {
	if len(yielded) == 0 || ours(live, manager) == nil {
		return yielded
	}
	theirs := othersFields(live, manager)
	return slices.DeleteFunc(slices.Clone(yielded), func(path string) bool {
		_, held := theirs[path]
		return !held
	})
}

// and returns the fields in both, sorted.
func (y yields) and(yielded []string) []string {
	all := slices.AppendSeq(slices.Clone(yielded), maps.Keys(y))
	slices.Sort(all)
	return slices.Compact(all)
}

// String names who has what.
func (y yields) String() string {
	var parts []string
	for _, path := range slices.Sorted(maps.Keys(y)) {
		parts = append(parts, fmt.Sprintf(".%s to %s", path, y[path]))
	}
	return strings.Join(parts, ", ")
}

// othersFields are the leaves that managers other than ours have, with one of them.
func othersFields(live []metav1.ManagedFieldsEntry, manager string) map[string]metav1.ManagedFieldsEntry {
	found := map[string]metav1.ManagedFieldsEntry{}
	for _, entry := range live {
		if isOurs(entry, manager) || entry.Subresource == "status" {
			continue
		}
		set, err := fieldSet(entry)
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

// ownSet are the leaves that are ours.
func ownSet(live []metav1.ManagedFieldsEntry, manager string) map[string]bool {
	mine := map[string]bool{}
	entry := ours(live, manager)
	if entry == nil {
		return mine
	}
	set, err := fieldSet(*entry)
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

// fieldPathOf is a path of managedFields as people write it. Elements of sets have
// none: they are nobody's field to yield.
func fieldPathOf(path fieldpath.Path) (manifest.FieldPath, bool) {
	var out manifest.FieldPath
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			out = append(out, manifest.FieldStep{Field: *element.FieldName})
		case element.Key != nil:
			var step manifest.FieldStep
			for _, key := range *element.Key {
				step.Keys = append(step.Keys, manifest.FieldKey{Name: key.Name, Value: text(key.Value.Unstructured())})
			}
			out = append(out, step)
		default:
			return nil, false
		}
	}
	return out, len(out) > 0
}

// text is a scalar as people write it.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "" // not a scalar of JSON: no key has it
	}
	return string(raw)
}

// covers is true for a field at or below the one that a pattern names.
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

// sets is true when a manifest sets the field.
func sets(wanted any, field manifest.FieldPath) bool {
	found := false
	visit(wanted, field, func(map[string]any, string) { found = true })
	return found
}

// cut takes fields out of a manifest.
func cut(wanted map[string]any, fields []string) {
	for _, text := range fields {
		if field, err := manifest.ParseFieldPath(text); err == nil {
			visit(wanted, field, func(in map[string]any, name string) { delete(in, name) })
		}
	}
}

// visit calls a function with the map that has the field, if there is one.
func visit(here any, field manifest.FieldPath, do func(in map[string]any, name string)) {
	step, rest := field[0], field[1:]
	if step.Field != "" {
		fields, _ := here.(map[string]any)
		next, ok := fields[step.Field]
		switch {
		case !ok:
		case len(rest) == 0:
			do(fields, step.Field)
		default:
			visit(next, rest, do)
		}
		return
	}
	items, _ := here.([]any)
	for _, item := range items {
		fields, _ := item.(map[string]any)
		has := func(key manifest.FieldKey) bool {
			have, ok := fields[key.Name]
			return ok && text(have) == key.Value
		}
		if len(rest) > 0 && !slices.ContainsFunc(step.Keys, func(key manifest.FieldKey) bool { return !has(key) }) {
			visit(item, rest, do)
		}
	}
}

// bodyWithout is the manifest with our marks and without fields that are left to
// others. Create-only objects bear no marks: they are not ours.
func (p *pass) bodyWithout(ctx context.Context, step stage.Step, yielded []string) ([]byte, error) {
	ref := step.Ref
	if step.Policy.CreateOnly {
		body, err := p.Bodies.Body(ctx, ref)
		if err != nil {
			return nil, &bodyError{ref, err}
		}
		return body, nil
	}
	if len(yielded) == 0 {
		return p.body(ctx, ref)
	}
	_, wanted, err := p.decoded(ctx, ref)
	if err != nil {
		return nil, err
	}
	cut(wanted, yielded)
	body, err := json.Marshal(wanted)
	if err != nil {
		return nil, &bodyError{ref, err}
	}
	return body, nil
}

// yielded are the fields of an object that are left to others so far.
func (p *pass) yielded(id manifest.ID) []string { return p.inventory.Entries[id].Yielded }

// yieldedNow tells who was left which fields that had been ours before.
func (p *pass) yieldedNow(t task, left yields) []Event {
	for _, known := range p.yielded(t.step.ID) {
		delete(left, known)
	}
	if len(left) == 0 {
		return nil
	}
	return []Event{p.event(t, "Yielded", "left fields of %s: %s", t.step.ID, left)}
}
