package targetclient

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Heir is the manager that gets the fields of a chain.
type Heir struct {
	Manager   string
	Operation metav1.ManagedFieldsOperationType
	// Join makes one entry of those that the heir has then: the server takes no two of the
	// same manager, operation and version. Nil leaves them as they are.
	Join func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry
	// Owner is to own the objects from then on; nil is nobody. HandOver leaves owners as they
	// are.
	Owner *metav1.OwnerReference
}

// passed gives the fields of a manager to the heir.
func (h Heir) passed(entries []metav1.ManagedFieldsEntry, manager string) []metav1.ManagedFieldsEntry {
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

// owners are those that an object has with the heir's.
func (h Heir) owners(before []metav1.OwnerReference) []metav1.OwnerReference {
	others := slices.DeleteFunc(slices.Clone(before), func(one metav1.OwnerReference) bool { return one.UID == h.Owner.UID })
	return append(others, *h.Owner)
}

// HandOver removes marks from an object, as Release does, and gives the fields that the
// manifest had to another manager. No value changes. Errors are those of Delete.
func (c *Client) HandOver(ctx context.Context, ref manifest.Ref, precondition Precondition, marks Marks, heir Heir) error {
	err := c.unmark(about(ctx, ref), ref, precondition, marks, func(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
		return heir.passed(entries, marks.FieldManager)
	})
	if err != nil {
		return fmt.Errorf("handing over %s: %w", ref.ID, c.redacted(ctx, ref, nil, err))
	}
	return nil
}
