// Package objectmeta checks metadata of our types, and sets the metadata of new objects.
// kube-apiserver does the same for its own types, but the API server library does not provide that
// code.
package objectmeta

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateFinalizers refuses finalizers that are not standard and have no domain, on new objects:
// no controller could know that it must remove them.
func ValidateFinalizers(finalizers []string, path *field.Path) field.ErrorList {
	standard := []string{string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}
	var errs field.ErrorList
	for i, name := range finalizers {
		if !strings.Contains(name, "/") && !slices.Contains(standard, name) {
			errs = append(errs, field.Invalid(path.Index(i), name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}
