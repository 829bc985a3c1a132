package upgradereadiness

import (
	"slices"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/readiness"
)

// TestRolesOf: a paused proposal is pending. A declined proposal is a candidate for a rollback.
func TestRolesOf(t *testing.T) {
	revision := func(state olm.LifecycleState, proposed string) *olm.ClusterExtensionRevision {
		one := &olm.ClusterExtensionRevision{}
		one.Spec.LifecycleState = state
		one.Annotations = map[string]string{v1alpha1.ProposedAnnotation: proposed}
		return one
	}
	active := revision(olm.LifecycleStateActive, "")
	for reason, tc := range map[string]struct {
		proposal *olm.ClusterExtensionRevision
		want     readiness.Role
	}{
		"it waits":       {revision(olm.LifecycleStatePaused, "true"), readiness.Proposed},
		"it is declined": {revision(olm.LifecycleStateArchived, "true"), readiness.Earlier},
	} {
		if got := rolesOf([]*olm.ClusterExtensionRevision{tc.proposal, active}); !slices.Equal(got, []readiness.Role{tc.want, readiness.RolledOut}) {
			t.Errorf("%s: %v", reason, got)
		}
	}
}
