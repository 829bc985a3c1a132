package extension

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/extension"
)

// TestReportDrift: the installed revision gets the end time of drift reporting, and loses it with
// the annotation. Meanwhile an upgrade becomes a proposal.
func TestReportDrift(t *testing.T) {
	p := automatic(t)
	until := p.clock.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)
	// await holds the lock of the plane.
	reported := func() string { return p.revisions["lamp-1"].Annotations[extension.ReportDriftUntilAnnotation] }
	report := func() {
		t.Helper()
		p.later()
		p.set(extension.ReportDriftUntilAnnotation, until)
		p.await("drift is reported", func() bool { return reported() == until })
	}
	report()
	p.later()
	p.apply(func(object *unstructured.Unstructured) {
		unstructured.RemoveNestedField(object.Object, "metadata", "annotations", extension.ReportDriftUntilAnnotation)
	})
	p.await("drift is repaired", func() bool { return reported() == "" })
	report()
	p.publish("1.0.0", "1.1.0")
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock")
}
