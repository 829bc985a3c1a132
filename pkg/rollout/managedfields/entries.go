// Package managedfields reads the owners of fields from managedFields of a live object, and
// computes how managedFields must change. It is pure: it sends no request.
//
// It compares wanted, a manifest, with live, the object in the API server:
//
//   - TakeOver and Disown compute managedFields so that our next apply removes exactly the fields
//     that the previous manager had set.
//   - Contains and FindDrift find fields that differ, and the managers that changed them.
//   - Yielding, StillYielded and Cut return the fields that are left to another manager, such as an
//     autoscaler, and the manifest without them.
//   - WouldTake, TakenBetween and Overwritten return the fields that an apply takes from other
//     managers: before the server is asked, after it, and for an object without managedFields.
//
// A manager's own entry is the entry of its applies (ApplyOf). Paths have two spellings: that of
// manifest.FieldPath for yielded fields, as in policies, and that of package diff for taken fields.
package managedfields

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// BeforeFirstApply is the manager to which the API server assigns all fields of an object without
// managedFields at its first apply.
const BeforeFirstApply = "before-first-apply"

// IsApplyOf reports whether an entry is for manager's applies to the object itself, without a
// subresource.
func IsApplyOf(entry metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// Without returns managedFields without the entry of manager's applies.
func Without(live []metav1.ManagedFieldsEntry, manager string) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(live), func(e metav1.ManagedFieldsEntry) bool { return IsApplyOf(e, manager) })
}

// ApplyOf returns the entry of manager's applies, or nil.
func ApplyOf(live []metav1.ManagedFieldsEntry, manager string) *metav1.ManagedFieldsEntry {
	if i := slices.IndexFunc(live, func(e metav1.ManagedFieldsEntry) bool { return IsApplyOf(e, manager) }); i >= 0 {
		return &live[i]
	}
	return nil
}

// keyOf returns the key by which the server distinguishes managedFields entries.
func keyOf(entry metav1.ManagedFieldsEntry) string {
	return strings.Join([]string{entry.Manager, string(entry.Operation), entry.APIVersion, entry.Subresource}, "\x00")
}

// MovedEntries describes the entries of before that are missing or changed in after.
func MovedEntries(before, after []metav1.ManagedFieldsEntry) []string {
	var moved []string
	for _, entry := range before {
		if !slices.ContainsFunc(after, func(e metav1.ManagedFieldsEntry) bool { return keyOf(e) == keyOf(entry) }) {
			moved = append(moved, fmt.Sprintf("%s from %s", entry.Manager, entry.APIVersion))
		}
	}
	return moved
}

// LastWriter returns the last manager that wrote an object, except us and writers of status.
func LastWriter(live []metav1.ManagedFieldsEntry, us string) string {
	var last metav1.ManagedFieldsEntry
	for _, entry := range live {
		if entry.Subresource == "status" || entry.Manager == us || entry.Time == nil {
			continue
		}
		if last.Time == nil || last.Time.Before(entry.Time) {
			last = entry
		}
	}
	if last.Time == nil {
		return "managedFields do not say by whom"
	}
	return fmt.Sprintf("last written by %s at %s", last.Manager, last.Time.UTC().Format(time.RFC3339))
}

// FieldSet returns the fields that an entry lists; an empty set if it lists none.
func FieldSet(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return set, nil
	}
	return set, set.FromJSON(entry.FieldsV1.GetRawReader())
}
