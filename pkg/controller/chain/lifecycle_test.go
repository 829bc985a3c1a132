package chain

import (
	"testing"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestDeletion: events and the deletion budget tell what a user deleted from what retention
// removes.
func TestDeletion(t *testing.T) {
	for name, tc := range map[string]struct {
		by, reason, message string
		explicit            bool
	}{
		"User":      {"alice", "Deleted", "deleted by alice; no object in the cluster belongs to it any more", true},
		"Unknown":   {"", "Deleted", "deleted; no object in the cluster belongs to it any more", true},
		"Retention": {olmv1alpha1.DeletedByRetention, "Removed", "removed by retention: of the archived revisions the newest 5 are kept", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := numbered(1, deleted)
			r.Annotations = map[string]string{olmv1alpha1.DeletedByAnnotation: tc.by}
			if reason, message := deletion(r); reason != tc.reason || message != tc.message {
				t.Errorf("got %s: %s", reason, message)
			}
			v := &visit{revisions: []olmv1alpha1.ClusterExtensionRevision{*r}}
			if got := v.budget().Explicit[1]; got != tc.explicit {
				t.Errorf("its objects are wanted gone: %t", got)
			}
		})
	}
}
