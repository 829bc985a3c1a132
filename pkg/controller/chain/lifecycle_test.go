package chain

import (
	"testing"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestDeletion: events and the deletion budget distinguish deletions by users from deletions by
// retention.
func TestDeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		by, reason, message string
		explicit            bool
		change              func(*olmv1alpha1.ClusterExtensionRevision)
	}{
		"User":      {"alice", "Deleted", "deleted by alice; no object in the cluster belongs to it any more", true, nil},
		"Unknown":   {"", "Deleted", "deleted; no object in the cluster belongs to it any more", true, nil},
		"Retention": {olmv1alpha1.DeletedByRetention, "Removed", "removed by retention: of the archived revisions the newest 5 are kept", false, nil},
		"Withdrawn": {olmv1alpha1.DeletedByRetention, "Removed", "withdrawn: nobody has approved this proposal, and its owner no longer asks for it", false, func(r *olmv1alpha1.ClusterExtensionRevision) {
			r.Annotations[olmv1alpha1.ProposedAnnotation], r.Spec.LifecycleState = "true", olmv1alpha1.LifecycleStatePaused
		}},
		"Declined": {olmv1alpha1.DeletedByRetention, "Removed", "removed by retention: of the archived revisions the newest 5 are kept", false, func(r *olmv1alpha1.ClusterExtensionRevision) {
			r.Annotations[olmv1alpha1.ProposedAnnotation], r.Spec.LifecycleState = "true", olmv1alpha1.LifecycleStateArchived
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := numbered(1, deleted)
			r.Annotations = map[string]string{olmv1alpha1.DeletedByAnnotation: tc.by}
			if tc.change != nil {
				tc.change(r)
			}
			if reason, message := deletion(r); reason != tc.reason || message != tc.message {
				t.Errorf("got %s: %s", reason, message)
			}
			v := &scope{revisions: []olmv1alpha1.ClusterExtensionRevision{*r}}
			if got := v.budget().Explicit[1]; got != tc.explicit {
				t.Errorf("its objects are wanted gone: %t", got)
			}
		})
	}
}
