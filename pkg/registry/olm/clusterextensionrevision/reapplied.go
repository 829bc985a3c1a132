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

// A GitOps tool applies the file of a revision again and again, as long as it is in Git. Penstock
// and users also change two of its states:
//
//   - Archived: Penstock archives a revision when a newer revision has succeeded. This is final. A
//     file with Active then changes nothing, and the answer has a warning. Without a newer
//     revision, Active stays an error. No field manager owns the field of an archived revision, so
//     that an apply without force does not conflict with the manager that archived it.
//   - Paused: a user resumes the revision by hand, and the file pauses it again. The user who
//     applies the file gets a warning.

// keepArchived keeps an archived revision archived if a newer revision exists, even if the update
// sets another state. An update without other changes then changes nothing.
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

// newer returns the name of the next newer revision, or "" if there is none.
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

// sameBut reports whether revisions differ only in managedFields.
func sameBut(updated, stored *olm.ClusterExtensionRevision) bool {
	a, b := *updated, *stored
	a.ManagedFields, b.ManagedFields = nil, nil
	a.ResourceVersion, b.ResourceVersion = "", ""
	return apiequality.Semantic.DeepEqual(&a, &b)
}

// pausedAgain warns a user whose applied file pauses a revision that another manager had resumed.
func pausedAgain(revision, stored *olm.ClusterExtensionRevision) []string {
	if stored.Spec.LifecycleState != olm.LifecycleStateActive || revision.Spec.LifecycleState != olm.LifecycleStatePaused {
		return nil
	}
	now, was := lifecycleManager(revision), lifecycleManager(stored)
	if was == nil || now != nil && now.Manager == was.Manager && now.Operation == was.Operation {
		return nil
	}
	byFile := now != nil && now.Operation == metav1.ManagedFieldsOperationApply || appliedPaused(revision) && appliedPaused(stored)
	if !byFile {
		return nil
	}
	return []string{fmt.Sprintf("spec.lifecycleState: %s is paused again, although %s had resumed it: the applied file says Paused; to resume it, remove the field from the file",
		revision.Name, was.Manager)}
}

// disown removes the state of an archived revision from managedFields. The state never changes
// again.
func disown(revision *olm.ClusterExtensionRevision) {
	if revision.Spec.LifecycleState != olm.LifecycleStateArchived {
		return
	}
	state := fieldpath.NewSet(lifecyclePath())
	revision.ManagedFields = slices.Clone(revision.ManagedFields) // the stored revision may share them
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

// fieldsOf returns a manager's fields of the main resource, or nil.
func fieldsOf(entry *metav1.ManagedFieldsEntry) *fieldpath.Set {
	var fields fieldpath.Set
	if entry.Subresource != "" || entry.FieldsV1 == nil || fields.FromJSON(strings.NewReader(entry.FieldsV1.GetRawString())) != nil {
		return nil
	}
	return &fields
}

// lifecycleManager returns the managedFields entry that owns lifecycleState, or nil.
func lifecycleManager(revision *olm.ClusterExtensionRevision) *metav1.ManagedFieldsEntry {
	for i := range revision.ManagedFields {
		entry := &revision.ManagedFields[i]
		if fields := fieldsOf(entry); fields != nil && fields.Has(lifecyclePath()) {
			return entry
		}
	}
	return nil
}

// appliedPaused reports whether the file that kubectl last applied sets Paused.
func appliedPaused(revision *olm.ClusterExtensionRevision) bool {
	var file struct {
		Spec struct {
			LifecycleState olm.LifecycleState `json:"lifecycleState"`
		} `json:"spec"`
	}
	applied := revision.Annotations[corev1.LastAppliedConfigAnnotation]
	return applied != "" && json.Unmarshal([]byte(applied), &file) == nil && file.Spec.LifecycleState == olm.LifecycleStatePaused
}
