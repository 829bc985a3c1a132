package targetclient

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// NewOwner is the field manager and owner that takes over an object.
type NewOwner struct {
	Manager   string
	Operation metav1.ManagedFieldsOperationType
	// Join merges entries of the new owner, because the server refuses two entries of the same
	// manager, operation and version. Nil keeps the entries.
	Join func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry
	// Owner is the new owner reference of the objects; nil sets none. HandOver does not change
	// owner references.
	Owner *metav1.OwnerReference
}

// passed returns managedFields in which the new owner has the fields of manager.
func (h NewOwner) passed(entries []metav1.ManagedFieldsEntry, manager string) []metav1.ManagedFieldsEntry {
	passed := slices.Clone(entries)
	for i := range passed {
		if passed[i].Manager == manager {
			passed[i].Manager, passed[i].Operation = h.Manager, h.Operation
		}
	}
	if h.Join != nil {
		passed = h.Join(passed)
	}
	return passed
}

// owners returns the owner references with the new owner.
func (h NewOwner) owners(before []metav1.OwnerReference) []metav1.OwnerReference {
	others := slices.DeleteFunc(slices.Clone(before), func(one metav1.OwnerReference) bool { return one.UID == h.Owner.UID })
	return append(others, *h.Owner)
}

// HandOver removes marks from an object, like Release, and gives the fields of the manifest to
// another manager. No value changes. It returns the same errors as Delete.
func (c *Client) HandOver(ctx context.Context, ref manifest.Ref, precondition Precondition, marks Marks, owner NewOwner) error {
	err := c.unmark(about(ctx, ref), ref, precondition, marks, func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return owner.passed(entries, marks.FieldManager)
	})
	if err != nil {
		return fmt.Errorf("handing over %s: %w", ref.ID, c.redacted(ctx, ref, nil, err))
	}
	return nil
}
