package managedfields

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Takeover describes the change of field managers when an object is adopted. The fields of its
// previous managers become ours. Our next apply then removes those that our manifest omits.
type Takeover struct {
	// From are the previous managers, sorted; there is at least one.
	From []string
	// Fields are the new managedFields.
	Fields []metav1.ManagedFieldsEntry
}

// TakeOver finds the previous managers of an object in managedFields, and moves their fields to
// manager. If a previous entry has apiVersion, the new entry has it too. It returns nil if no
// manager counts as a previous manager of the object.
//
// A previous manager had at least half of the fields that our manifest sets and that any manager
// had, or it marked the object as tools do. A manager of fewer fields only added to the object,
// such as a user's label, a controller's annotation or an autoscaler's replicas. Fields of
// subresources, finalizers and ownerReferences are never taken, and status only if our manifest has
// it.
func TakeOver(wanted map[string]any, live []metav1.ManagedFieldsEntry, manager, apiVersion string) *Takeover {
	keepers := keepersOf(wanted, live, manager)
	if len(keepers) == 0 {
		return nil
	}
	ours := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1", APIVersion: live[keepers[0]].APIVersion,
	}
	set := &fieldpath.Set{}
	for i, entry := range live {
		if slices.Contains(keepers, i) && entry.APIVersion == apiVersion {
			ours.APIVersion = apiVersion
		}
	}
	plan := &Takeover{}
	for _, entry := range live {
		// Fields that an earlier attempt took over stay ours.
		if IsApplyOf(entry, manager) {
			ours.APIVersion, ours.Time = entry.APIVersion, entry.Time
			set, _ = FieldSet(entry)
		}
	}
	for i, entry := range live {
		switch {
		case IsApplyOf(entry, manager):
		case slices.Contains(keepers, i) && entry.APIVersion == ours.APIVersion:
			// Sets of different API versions cannot be joined.
			theirs, err := FieldSet(entry)
			if err != nil {
				return nil
			}
			set, ours.Time = set.Union(theirs.RecursiveDifference(neverTaken(wanted))), entry.Time
			plan.From = append(plan.From, entry.Manager)
		default:
			plan.Fields = append(plan.Fields, entry)
		}
	}
	raw, err := set.ToJSON()
	if err != nil || len(plan.From) == 0 {
		return nil
	}
	ours.FieldsV1 = metav1.NewFieldsV1(string(raw))
	plan.Fields = append(plan.Fields, ours)
	slices.Sort(plan.From)
	plan.From = slices.Compact(plan.From)
	return plan
}

// keepersOf returns the indexes of the entries of the previous managers.
func keepersOf(wanted map[string]any, live []metav1.ManagedFieldsEntry, manager string) []int {
	kept, all, signed := map[int]*fieldpath.Set{}, &fieldpath.Set{}, map[int]bool{}
	for i, entry := range live {
		// BeforeFirstApply is not a real manager: its fields come from all earlier writers, and
		// include a user's labels.
		if entry.Subresource != "" || entry.Manager == manager || entry.Manager == BeforeFirstApply {
			continue
		}
		set, err := FieldSet(entry)
		if err != nil {
			continue
		}
		kept[i], signed[i] = &fieldpath.Set{}, signs(set)
		set.Leaves().Iterate(func(path fieldpath.Path) {
			if _, wants := resolve(wanted, path); wants {
				kept[i].Insert(path.Copy())
			}
		})
		all = all.Union(kept[i])
	}
	var keepers []int
	for i := range live {
		if set, ok := kept[i]; ok && (signed[i] || set.Size() > 0 && 2*set.Size() >= all.Size()) {
			keepers = append(keepers, i)
		}
	}
	return keepers
}

// signs reports whether a field set contains the mark of a tool that manages the object.
func signs(set *fieldpath.Set) bool {
	for _, annotation := range []string{corev1.LastAppliedConfigAnnotation, "meta.helm.sh/release-name"} {
		if set.Has(fieldpath.MakePathOrDie("metadata", "annotations", annotation)) {
			return true
		}
	}
	return false
}

// neverTaken returns the fields that other writers rely on. Status is content only if the manifest
// has it.
func neverTaken(wanted map[string]any) *fieldpath.Set {
	never := fieldpath.NewSet(
		fieldpath.MakePathOrDie("metadata", "finalizers"),
		fieldpath.MakePathOrDie("metadata", "ownerReferences"),
	)
	if wanted["status"] == nil {
		never.Insert(fieldpath.MakePathOrDie("status"))
	}
	return never
}

// WritesStatus reports whether manager has the field status. Then its kind has no status
// subresource, because the API server would have ignored the field.
func WritesStatus(live []metav1.ManagedFieldsEntry, manager string) bool {
	name := "status"
	return slices.ContainsFunc(live, func(entry metav1.ManagedFieldsEntry) bool {
		set, err := FieldSet(entry)
		return entry.Manager == manager && entry.Subresource == "" && err == nil && has(set, fieldpath.PathElement{FieldName: &name})
	})
}

// Disown returns the managedFields that an object needs after an apply to empty managedFields. The
// API server then assigns every existing field, including ours, to BeforeFirstApply, and no apply
// would ever remove them. It returns nil for other objects.
func Disown(live []metav1.ManagedFieldsEntry, manager string) []metav1.ManagedFieldsEntry {
	first := slices.IndexFunc(live, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == BeforeFirstApply && e.Subresource == "" })
	mine := slices.IndexFunc(live, func(e metav1.ManagedFieldsEntry) bool { return IsApplyOf(e, manager) })
	if first < 0 || mine < 0 {
		return nil
	}
	theirs, err := FieldSet(live[first])
	if err != nil {
		return nil
	}
	ours, err := FieldSet(live[mine])
	if err != nil || theirs.Intersection(ours).Empty() {
		return nil
	}
	rest := theirs.Difference(ours)
	raw, err := rest.ToJSON()
	if err != nil {
		return nil
	}
	out := slices.Clone(live)
	out[first].FieldsV1 = metav1.NewFieldsV1(string(raw))
	if rest.Empty() {
		out = slices.Delete(out, first, first+1)
	}
	return out
}

// Whose returns the names of the previous managers.
func (t *Takeover) Whose() string {
	if len(t.From) == 1 {
		return t.From[0]
	}
	return fmt.Sprintf("%s and %d more", t.From[0], len(t.From)-1)
}
