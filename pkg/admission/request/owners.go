package request

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NewOwners returns the owners that are not in before. It compares apiVersion, kind, name and uid,
// because garbage collection treats an owner whose name and uid do not match as deleted.
func NewOwners(owners, before []metav1.OwnerReference) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(owners), func(owner metav1.OwnerReference) bool {
		return slices.ContainsFunc(before, func(known metav1.OwnerReference) bool {
			return owner.APIVersion == known.APIVersion && owner.Kind == known.Kind && owner.Name == known.Name && owner.UID == known.UID
		})
	})
}
