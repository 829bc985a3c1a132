package clusterextensionrevision

import (
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// `kubectl describe` prints a kind it does not know in the order of the alphabet:
// metadata, then all of spec, then status. What a person needs first would come
// last, behind a screen of objects. The server therefore keeps one line of status
// in an annotation, which is printed at the top. It is written together with
// status, belongs to the server, and says nothing that status does not say.

// summarize brings the annotation up to date with status.
func summarize(revision *olm.ClusterExtensionRevision) {
	decisive := decisiveCondition(revision.Status.Conditions)
	line := decisive.Reason
	if decisive.Message != "" {
		line += ": " + decisive.Message
	}
	setAnnotation(revision, v1alpha1.SummaryAnnotation, line)
}
