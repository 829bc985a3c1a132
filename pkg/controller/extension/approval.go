package extension

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/approval"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/text"
)

// eventApprovalEnded is the reason of the event about an approval for later that had no effect.
const eventApprovalEnded = "ApprovalEnded"

const (
	// approvalLook bounds the delay before an approval for later is checked again, because clocks
	// are changed and machines sleep.
	approvalLook = 10 * time.Minute
	// longestEnd bounds the text about the end of an approval, in bytes.
	longestEnd = 512
)

// approvedForLater executes the approval that a user gave a proposal for a later time. It returns
// nil if the proposal waits for a user:
//
//  1. An approval ends if it is over, unreadable, or given for another spec.
//  2. The approval waits for its time, for the end of a freeze, for a maintenance window, and for
//     the
//     installed operator to become upgradeable.
//  3. It then resumes the proposal as the approver, with their present rights and the diff that
//     they
//     approved.
//  4. A lasting refusal by the API ends the approval. It is not retried.
func (s *scope) approvedForLater(ctx context.Context, digest string) *maker.Outcome {
	for _, proposal := range s.Proposals() {
		if proposal.Annotations[extension.MadeOfAnnotation] != digest {
			continue
		}
		given, err := approval.Of(proposal.Annotations)
		now := s.Clock.Now()
		switch {
		case err == nil && given == nil:
			return nil
		case err != nil:
			return s.endApproval(ctx, proposal, &approval.Scheduled{}, err.Error())
		case !given.Ended.IsZero():
			return nil
		case given.Generation != proposal.Generation:
			return s.endApproval(ctx, proposal, given, "the spec of the proposal is another one since then")
		case given.Over(now) != "":
			return s.endApproval(ctx, proposal, given, given.Over(now))
		case now.Before(given.NotBefore):
			s.queue.AddAfter(s.Name, min(given.NotBefore.Sub(now), approvalLook))
			return maker.Stop(maker.Proposed, "", "")
		}
		stopped := s.waitsForWindow()
		if stopped == nil {
			stopped = s.notUpgradeable(ctx, maker.Identity{As: given.Info()})
		}
		switch {
		case stopped == nil:
		case stopped.Err != nil: // the answer is unknown: try again soon
			return stopped
		default:
			// The approval can end while its windows stay closed.
			s.queue.AddAfter(s.Name, approvalLook)
			s.later = stopped.Message
			return maker.Stop(maker.Proposed, "", "")
		}
		stopped = s.Patch(ctx, given.Info(), proposal, map[string]any{
			"metadata": map[string]any{"resourceVersion": proposal.ResourceVersion, "annotations": map[string]any{
				olmv1alpha1.ApproveAnnotation: given.Digest, olmv1alpha1.ApproveNotBeforeAnnotation: nil, olmv1alpha1.LifecycleReasonAnnotation: nil,
			}},
			"spec": map[string]any{"lifecycleState": olmv1alpha1.LifecycleStateActive},
		})
		switch {
		case stopped == nil:
			return awaited()
		case stopped.Reason == maker.Denied || stopped.Reason == maker.Refused || stopped.Reason == maker.Invalid:
			return s.endApproval(ctx, proposal, given, stopped.Message)
		}
		return stopped
	}
	return nil
}

// endApproval records the reason why an approval for later had no effect. The proposal waits for a
// user again.
func (s *scope) endApproval(ctx context.Context, proposal *olmv1alpha1.ClusterExtensionRevision, given *approval.Scheduled, why string) *maker.Outcome {
	ended := *given
	ended.Groups, ended.Extra = nil, nil
	ended.Ended, ended.Why = s.Clock.Now().UTC().Truncate(time.Second), text.Line(why, longestEnd)
	value, err := ended.Encode()
	if err != nil {
		return retry(status.Failed, err)
	}
	if stopped := s.Patch(ctx, nil, proposal, map[string]any{"metadata": map[string]any{
		"resourceVersion": proposal.ResourceVersion, "annotations": map[string]any{
			olmv1alpha1.ScheduledApprovalAnnotation: value, olmv1alpha1.ApproveAnnotation: nil, olmv1alpha1.ApproveNotBeforeAnnotation: nil, olmv1alpha1.AcknowledgeDeletionAnnotation: nil,
		},
	}}); stopped != nil {
		return stopped
	}
	s.Events.Event(s.object, corev1.EventTypeWarning, eventApprovalEnded, text.Clip(fmt.Sprintf("%s waits for approval again: the approval by %s had no effect: %s", proposal.Name, given.User, ended.Why), longestNote))
	return awaited()
}
