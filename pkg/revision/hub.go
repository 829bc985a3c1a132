package revision

import (
	"fmt"

	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// FromHub returns revisions of the registry as clients see them. Their phases share memory with the
// given revisions; callers must not change them.
func FromHub(revisions ...hub.ClusterExtensionRevision) ([]v1alpha1.ClusterExtensionRevision, error) {
	out := make([]v1alpha1.ClusterExtensionRevision, len(revisions))
	for i := range revisions {
		if err := v1alpha1.Convert_olm_ClusterExtensionRevision_To_v1alpha1_ClusterExtensionRevision(&revisions[i], &out[i], nil); err != nil {
			return nil, fmt.Errorf("reading revision %s: %w", revisions[i].Name, err)
		}
	}
	return out, nil
}
