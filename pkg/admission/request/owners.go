package request

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NewOwners returns the owners that were not there before. Garbage collection takes
// one whose name and uid do not belong together for one that is gone: all of what
// tells owners apart counts.
func NewOwners(owners, before []metav1.OwnerReference) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(owners), func(owner metav1.OwnerReference) bool {
		return slices.ContainsFunc(before, func(known metav1.OwnerReference) bool {
			return owner.APIVersion == known.APIVersion && owner.Kind == known.Kind && owner.Name == known.Name && owner.UID == known.UID
		})
	})
}
