package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/helmrelease"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// validateHelmRelease refuses a new value that names no revision of a Helm release: Penstock could
// not detect then that Helm has a newer revision. old is empty for a new revision.
func validateHelmRelease(updated, old *olm.ClusterExtensionRevision) field.ErrorList {
	value, set := updated.Annotations[v1alpha1.HelmReleaseAnnotation]
	if !set || value == old.Annotations[v1alpha1.HelmReleaseAnnotation] {
		return nil
	}
	if _, err := helmrelease.Parse(value); err != nil {
		path := field.NewPath("metadata", "annotations").Key(v1alpha1.HelmReleaseAnnotation)
		return field.ErrorList{field.Invalid(path, value, "want <namespace>/<release>:<revision of Helm>, such as shop/web:7")}
	}
	return nil
}
