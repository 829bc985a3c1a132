package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/store/archive"
)

const stateTries = 5

// chainState is a chain at one moment.
type chainState struct {
	// revisions are the revisions that are not being deleted, newest first.
	revisions []v1alpha1.ClusterExtensionRevision
	history   *v1alpha1.RevisionHistory
}

// state reads revisions and history. If they differ, it reads them again: a revision was created or
// deleted in between.
func (e *exporter) state(ctx context.Context, name string) (chainState, error) {
	for range stateTries {
		list, err := e.api.ClusterExtensionRevisions().List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.ChainLabel + "=" + name})
		if err != nil {
			return chainState{}, fmt.Errorf("listing its revisions: %w", err)
		}
		history, err := e.api.RevisionHistories().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return chainState{}, fmt.Errorf("reading its history: %w", err)
		}
		state := chainState{history: history}
		var going []string
		for _, revision := range list.Items {
			if revision.DeletionTimestamp.IsZero() {
				state.revisions = append(state.revisions, revision)
			} else {
				going = append(going, revision.Name)
			}
		}
		if !state.agrees() {
			continue
		}
		for _, gone := range going {
			e.notes = append(e.notes, fmt.Sprintf("note: %s is being deleted and is left out; the history includes it", gone))
		}
		slices.SortFunc(state.revisions, func(a, b v1alpha1.ClusterExtensionRevision) int {
			return int(b.Spec.Revision - a.Spec.Revision)
		})
		return state, nil
	}
	return chainState{}, errors.New("the extension keeps changing: try again when nobody creates or deletes its revisions")
}

func (s chainState) agrees() bool {
	there := map[int64]bool{}
	for i := range s.revisions {
		there[s.revisions[i].Spec.Revision] = true
	}
	for _, record := range s.history.Revisions {
		if there[record.Revision] != (record.DeletedAt.IsZero() && record.State != v1alpha1.StateDeleted) {
			return false
		}
		delete(there, record.Revision)
	}
	return len(there) == 0
}

func archivedChain(name string, state chainState) archive.Chain {
	chain := archive.Chain{Name: name}
	for i := range state.revisions {
		chain.Revisions = append(chain.Revisions, state.revisions[i].Spec.Revision)
	}
	for _, record := range state.history.Revisions {
		chain.Highest = max(chain.Highest, record.Revision)
		chain.History = append(chain.History, archivedRow(record))
	}
	if hold := state.history.Hold; hold != nil {
		if _, number, ok := olm.ChainOf(hold.Revision); ok {
			chain.Hold = &archive.Hold{Revision: number, OwnerGeneration: hold.OwnerGeneration}
		}
	}
	return chain
}

func archivedRow(record v1alpha1.RevisionRecord) archive.Row {
	row := archive.Row{
		Revision: record.Revision, Version: record.Version, Result: record.Result,
		CreatedAt: timeOf(record.CreatedAt), CompletedAt: timeOf(record.CompletedAt), DeletedAt: timeOf(record.DeletedAt),
		RequestedBy: record.RequestedBy, Cause: record.Cause,
	}
	if record.State == v1alpha1.StateDeleted && row.DeletedAt.IsZero() {
		// The record was removed manually at an unknown time. The chosen time is not in the future,
		// and is the same in every archive.
		row.DeletedAt = row.CreatedAt
		if row.DeletedAt.IsZero() {
			row.DeletedAt = time.Unix(0, 0).UTC()
		}
	}
	if _, number, ok := olm.ChainOf(record.RollbackOf); ok {
		row.RollbackOf = number
	}
	if record.Changes != nil && record.Objects != nil {
		row.Counts = &archive.Counts{
			Objects: int(*record.Objects), Added: int(record.Changes.Added), Changed: int(record.Changes.Changed), Removed: int(record.Changes.Removed),
		}
	}
	return row
}

// archivedRevision omits the fields that a server sets itself: uid, versions, managed fields,
// finalizers, and status except the outcome of the revision.
func archivedRevision(revision *v1alpha1.ClusterExtensionRevision) (archive.Revision, error) {
	spec := revision.Spec.DeepCopy()
	for i := range spec.Previous {
		spec.Previous[i].UID = ""
	}
	encoded, err := json.Marshal(spec)
	if err != nil {
		return archive.Revision{}, fmt.Errorf("encoding %s: %w", revision.Name, err)
	}
	out := archive.Revision{
		Number: revision.Spec.Revision, Labels: revision.Labels, Annotations: maps.Clone(revision.Annotations),
		CreatedAt: revision.CreationTimestamp.UTC(), Spec: encoded,
	}
	if requester := revision.Status.RequestedBy; requester != nil {
		out.RequestedBy = requester.Username
	}
	if first := revision.Annotations[v1alpha1.RequestedByAnnotation]; first != "" {
		out.RequestedBy = first
	}
	for _, volatile := range []string{v1alpha1.SummaryAnnotation, v1alpha1.RequestedByAnnotation} {
		delete(out.Annotations, volatile)
	}
	if c := meta.FindStatusCondition(revision.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil && c.Status == metav1.ConditionTrue {
		out.Succeeded, out.CompletedAt = true, c.LastTransitionTime.UTC()
	}
	for _, owner := range revision.OwnerReferences {
		out.Owners = append(out.Owners, archive.Owner{
			APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: owner.UID,
			Controller: owner.Controller != nil && *owner.Controller,
		})
	}
	return out, nil
}

func timeOf(t *metav1.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}
