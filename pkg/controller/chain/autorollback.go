package chain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/klog/v2"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
	store "github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/text"
)

// spec.onFailure: Rollback causes exactly one rollback of a revision, whenever the process crashes.
// This needs no extra record:
//
//   - Only the newest revision is rolled back, and only if the chain never had a higher number.
//     The head of the chain stores the highest number, also of deleted revisions. The revision
//     that the rollback creates therefore excludes the failed revision for good.
//   - The request names the failed revision. The server refuses the request if that revision is
//     not the newest one. So two concurrent requests create one revision.
//   - Status is derived from the existing revisions. A revision was rolled back if the next
//     revision is a rollback.

// Refused rollbacks are requested again after a delay, which doubles: a user may have removed the
// obstacle.
const (
	firstRefusal = 10 * time.Second
	lastRefusal  = 10 * time.Minute
)

// Rollbacks requests rollbacks. The typed client of the API implements it.
type Rollbacks interface {
	Rollback(ctx context.Context, name string, rollback *olmv1alpha1.RevisionRollback, options metav1.CreateOptions) (*olmv1alpha1.RevisionRollback, error)
}

// refusal is the reason why a revision is not rolled back automatically; nil for no refusal.
type refusal struct{ reason, message string }

// fallBack rolls back the newest revision if its rollout has failed and its spec requests that.
func (s *scope) fallBack(ctx context.Context) error {
	failed := s.failed()
	if failed == nil || s.stale || s.Clock.Now().Before(s.known[failed.UID].again) {
		return nil
	}
	if _, no := backTo(s.revisions); no != nil {
		return s.refuse(ctx, failed, no)
	}
	// The cache may be stale. Only the store can prevent a second rollback.
	to, no, err := s.storedTarget(ctx, failed)
	if err != nil {
		return fmt.Errorf("looking for a revision to roll %s back to: %w", failed.Name, err)
	}
	if no == nil && to == "" {
		s.stale = true // the cache will catch up
		return nil
	}
	if no == nil {
		no = s.rollBack(ctx, failed, to)
	}
	if no == nil || ctx.Err() != nil {
		return nil
	}
	s.known[failed.UID].refused(s.Clock.Now())
	return s.refuse(ctx, failed, no)
}

// failed returns the newest revision if it failed and must be rolled back, or nil.
func (s *scope) failed() *olmv1alpha1.ClusterExtensionRevision {
	if len(s.layers) == 0 || len(s.invalid) > 0 || len(s.report.Layers) == 0 || s.layers[0] != &s.revisions[0] {
		return nil
	}
	if newest := s.layers[0]; wantsBack(newest, s.Clock.Now()) {
		return newest
	}
	return nil
}

func wantsBack(revision *olmv1alpha1.ClusterExtensionRevision, now time.Time) bool {
	return revision.Spec.OnFailure == olmv1alpha1.OnFailureRollback &&
		revision.Spec.LifecycleState == olmv1alpha1.LifecycleStateActive && revision.DeletionTimestamp.IsZero() &&
		!meta.IsStatusConditionTrue(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded) && (overdue(revision, now) || metricFailed(revision.Status.Conditions))
}

// backTo returns the newest earlier revision that succeeded and has objects. A rollback to an empty
// revision would uninstall the extension, which only users may decide.
func backTo(revisions []olmv1alpha1.ClusterExtensionRevision) (string, *refusal) {
	if of := revisions[0].Annotations[olmv1alpha1.RollbackOfAnnotation]; of != "" {
		return "", &refusal{reasonIsRollback, fmt.Sprintf("it is itself a rollback, to %s: a person must decide what to do next", of)}
	}
	for i := range revisions[1:] {
		earlier := &revisions[1+i]
		if earlier.DeletionTimestamp.IsZero() && hasObjects(earlier) && meta.IsStatusConditionTrue(earlier.Status.Conditions, olmv1alpha1.ConditionSucceeded) {
			return earlier.Name, nil
		}
	}
	return "", &refusal{reasonNoTarget, "there is no earlier revision that has succeeded"}
}

func hasObjects(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return slices.ContainsFunc(revision.Spec.Phases, func(phase olmv1alpha1.RevisionPhase) bool { return len(phase.Objects) > 0 })
}

// storedTarget is backTo on the stored revisions. It returns nothing if the failed revision is not
// the newest stored one, or no longer needs a rollback.
func (s *scope) storedTarget(ctx context.Context, failed *olmv1alpha1.ClusterExtensionRevision) (string, *refusal, error) {
	revisions, err := bychain.List(ctx, s.Reader, s.chain)
	if err != nil {
		return "", nil, err
	}
	if len(revisions) == 0 || revisions[0].UID != failed.UID || !wantsBack(&revisions[0], s.Clock.Now()) {
		return "", nil, nil
	}
	head, _, err := s.Heads.Get(ctx, s.chain)
	if err != nil {
		return "", nil, err
	}
	if no := overtaken(head, failed); no != nil {
		return "", no, nil
	}
	to, no := backTo(revisions)
	return to, no, nil
}

// overtaken returns a refusal if the chain had a newer revision than the failed one.
func overtaken(head store.Head, failed *olmv1alpha1.ClusterExtensionRevision) *refusal {
	if head.Next() <= failed.Spec.Revision+1 {
		return nil
	}
	return &refusal{reasonOvertaken, fmt.Sprintf("revision %d was created since then and was deleted: a person must decide what to do next", head.Next()-1)}
}

// rollBack requests the rollback. It returns the reason if the request failed.
func (s *scope) rollBack(ctx context.Context, failed *olmv1alpha1.ClusterExtensionRevision, to string) *refusal {
	cause := fmt.Sprintf("%s did not succeed within %s", failed.Name, text.Count(failed.Spec.ProgressDeadlineMinutes, "minute"))
	if metricFailed(failed.Status.Conditions) {
		cause = meta.FindStatusCondition(failed.Status.Conditions, olmv1alpha1.ConditionSucceeded).Message
	}
	done, err := s.Rollbacks.Rollback(ctx, to, &olmv1alpha1.RevisionRollback{
		Spec: olmv1alpha1.RevisionRollbackSpec{
			From:  failed.Name,
			Cause: cause,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		// The rollback may have happened although the answer was lost. The next pass reads that
		// from the store.
		return &refusal{reasonRefused, clip(fmt.Sprintf("the rollback to %s was refused: %s", to, err))}
	}
	klog.FromContext(ctx).Info("Rolled back a revision that failed", revisionKey, failed.Name, "to", to, "by", done.Status.Revision)
	return nil
}

func (s *scope) refuse(ctx context.Context, failed *olmv1alpha1.ClusterExtensionRevision, no *refusal) error {
	before := meta.FindStatusCondition(failed.Status.Conditions, olmv1alpha1.ConditionRolledBack)
	news := before == nil || before.Reason != no.reason || before.Message != no.message
	w := &writer{generation: failed.Generation, now: s.Clock.Now(), status: *failed.Status.DeepCopy()}
	w.set(olmv1alpha1.ConditionRolledBack, false, no.reason, no.message)
	if err := s.update(ctx, failed, w.status); err != nil || s.stale {
		return err
	}
	if news {
		s.event(failed, true, no.reason, "not rolled back: "+no.message)
	}
	return nil
}

// refused schedules the next attempt after a refusal.
func (m *memory) refused(now time.Time) {
	m.wait = min(max(2*m.wait, firstRefusal), lastRefusal)
	m.again = now.Add(m.wait)
}

// rolledBack records that the next revision restores an earlier one. It removes an outdated reason
// against a rollback.
func (w *writer) rolledBack(revision, next *olmv1alpha1.ClusterExtensionRevision) {
	if next == nil || next.Annotations[olmv1alpha1.RollbackOfAnnotation] == "" {
		told := meta.FindStatusCondition(w.status.Conditions, olmv1alpha1.ConditionRolledBack)
		if told != nil && told.Status == metav1.ConditionFalse && (next != nil || !wantsBack(w.current(revision), w.now)) {
			meta.RemoveStatusCondition(&w.status.Conditions, olmv1alpha1.ConditionRolledBack)
		}
		return
	}
	reason, message := reasonRequested, fmt.Sprintf("%s brings back the content of %s", next.Name, next.Annotations[olmv1alpha1.RollbackOfAnnotation])
	if by := next.Status.RequestedBy; by != nil && isOurs(by) {
		reason = reasonDeadline
		if slices.ContainsFunc(w.status.MetricChecks, func(m olmv1alpha1.MetricMeasurement) bool { return m.Verdict == olmv1alpha1.MetricNo }) {
			reason = reasonMetricFailed
		}
	} else if by != nil {
		message += ", as " + by.Username + " asked for"
	}
	if cause := next.Annotations[olmv1alpha1.ChangeCauseAnnotation]; cause != "" {
		message += ": " + cause
	}
	w.set(olmv1alpha1.ConditionRolledBack, true, reason, clip(message))
}

// isOurs reports whether Penstock itself requested a revision. The user name alone does not prove
// it, because the host can have a user with that name. Members of this group already have all
// rights in the host.
func isOurs(by *olmv1alpha1.Requester) bool {
	return by.Username == user.APIServerUser && slices.Contains(by.Groups, user.SystemPrivilegedGroup)
}
