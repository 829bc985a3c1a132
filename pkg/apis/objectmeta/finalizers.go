// Package objectmeta has checks of metadata, and the metadata that the server sets on new objects,
// for all our types. They are those of kube-apiserver's own types; the API server library does not
// provide them.
package objectmeta

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateFinalizers refuses finalizers of nobody, for a new object: nobody would
// know who is to take them off.
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
