package managedfields

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// zeroScale is shown as the manager that scaled to zero, because the server records no manager.
const zeroScale = "the manager that scaled it to zero"

// YieldingTo is Yielding for a complete object: it also finds fields that were scaled to zero.
//
// kube-apiserver records no manager for them. A Scale omits a zero (spec.replicas of autoscaling/v1
// has omitempty). So a write to the scale subresource removes the field from every entry, and adds
// it to none.
func YieldingTo(wanted, live map[string]any, entries []metav1.ManagedFieldsEntry, manager string, policy []manifest.FieldPath) Yields {
	found := Yielding(wanted, entries, manager, policy)
	for _, path := range lostToNobody(wanted, entries, manager) {
		visit(live, path, func(in map[string]any, name string) {
			if n, isNumber := number(in[name]); isNumber && n == 0 {
				found[path.String()] = zeroScale
			}
		})
	}
	return found
}

// MayBeScaledToZero reports whether only the object's values can show that a field was scaled to
// zero.
func MayBeScaledToZero(wanted map[string]any, entries []metav1.ManagedFieldsEntry, manager string) bool {
	return len(lostToNobody(wanted, entries, manager)) > 0
}

// lostToNobody returns the non-zero numbers in a manifest's spec that no manager has, although our
// own entry exists. Any other way to take a field gives it a new manager. Numbers in lists are
// ignored, because a Scale has none.
func lostToNobody(wanted map[string]any, entries []metav1.ManagedFieldsEntry, manager string) []manifest.FieldPath {
	if ApplyOf(entries, manager) == nil {
		return nil
	}
	owned := map[string]bool{}
	for path := range fieldsOfOthers(entries, manager) {
		owned[path] = true
	}
	maps.Copy(owned, ownSet(entries, manager))
	var found []manifest.FieldPath
	var walk func(value any, at manifest.FieldPath)
	walk = func(value any, at manifest.FieldPath) {
		if owned[at.String()] {
			return // including all fields below it
		}
		if fields, isMap := value.(map[string]any); isMap {
			for name, below := range fields {
				walk(below, append(at[:len(at):len(at)], manifest.FieldStep{Field: name}))
			}
		} else if n, isNumber := number(value); isNumber && n != 0 {
			found = append(found, at)
		}
	}
	walk(wanted["spec"], manifest.FieldPath{{Field: "spec"}})
	return found
}

func number(value any) (float64, bool) {
	switch n := value.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}
