package revisiondiff

import (
	"fmt"
	"slices"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	rev "github.com/penstock-project/penstock/pkg/revision"
)

// reasonDeletionAsks is the reason of the note about deletions that need an acknowledgement.
const reasonDeletionAsks = "DeletionAsks"

// nameRemoved adds the digest of the objects that a paused revision removes from an earlier
// revision, and a note if the rollout needs an acknowledgement. A user who does not see all objects
// cannot acknowledge. The digest belongs to one stored revision, so a proposal that is not stored
// has none.
func (s *scope) nameRemoved(out *v1alpha1.RevisionDiff, from, to *olm.ClusterExtensionRevision) {
	if to.Spec.LifecycleState != olm.LifecycleStatePaused || from == nil || from.Spec.Revision >= to.Spec.Revision || chainOf(from) != chainOf(to) {
		return
	}
	before, after := clusterextensionrevision.Refs(from), clusterextensionrevision.Refs(to)
	removed := rev.Removed(before, after)
	for _, id := range removed {
		if !s.shows(id) {
			return
		}
	}
	how := "the deletion can be acknowledged when the revision is stored"
	if to.UID != "" {
		out.Summary.RemovedDigest = rev.RemovedDigest(removed, to.UID)
		how = fmt.Sprintf("set the annotation %s=%s when you set lifecycleState to Active", v1alpha1.AcknowledgeDeletionAnnotation, out.Summary.RemovedDigest)
	}
	if !rev.AsksForRemoved(before, after) {
		return
	}
	at := slices.IndexFunc(out.Notes, func(note v1alpha1.DiffNote) bool { return note.Severity != v1alpha1.NoteCritical })
	if at < 0 {
		at = len(out.Notes)
	}
	out.Notes = slices.Insert(out.Notes, at, v1alpha1.DiffNote{
		Severity: v1alpha1.NoteWarning, Reason: reasonDeletionAsks,
		Message: fmt.Sprintf("when %s has succeeded, these objects are deleted only if their deletion is acknowledged, then or now: %s", to.Name, how),
	})
}

func chainOf(revision *olm.ClusterExtensionRevision) string {
	chain, _, _ := olm.ChainOf(revision.Name)
	return chain
}
