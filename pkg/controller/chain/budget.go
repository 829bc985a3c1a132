package chain

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/revision/references"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// budget returns the deletion budget of the chain, with the acknowledgements of users.
func (s *scope) budget() *rollout.Budget {
	budget := &rollout.Budget{
		Explicit: map[int64]bool{}, Acknowledged: map[string]bool{},
		Listed: s.listed, Undone: s.undone(), Reviewed: s.reviewed(),
	}
	for i := range s.revisions {
		revision := &s.revisions[i]
		for _, token := range acknowledged(revision) {
			budget.Acknowledged[token] = true
		}
		// A revision that retention deletes should have no objects. If it still has some, no user
		// has asked for their deletion.
		budget.Explicit[revision.Spec.Revision] = !revision.DeletionTimestamp.IsZero() && !removed(revision)
	}
	return budget
}

// acknowledged returns the tokens in the annotation that acknowledges deletions. Status or a diff
// showed them to users.
func acknowledged(revision *olmv1alpha1.ClusterExtensionRevision) []string {
	var tokens []string
	for token := range strings.SplitSeq(revision.Annotations[olmv1alpha1.AcknowledgeDeletionAnnotation], ",") {
		if token = strings.TrimSpace(token); token != "" {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// listed returns the objects that a revision lists, and whether the revision exists.
func (s *scope) listed(number int64) ([]manifest.ID, bool) {
	for i := range s.revisions {
		if s.revisions[i].Spec.Revision == number {
			return rev.IDs(references.Of(&s.revisions[i])), true
		}
	}
	return nil, false
}

// undone returns a function that reports the objects which a failed upgrade added. Such an object
// belongs to a revision that never succeeded, above a revision that succeeded. No successful
// revision lists the object. Deleting an object of a successful revision is a loss, even after
// another revision took it over.
func (s *scope) undone() func(manifest.ID, int64) bool {
	var established map[manifest.ID]bool
	succeeded := map[int64]bool{}
	return func(id manifest.ID, number int64) bool {
		if established == nil {
			established = map[manifest.ID]bool{}
			for i := range s.revisions {
				if revision := &s.revisions[i]; meta.IsStatusConditionTrue(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded) {
					succeeded[revision.Spec.Revision] = true
					for _, known := range references.Of(revision) {
						established[known.ID] = true
					}
				}
			}
		}
		if succeeded[number] || established[id] {
			return false
		}
		for earlier := range succeeded {
			if earlier < number {
				return true
			}
		}
		return false
	}
}

// reviewed returns a function that reports objects whose deletion a user acknowledged. The
// acknowledgement is the digest of the newest layer's diff to an earlier revision. The user gives
// it when the layer is resumed. Objects of that layer or a later one are not covered. The function
// is called rarely, and reads the chain on the first call.
func (s *scope) reviewed() func(manifest.ID, int64) bool {
	var named map[manifest.ID]bool
	return func(id manifest.ID, revision int64) bool {
		newest := s.newestLayer()
		if newest == nil || revision >= newest.Spec.Revision {
			return false
		}
		if named == nil {
			named = s.namedBy(newest)
		}
		return named[id]
	}
}

func (s *scope) newestLayer() *olmv1alpha1.ClusterExtensionRevision {
	for i := range s.revisions {
		if rev.IsLayer(&s.revisions[i]) {
			return &s.revisions[i]
		}
	}
	return nil
}

// namedBy returns the objects whose deletion the acknowledgements of a revision cover.
func (s *scope) namedBy(newest *olmv1alpha1.ClusterExtensionRevision) map[manifest.ID]bool {
	named, answers := map[manifest.ID]bool{}, map[string]bool{}
	for _, answer := range acknowledged(newest) {
		answers[answer] = true
	}
	if len(answers) == 0 {
		return named
	}
	own := references.Of(newest)
	for i := range s.revisions {
		earlier := &s.revisions[i]
		if earlier.Spec.Revision >= newest.Spec.Revision {
			continue
		}
		removed := rev.Removed(references.Of(earlier), own)
		if !answers[rev.RemovedDigest(removed, newest.UID)] {
			continue
		}
		for _, id := range removed {
			named[id] = true
		}
	}
	return named
}
