package clusterextensionrevision

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// stampAcknowledgements records who acknowledges a finding of upgrade readiness, and when. For a
// new revision, stored has no annotations. An unchanged acknowledgement keeps its stamp. A stamp
// without an acknowledgement is removed.
func (s *strategy) stampAcknowledgements(ctx context.Context, revision, stored *olm.ClusterExtensionRevision) {
	stamps := map[string]string{}
	for key := range revision.Annotations {
		if strings.HasPrefix(key, v1alpha1.AcknowledgedByPrefix) {
			stamps[key] = ""
		}
	}
	for key := range revision.Annotations {
		id, acknowledges := strings.CutPrefix(key, v1alpha1.AcknowledgeFindingPrefix)
		if !acknowledges {
			continue
		}
		stamp := v1alpha1.AcknowledgedByPrefix + id
		if had, known := stored.Annotations[key]; known && had == revision.Annotations[key] {
			stamps[stamp] = stored.Annotations[stamp]
		} else if requester := requesterFrom(ctx); requester != nil {
			stamps[stamp] = s.clock.Now().UTC().Format(time.RFC3339) + " " + requester.Username
		}
	}
	for _, key := range slices.Sorted(maps.Keys(stamps)) {
		setAnnotation(revision, key, stamps[key])
	}
}

// IsAcknowledgement reports whether an annotation acknowledges a finding of its revision. It is not
// copied to a revision made from another revision.
func IsAcknowledgement(annotation string) bool {
	return strings.HasPrefix(annotation, v1alpha1.AcknowledgeFindingPrefix) || strings.HasPrefix(annotation, v1alpha1.AcknowledgedByPrefix)
}
