package plan

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// beforeFirstApply is who has the fields of an object of which managedFields say
// nothing, as kube-apiserver names them in a conflict.
const beforeFirstApply = "before-first-apply"

// unowned tells whether managedFields of a target are empty: somebody wiped them, or
// it is older than they are. Whose a field was cannot be read from them then.
func (v *visit) unowned(id manifest.ID) bool {
	live, presence := sight(v.Engine.Observer, id)
	return presence == observe.Present && len(live.GetManagedFields()) == 0
}

// fieldsOf are those of an object that a plan may take: metadata is everybody's.
func fieldsOf(object *manifest.Object) map[string]any {
	var fields map[string]any
	if err := json.Unmarshal(object.JSON, &fields); err != nil {
		return nil // it was made from JSON
	}
	delete(fields, "metadata")
	return fields
}

// overwritten are the paths of fields that had a value and get another one, in order.
// Lists are taken whole.
func overwritten(path string, before, after map[string]any) []string {
	var paths []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		here, was := path+"."+name, before[name]
		now, still := after[name]
		inner, isMap := was.(map[string]any)
		next, staysMap := now.(map[string]any)
		switch {
		case !still || reflect.DeepEqual(was, now):
		case isMap && staysMap:
			paths = append(paths, overwritten(here, inner, next)...)
		default:
			paths = append(paths, here)
		}
	}
	return paths
}
