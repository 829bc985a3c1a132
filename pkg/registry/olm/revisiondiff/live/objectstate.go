package live

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
)

// objectView holds the findings about one object of a revision.
type objectView struct {
	// number is the number of the revision. layer is true if it is Active or Paused.
	number int64
	layer  bool
	// entry is the inventory entry of the object, or nil. Create-only objects have none.
	entry      *rollout.Entry
	createOnly bool
	// exists is true if the object is in the cluster. deleting is true if it is being deleted.
	// unread is the reason if this is unknown.
	exists, deleting bool
	unread           error
	uid              types.UID
	created          metav1.Time
	verdict          probe.Verdict
	// failing is the failure of the object in status, or nil.
	failing *olm.ObjectFailure
	// live is the object, if its cause may be searched.
	live *unstructured.Unstructured
}

// refused reports whether, according to status, the object could not be written.
func (s *objectView) refused() bool {
	return s.failing != nil && s.failing.Reason != rollout.ReasonProbe && s.failing.Reason != rollout.ReasonWaiting
}

// state returns the state of the object and its reason.
func (s *objectView) state() (state v1alpha1.ObjectState, reason, message string) {
	ours := s.entry != nil && s.entry.Revision == s.number
	switch {
	case !s.layer && ours:
		return v1alpha1.ObjectStateLeaving, "StillThere", "it still has the content of this revision"
	case !s.layer:
		return v1alpha1.ObjectStateGone, "", ""
	case s.entry != nil && s.entry.Revision > s.number:
		return v1alpha1.ObjectStateSuperseded, "Superseded", fmt.Sprintf("it has the content of revision %d", s.entry.Revision)
	case s.refused():
		return v1alpha1.ObjectStateFailing, s.failing.Reason, s.failing.Message
	case s.unread != nil:
		return v1alpha1.ObjectStateUnknown, "NotRead", "the cluster does not say how it is"
	case s.createOnly && !s.exists:
		return v1alpha1.ObjectStatePending, "", ""
	case !s.createOnly && !ours && s.entry != nil:
		return v1alpha1.ObjectStatePending, "", fmt.Sprintf("it has the content of revision %d", s.entry.Revision)
	case !s.createOnly && !ours:
		return v1alpha1.ObjectStatePending, "", ""
	case !s.exists && s.entry != nil && s.entry.Intent():
		return v1alpha1.ObjectStatePending, "", "it is about to be made"
	case !s.exists:
		return v1alpha1.ObjectStateUnready, "Missing", "it is not in the cluster any more"
	case s.deleting:
		return v1alpha1.ObjectStateUnready, rollout.ReasonTerminating, "it is being deleted"
	case s.verdict.Status != probe.True:
		return v1alpha1.ObjectStateUnready, rollout.ReasonProbe, s.verdict.Message
	}
	return v1alpha1.ObjectStateAvailable, "", ""
}
