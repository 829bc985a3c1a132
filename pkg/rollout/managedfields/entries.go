// Package managedfields reads from managedFields of a live object who has which of its
// fields, and says what they have to become. It is pure: it sends no request.
//
// With wanted, a manifest, and live, what the API server has, it answers:
//
//   - TakeOver and Disown: what managedFields have to become so that an apply of ours
//     removes what the manager that kept the object before had set, and nothing else.
//   - Contains and FindDrift: whether the object has all that is wanted, and if not, who
//     changed what.
//   - Yielding, StillYielded and Cut: which fields are left to somebody else, such as an
//     autoscaler, and the manifest without them.
//   - WouldTake, TakenBetween and Overwritten: whose fields an apply takes, before and
//     after the server was asked, and of an object of which managedFields say nothing.
//
// The entry that counts as a manager's own is the one of its applies (ApplyOf). Paths are
// spelled in one of two ways: manifest.FieldPath for fields that are yielded, because
// policies name them so, and as package diff does for fields that are taken.
package managedfields

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// BeforeFirstApply is the manager that the API server names for all fields of an object
// that has no managedFields when it is applied for the first time.
const BeforeFirstApply = "before-first-apply"

// IsApplyOf is true for the entry of what manager applied to the object itself.
func IsApplyOf(entry metav1.ManagedFieldsEntry, manager string) bool {
	return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// Without leaves that entry of manager out.
func Without(live []metav1.ManagedFieldsEntry, manager string) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(slices.Clone(live), func(e metav1.ManagedFieldsEntry) bool { return IsApplyOf(e, manager) })
}

// ApplyOf is that entry of manager, or nil.
func ApplyOf(live []metav1.ManagedFieldsEntry, manager string) *metav1.ManagedFieldsEntry {
	if i := slices.IndexFunc(live, func(e metav1.ManagedFieldsEntry) bool { return IsApplyOf(e, manager) }); i >= 0 {
		return &live[i]
	}
	return nil
}

// keyOf tells the entries of managedFields apart, as the server does.
func keyOf(entry metav1.ManagedFieldsEntry) string {
	return strings.Join([]string{entry.Manager, string(entry.Operation), entry.APIVersion, entry.Subresource}, "\x00")
}

// MovedEntries names the entries of before that are not there any more as they were.
func MovedEntries(before, after []metav1.ManagedFieldsEntry) []string {
	var moved []string
	for _, entry := range before {
		if !slices.ContainsFunc(after, func(e metav1.ManagedFieldsEntry) bool { return keyOf(e) == keyOf(entry) }) {
			moved = append(moved, fmt.Sprintf("%s from %s", entry.Manager, entry.APIVersion))
		}
	}
	return moved
}

// LastWriter says who wrote an object last, but for us and for writers of status.
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

// FieldSet is what an entry lists; nothing where it lists nothing.
func FieldSet(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	if entry.FieldsV1 == nil {
		return set, nil
	}
	return set, set.FromJSON(entry.FieldsV1.GetRawReader())
}
