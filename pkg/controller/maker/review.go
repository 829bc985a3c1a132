package maker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/note"
	"github.com/penstock-project/penstock/pkg/text"
)

// mostNotes bounds the notes that the reason of a proposal has in words, and longestNote each of
// them, in bytes.
const (
	maxNotes    = 3
	longestNote = 240
)

// Review has the notes of a diff that need the approval of a person.
type Review struct {
	// On are the notes that hold.
	On note.HoldOn
	// Because names the setting that requires a review.
	Because string
	// under tells this review from those by another list, or against another revision.
	under string
}

// NewReview returns a review of the next revision of a chain.
func (c *Chain) NewReview(on note.HoldOn, because string) *Review {
	against := ""
	if newest := c.Newest(); newest != nil {
		against = string(newest.UID)
	}
	sum := sha256.Sum256([]byte(on.String() + " " + against))
	return &Review{On: on, Because: because, under: hex.EncodeToString(sum[:16])}
}

// heldAlready says that a digest is proposed, or was declined, after this review held it. Other
// proposals of it are reviewed anew: somebody may have changed the list.
func (c *Chain) heldAlready(ctx context.Context, digest string, identity Identity) *Outcome {
	if !slices.ContainsFunc(c.Revisions, func(one olmv1alpha1.ClusterExtensionRevision) bool {
		return c.NeverApproved(&one) && one.Annotations[c.MadeOf] == digest && one.Annotations[olmv1alpha1.HeldUnderAnnotation] == identity.Review.under
	}) {
		return nil
	}
	return c.Proposed(ctx, digest, identity.Stamp)
}

// heldAnew records in what is proposed of a digest, or was declined, why it is held now: somebody has
// changed the list, or the policy. The reasons of a declined proposal stay.
func (c *Chain) heldAnew(ctx context.Context, digest string, identity Identity) *Outcome {
	annotations := map[string]any{olmv1alpha1.HeldByAnnotation: nil, olmv1alpha1.HeldUnderAnnotation: nil}
	under := ""
	if identity.held != "" {
		under = identity.Review.under
		annotations = map[string]any{olmv1alpha1.HeldByAnnotation: identity.held, olmv1alpha1.HeldUnderAnnotation: under}
	}
	for i := range c.Revisions {
		one := &c.Revisions[i]
		if !c.NeverApproved(one) || one.DeletionTimestamp != nil || one.Annotations[c.MadeOf] != digest || one.Annotations[olmv1alpha1.HeldUnderAnnotation] == under {
			continue
		}
		change := map[string]any{olmv1alpha1.HeldUnderAnnotation: annotations[olmv1alpha1.HeldUnderAnnotation]}
		switch {
		case c.isProposal(one):
			change = annotations
			change[olmv1alpha1.LifecycleReasonAnnotation] = identity.Approval
		case under == "" || one.Annotations[c.Stamp] != identity.Stamp:
			continue
		}
		// A conflict: somebody may have approved it.
		if stopped := c.Patch(ctx, nil, one, map[string]any{"metadata": map[string]any{"resourceVersion": one.ResourceVersion, "annotations": change}}); stopped != nil {
			return stopped
		}
	}
	return nil
}

// reviewed is an identity after its review. A held change is proposed, and the person who approves it
// acts in their own name.
func (i Identity) reviewed(diff *olmv1alpha1.RevisionDiff) Identity {
	reasons, lines := i.Review.holds(diff)
	if len(reasons) == 0 {
		return i
	}
	i.As, i.held = nil, strings.Join(reasons, ",")
	i.Approval = fmt.Sprintf("%s, and its diff has notes that hold it: %s", i.Review.Because, strings.Join(lines, "; "))
	return i
}

// holds are the reasons of the notes that hold a diff, each once, and the notes in words. A diff
// that does not show all holds by itself: what is left out may be anything.
func (r *Review) holds(diff *olmv1alpha1.RevisionDiff) (reasons, lines []string) {
	if diff == nil {
		return nil, nil
	}
	more := 0
	add := func(reason, line string) {
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
		if len(lines) == maxNotes {
			more++
			return
		}
		lines = append(lines, reason+": "+text.Clip(line, longestNote))
	}
	for _, one := range diff.Notes {
		if r.On.Holds(one.Reason, note.Severity(one.Severity)) {
			add(one.Reason, strings.TrimSpace(one.Kind+" "+one.Name+": "+one.Message))
		}
	}
	if left := diff.Truncated; left != nil && left.Objects+left.Notes > 0 || diff.Summary.Withheld > 0 {
		add(note.Incomplete, "not all that changes could be compared")
	}
	if more > 0 {
		lines = append(lines, text.Count(more, "more note"))
	}
	return reasons, lines
}

// Compare returns the changes of the next revision of the chain. It shows them as a reviewer of the
// proposal sees them, regardless of the rights of the identity.
func (c *Chain) Compare(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision) (*olmv1alpha1.RevisionDiff, *Outcome) {
	revision.Spec.LifecycleState = olmv1alpha1.LifecycleStatePaused
	diff, err := c.Own.Propose(ctx, revision.Name, revision, metav1.CreateOptions{FieldManager: c.FieldManager})
	if err != nil {
		return nil, c.refused(revision.Name, nil, fmt.Errorf("comparing it with what is rolled out: %w", err))
	}
	if slices.ContainsFunc(c.Revisions, func(one olmv1alpha1.ClusterExtensionRevision) bool {
		return one.Name == diff.From && c.NeverApproved(&one)
	}) {
		// Nobody has seen what that changes: against it, a newer proposal would change nothing.
		diff.Truncated = &olmv1alpha1.DiffTruncation{Objects: 1}
	}
	return diff, nil
}
