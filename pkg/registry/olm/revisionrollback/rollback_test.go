package revisionrollback

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestRollbackAcknowledgesNothing: the restored revision does not get the acknowledgements of the
// earlier one.
func TestRollbackAcknowledgesNothing(t *testing.T) {
	target := &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "e-1", Annotations: map[string]string{
		"mine": "yes", v1alpha1.AllowCRDDeletionAnnotation: "x.y", v1alpha1.TakeOverFromAnnotation: "other", v1alpha1.AcknowledgeDeletionAnnotation: "2-0123456789", v1alpha1.ReleaseHoldAnnotation: "e-3",
	}}}
	newest := &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "e-2", Annotations: target.Annotations}}
	back := rollback{chain: "e", target: target, newest: newest, number: 3}.revision("it is slow")
	for _, key := range []string{v1alpha1.AllowCRDDeletionAnnotation, v1alpha1.TakeOverFromAnnotation, v1alpha1.AcknowledgeDeletionAnnotation, v1alpha1.ReleaseHoldAnnotation} {
		if value, found := back.Annotations[key]; found {
			t.Errorf("%s is %q", key, value)
		}
	}
	if back.Annotations["mine"] != "yes" {
		t.Errorf("annotations of users are gone: %v", back.Annotations)
	}
}
