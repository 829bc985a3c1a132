package clusterextensionrevision

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/warning"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// A file of a revision is applied again and again, for as long as it is in Git, by tools
// that take the file for the truth. Two of its states are not the file's alone:
//
//   - Archived: Penstock archives a revision when a newer one has succeeded, and that is
//     final. A file that says Active asks for nothing any more that somebody could want:
//     it changes nothing, and the answer says so. Of a revision that nothing came after
//     that would be a lie, and stays an error. Nobody manages the field of an archived
//     revision, so that an apply without force does not conflict with who archived it.
//   - Paused: somebody resumes it by hand, and the file pauses it again. That is what the
//     file says, and the user who applies it is told.

// keepArchived keeps a revision archived that a newer one came after, whatever state the
// update asks for. An update that asks for nothing else changes nothing at all.
func (s *strategy) keepArchived(ctx context.Context, revision, stored *olm.ClusterExtensionRevision, held *staged) {
	if stored.Spec.LifecycleState != olm.LifecycleStateArchived || revision.Spec.LifecycleState == olm.LifecycleStateArchived {
		return
	}
	newer, err := s.newer(ctx, stored)
	if err != nil {
		held.fail(fmt.Errorf("reading the revisions that came after %s: %w", stored.Name, err))
	}
	if err != nil || newer == "" {
		return
	}
	asked := revision.Spec.LifecycleState
	revision.Spec.LifecycleState = olm.LifecycleStateArchived
	warning.AddWarning(ctx, "", fmt.Sprintf("spec.lifecycleState: %s stays Archived and does not become %s, because %s came after it; leave the field out of the file",
		stored.Name, asked, newer))
	if sameBut(revision, stored) {
		revision.ManagedFields = stored.ManagedFields
	}
}

// newer returns the name of the oldest revision after one, "" when there is none.
func (s *strategy) newer(ctx context.Context, revision *olm.ClusterExtensionRevision) (string, error) {
	chain, _, _ := olm.ChainOf(revision.Name)
	revisions, err := s.chain(ctx, chain)
	if err != nil {
		return "", err
	}
	name, number := "", int64(0)
	for i := range revisions {
		other := &revisions[i]
		if other.Spec.Revision > revision.Spec.Revision && other.DeletionTimestamp == nil && (name == "" || other.Spec.Revision < number) {
			name, number = other.Name, other.Spec.Revision
		}
	}
	return name, nil
}

// sameBut is true for revisions that differ in nothing but who manages which fields.
func sameBut(updated, stored *olm.ClusterExtensionRevision) bool {
	a, b := *updated, *stored
	a.ManagedFields, b.ManagedFields = nil, nil
	a.ResourceVersion, b.ResourceVersion = "", ""
	return apiequality.Semantic.DeepEqual(&a, &b)
}

// pausedAgain warns the user who applies a file that says Paused, when somebody else had
// resumed the revision.
func pausedAgain(revision, stored *olm.ClusterExtensionRevision) []string {
	if stored.Spec.LifecycleState != olm.LifecycleStateActive || revision.Spec.LifecycleState != olm.LifecycleStatePaused {
		return nil
	}
	now, was := lifecycleManager(revision), lifecycleManager(stored)
	if was == nil || now != nil && now.Manager == was.Manager && now.Operation == was.Operation {
		return nil
	}
	byFile := now != nil && now.Operation == metav1.ManagedFieldsOperationApply || saidPaused(revision) && saidPaused(stored)
	if !byFile {
		return nil
	}
	return []string{fmt.Sprintf("spec.lifecycleState: %s is paused again, although %s had resumed it: the applied file says Paused; to resume it, remove the field from the file",
		revision.Name, was.Manager)}
}

// disown takes the state of an archived revision from the user who manages it: it never
// changes again.
func disown(revision *olm.ClusterExtensionRevision) {
	if revision.Spec.LifecycleState != olm.LifecycleStateArchived {
		return
	}
	state := fieldpath.NewSet(lifecyclePath())
	revision.ManagedFields = slices.Clone(revision.ManagedFields) // those of the stored revision, perhaps
	for i := range revision.ManagedFields {
		entry := &revision.ManagedFields[i]
		fields := fieldsOf(entry)
		if fields == nil || !fields.Has(lifecyclePath()) {
			continue
		}
		if left, err := fields.Difference(state).ToJSON(); err == nil {
			entry.FieldsV1 = metav1.NewFieldsV1(string(left))
		}
	}
}

func lifecyclePath() fieldpath.Path { return fieldpath.MakePathOrDie("spec", "lifecycleState") }

// fieldsOf are the fields of the resource itself that a manager has, nil for none.
func fieldsOf(entry *metav1.ManagedFieldsEntry) *fieldpath.Set {
	var fields fieldpath.Set
	if entry.Subresource != "" || entry.FieldsV1 == nil || fields.FromJSON(strings.NewReader(entry.FieldsV1.GetRawString())) != nil {
		return nil
	}
	return &fields
}

// lifecycleManager is the entry of who set lifecycleState, nil for nobody.
func lifecycleManager(revision *olm.ClusterExtensionRevision) *metav1.ManagedFieldsEntry {
	for i := range revision.ManagedFields {
		entry := &revision.ManagedFields[i]
		if fields := fieldsOf(entry); fields != nil && fields.Has(lifecyclePath()) {
			return entry
		}
	}
	return nil
}

// saidPaused is true when the file that kubectl applied last says Paused.
func saidPaused(revision *olm.ClusterExtensionRevision) bool {
	var file struct {
		Spec struct {
			LifecycleState olm.LifecycleState `json:"lifecycleState"`
		} `json:"spec"`
	}
	applied := revision.Annotations[corev1.LastAppliedConfigAnnotation]
	return applied != "" && json.Unmarshal([]byte(applied), &file) == nil && file.Spec.LifecycleState == olm.LifecycleStatePaused
}
