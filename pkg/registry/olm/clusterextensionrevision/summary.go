package clusterextensionrevision

import (
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// `kubectl describe` prints a kind it does not know in the order of the alphabet:
// metadata, then all of spec, then status. What a person needs first would come
// last, behind a screen of objects. The server therefore keeps one line of status
// in an annotation, which is printed at the top. It is written together with
// status, belongs to the server, and says nothing that status does not say.

// summaryPath is where the line is; no client can set it.
func summaryPath() fieldpath.Path {
	return fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.SummaryAnnotation)
}

// summarize brings the annotation up to date with status.
func summarize(revision *olm.ClusterExtensionRevision) {
	decisive := decisiveCondition(revision.Status.Conditions)
	line := decisive.Reason
	if decisive.Message != "" {
		line += ": " + decisive.Message
	}
	setSummary(revision, line)
}

// keepSummary undoes what a write of the main resource did to the annotation.
func keepSummary(revision, stored *olm.ClusterExtensionRevision) {
	setSummary(revision, stored.Annotations[v1alpha1.SummaryAnnotation])
}

// setSummary copies the annotations before it changes them: they may be shared
// with the stored revision.
func setSummary(revision *olm.ClusterExtensionRevision, line string) {
	if revision.Annotations[v1alpha1.SummaryAnnotation] == line {
		return
	}
	annotations := make(map[string]string, len(revision.Annotations)+1)
	for key, value := range revision.Annotations {
		annotations[key] = value
	}
	annotations[v1alpha1.SummaryAnnotation] = line
	if line == "" {
		delete(annotations, v1alpha1.SummaryAnnotation)
	}
	revision.Annotations = annotations
}
