package plan

import (
	"encoding/json"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

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
