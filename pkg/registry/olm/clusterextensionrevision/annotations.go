package clusterextensionrevision

import (
	"maps"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// ServerAnnotations belong to the server: clients read them and cannot set them.
func ServerAnnotations() []string {
	return []string{v1alpha1.SummaryAnnotation, v1alpha1.RollbackOfAnnotation, v1alpha1.RequestedByAnnotation, v1alpha1.DeletedByAnnotation}
}

func serverAnnotationPaths() []fieldpath.Path {
	var paths []fieldpath.Path
	for _, key := range ServerAnnotations() {
		paths = append(paths, fieldpath.MakePathOrDie("metadata", "annotations", key))
	}
	return paths
}

// keepServerAnnotations undoes what a write of the main resource did to them;
// for a new revision stored has none.
func keepServerAnnotations(revision, stored *olm.ClusterExtensionRevision) {
	for _, key := range ServerAnnotations() {
		setAnnotation(revision, key, stored.Annotations[key])
	}
}

// setAnnotation sets an annotation, or removes it when the value is empty. It
// copies the annotations before it changes them: they may be shared with the
// stored revision.
func setAnnotation(revision *olm.ClusterExtensionRevision, key, value string) {
	if revision.Annotations[key] == value {
		return
	}
	annotations := maps.Clone(revision.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	if value == "" {
		delete(annotations, key)
	}
	revision.Annotations = annotations
}
