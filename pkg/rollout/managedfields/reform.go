package managedfields

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Reform returns the managedFields for an object that manager applied as written and now applies as
// applied (see manifest.Applied). manager gives up fields that are left to a controller, so that
// the next apply does not remove them. It gets its keys of stringData as keys of data, so that the
// next apply can remove them. The result is nil if nothing changes.
func Reform(live []metav1.ManagedFieldsEntry, manager string, written, applied map[string]any) []metav1.ManagedFieldsEntry {
	mine := slices.IndexFunc(live, func(e metav1.ManagedFieldsEntry) bool { return IsApplyOf(e, manager) })
	if mine < 0 {
		return nil
	}
	before, err := FieldSet(live[mine])
	if err != nil {
		return nil
	}
	after := &fieldpath.Set{}
	before.Leaves().Iterate(func(path fieldpath.Path) {
		_, was := resolve(written, path)
		_, is := resolve(applied, path)
		if !was || is {
			after.Insert(path.Copy())
			return
		}
		// The key of stringData is the same key of data.
		if folded := folding(path); folded != nil {
			if _, is := resolve(applied, folded); is {
				after.Insert(folded)
			}
		}
	})
	if after.Equals(before.Leaves()) {
		return nil
	}
	raw, err := after.ToJSON()
	if err != nil {
		return nil
	}
	out := slices.Clone(live)
	out[mine].FieldsV1 = metav1.NewFieldsV1(string(raw))
	return out
}

// folding returns the field of data for a field of stringData, and nil for other fields.
func folding(path fieldpath.Path) fieldpath.Path {
	if len(path) != 2 || path[0].FieldName == nil || *path[0].FieldName != "stringData" || path[1].FieldName == nil {
		return nil
	}
	return fieldpath.MakePathOrDie("data", *path[1].FieldName)
}
