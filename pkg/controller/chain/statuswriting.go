package chain

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func (s *scope) announce() {
	byNumber := map[int64]*olmv1alpha1.ClusterExtensionRevision{}
	for i := range s.revisions {
		byNumber[s.revisions[i].Spec.Revision] = &s.revisions[i]
	}
	for _, event := range s.report.Events {
		if revision, ok := byNumber[event.Revision]; ok {
			s.event(revision, event.Warning, event.Reason, event.Message)
		}
	}
}

func (s *scope) writeStatus(ctx context.Context) error {
	s.judged = s.Clock.Now()
	var errs []error
	for i := range s.revisions {
		revision := &s.revisions[i]
		found := s.finding(i)
		if len(s.invalid) > 0 && found.invalid == nil {
			continue // the pass did not examine it
		}
		if s.inSyncGrace(revision, found.layer) {
			continue // the last known status still counts
		}
		if s.free(revision) && len(revision.Finalizers) == 1 {
			continue // this pass releases it
		}
		before := revision.Status
		errs = append(errs, s.update(ctx, revision, status(revision, found, s.judged)))
		s.recordMilestones(revision, before)
	}
	return errors.Join(errs...)
}

// complain writes into status that a pass failed. It keeps all other parts of the status.
func (s *scope) complain(ctx context.Context, trouble error) error {
	if ctx.Err() != nil {
		return nil
	}
	var errs []error
	for i := range s.revisions {
		revision := &s.revisions[i]
		errs = append(errs, s.update(ctx, revision, troubled(revision, trouble, s.Clock.Now())))
	}
	return errors.Join(errs...)
}

func (s *scope) update(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, next olmv1alpha1.ClusterExtensionRevisionStatus) error {
	if equality.Semantic.DeepEqual(next, revision.Status) {
		return nil
	}
	updated := revision.DeepCopy()
	updated.Status = next
	err := s.Client.Status().Update(ctx, updated)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		// Another writer changed it, and that change causes the next pass.
		s.stale = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the status of %s: %w", revision.Name, err)
	}
	logConditions(ctx, revision, next.Conditions)
	s.known.wrote(updated)
	revision.Status, revision.ResourceVersion = updated.Status, updated.ResourceVersion
	return nil
}
