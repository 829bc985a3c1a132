package command

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// isRollback is the reason of the condition Held after a rollback.
const isRollback = "IsRollback"

// isHeld reports whether a rollback prevents the owner of an active revision from creating the next
// one.
func isHeld(revision *v1alpha1.ClusterExtensionRevision) bool {
	held := meta.FindStatusCondition(revision.Status.Conditions, v1alpha1.ConditionHeld)
	return revision.Spec.LifecycleState == v1alpha1.LifecycleStateActive && held != nil && held.Status == metav1.ConditionTrue && held.Reason == isRollback
}

// releaseHold asks, and then lets the owner of an extension create revisions again.
func releaseHold(ctx context.Context, s *session.Session, cluster *session.Cluster, newest *v1alpha1.ClusterExtensionRevision, options lifecycleOptions) error {
	extension, _, _ := olm.ChainOf(newest.Name)
	history, err := cluster.OlmV1alpha1().RevisionHistories().Get(ctx, extension, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the history of %s: %w", extension, err)
	}
	if history.Hold == nil {
		return outcome.Errorf(outcome.Conflict, "the hold of %s is released already", extension)
	}
	owner := metav1.GetControllerOf(newest)
	who := "the owner of " + extension
	if owner != nil {
		who = owner.Kind + " " + owner.Name
	}
	s.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("%s is a rollback, and %s makes no revision since. Without the hold it makes one of what it asks for: what was rolled back, unless it has been changed",
		history.Hold.Revision, who))
	if !options.yes {
		agreed, err := s.Confirm(ctx, fmt.Sprintf("Release the hold of %s?", extension))
		if err != nil {
			return outcome.Errorf(outcome.Unknown, "%w; --yes does it without asking", err)
		}
		if !agreed {
			s.Err.Para(screen.Dim, screen.Waiting, "nothing was changed")
			return outcome.Quiet(outcome.No)
		}
	}
	changed, err := review.SetState(ctx, cluster, newest, v1alpha1.LifecycleStateActive, map[string]any{v1alpha1.ReleaseHoldAnnotation: history.Hold.Revision})
	if err != nil {
		return err
	}
	if options.output != "" {
		return s.PrintObject(options.output, changed)
	}
	s.Out.Para(screen.Green, screen.Good, fmt.Sprintf("the hold of %s is released; kubectl penstock status %s -w follows what %s does", extension, extension, who))
	return nil
}
