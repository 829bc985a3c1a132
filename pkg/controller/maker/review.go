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

// maxNotes bounds the notes in the reason of a proposal. longestNote bounds the text of each note,
// in bytes.
const (
	maxNotes    = 3
	longestNote = 240
)

// Review has the notes of a diff that need the approval of a user.
type Review struct {
	// On lists the notes that hold.
	On note.HoldOn
	// Because names the setting that requires a review.
	Because string
	// under identifies the list of notes and the compared revision of this review.
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

// heldAlready returns an outcome if a digest is proposed or declined, and this review held it.
// Other proposals of the digest are reviewed again, because the list may have changed.
func (c *Chain) heldAlready(ctx context.Context, digest string, identity Identity) *Outcome {
	if !slices.ContainsFunc(c.Revisions, func(one olmv1alpha1.ClusterExtensionRevision) bool {
		return c.NeverApproved(&one) && one.Annotations[c.MadeOf] == digest && one.Annotations[olmv1alpha1.HeldUnderAnnotation] == identity.Review.under
	}) {
		return nil
	}
	return c.Proposed(ctx, digest, identity.Stamp)
}

// heldAnew records the present reason of a hold in the proposal of a digest. The list or the policy
// may have changed since the proposal was created. A declined proposal keeps its earlier reasons.
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
		// A conflict means that a user may have approved it.
		if stopped := c.Patch(ctx, nil, one, map[string]any{"metadata": map[string]any{"resourceVersion": one.ResourceVersion, "annotations": change}}); stopped != nil {
			return stopped
		}
	}
	return nil
}

// reviewed returns the identity after its review. A held change becomes a proposal, and its
// approver acts as themselves.
func (i Identity) reviewed(diff *olmv1alpha1.RevisionDiff) Identity {
	reasons, lines := i.Review.holds(diff)
	if len(reasons) == 0 {
		return i
	}
	i.As, i.held = nil, strings.Join(reasons, ",")
	i.Approval = fmt.Sprintf("%s, and its diff has notes that hold it: %s", i.Review.Because, strings.Join(lines, "; "))
	return i
}

// holds returns the distinct reasons of the notes that hold a diff, and the notes as text. An
// incomplete diff always holds, because the omitted part is unknown.
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

// Compare returns the changes that the next revision of the chain makes. They do not depend on the
// rights of the identity, so a reviewer of the proposal sees the same changes.
func (c *Chain) Compare(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision) (*olmv1alpha1.RevisionDiff, *Outcome) {
	revision.Spec.LifecycleState = olmv1alpha1.LifecycleStatePaused
	diff, err := c.Own.Propose(ctx, revision.Name, revision, metav1.CreateOptions{FieldManager: c.FieldManager})
	if err != nil {
		return nil, c.refused(revision.Name, nil, fmt.Errorf("comparing it with the current revision: %w", err))
	}
	if slices.ContainsFunc(c.Revisions, func(one olmv1alpha1.ClusterExtensionRevision) bool {
		return one.Name == diff.From && c.NeverApproved(&one)
	}) {
		// The diff is against an unapproved proposal. No user has reviewed that proposal, so an
		// equal newer one would show no change.
		diff.Truncated = &olmv1alpha1.DiffTruncation{Objects: 1}
	}
	return diff, nil
}
