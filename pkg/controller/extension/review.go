package extension

import (
	"context"
	"fmt"
	"strconv"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/note"
)

// review returns the notes that hold the next revision for approval. It returns nil if no review is
// requested, and for a version that the author chose. A held proposal keeps its reasons if no
// identity remains for revisions. fresh is true if the stamp has decided nothing yet. The error is
// about the list of notes: a fault in it must not let anything through.
func (s *scope) review(stamp *author.Stamp, fresh bool) (*maker.Review, error) {
	if s.extension.Annotations[extension.ApprovalAnnotation] != extension.ApprovalReviewed || s.chose(stamp, fresh) {
		return nil, nil
	}
	on, err := note.ParseHoldOn(note.SplitHoldOn(s.extension.Annotations[extension.HoldOnAnnotation]))
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %w", extension.HoldOnAnnotation, err)
	}
	return s.NewReview(on, fmt.Sprintf("annotation %s is %s", extension.ApprovalAnnotation, extension.ApprovalReviewed)), nil
}

// chose reports whether the author chose the desired version, by an installation or by the last
// write that changed spec.source. One choice decides one version. It does not decide a version that
// a catalog offers later. Writes that do not change the source are no choice.
func (s *scope) chose(stamp *author.Stamp, fresh bool) bool {
	newest := s.Newest()
	if newest == nil || !s.isOwned(newest) {
		return fresh
	}
	choice := stamp.Chosen
	if !fresh || choice == nil || !choice.Time.Add(author.Lifetime).After(s.Clock.Now()) || s.decided() >= choice.Generation {
		return false
	}
	if newest.CreationTimestamp.Time.Before(choice.Left) {
		// The source has its earlier value again, and nothing was installed meanwhile.
		return false
	}
	if s.resolved == nil || s.resolved.Catalog == "" {
		return true
	}
	from := s.catalogs.Catalog(s.resolved.Catalog)
	return from == nil || !from.Unpacked.After(choice.Time)
}

// decided returns the highest generation of the extension for which a revision was created or kept.
func (s *scope) decided() int64 {
	highest := int64(0)
	for i := range s.Revisions {
		one := &s.Revisions[i]
		if neverApproved(one) || maker.IsRollback(one) || !s.isOwned(one) {
			continue
		}
		if generation, err := strconv.ParseInt(one.Annotations[extension.GenerationAnnotation], 10, 64); err == nil {
			highest = max(highest, generation)
		}
	}
	return highest
}

// Diff implements maker.FrontEnd, in a background job. A change that the author's write caused,
// with the installed image, needs no review.
func (m making) Diff(ctx context.Context, identity maker.Identity, made *content) (*olmv1alpha1.RevisionDiff, *maker.Outcome) {
	if newest := m.Newest(); newest != nil && !m.wasUsed(identity.Stamp) && newest.Annotations[olmv1alpha1.ReferenceAnnotation] == made.reference {
		return nil, nil
	}
	if m.byHelm {
		// Revisions do not have the objects of the release.
		return &olmv1alpha1.RevisionDiff{Truncated: &olmv1alpha1.DiffTruncation{Objects: 1}}, nil
	}
	revision, stopped := m.Next(ctx, made.Phases)
	if stopped != nil {
		return nil, stopped
	}
	identity.Approval = identity.Review.Because
	m.describe(revision, identity, made)
	return m.compared(ctx, identity, revision, made)
}

// compared compares a revision in the pool, and ends the pass until that is done.
func (m making) compared(ctx context.Context, identity maker.Identity, revision *olmv1alpha1.ClusterExtensionRevision, content *content) (*olmv1alpha1.RevisionDiff, *maker.Outcome) {
	// The result must belong to the written content: an image that is pulled again may differ.
	against := m.desired.digest() + " " + content.digest()
	if newest := m.Newest(); newest != nil {
		against += " " + string(newest.UID)
	}
	found, ready := m.jobs.Do(ctx, reviewOf(m.Name), against, func(ctx context.Context) (out made) {
		if waiting := m.Pool.Render(ctx, identity.Author.GetName(), func() { out.diff, out.stopped = m.Compare(ctx, revision) }); waiting != nil {
			out.stopped = retry(status.Failed, waiting)
		}
		return out
	}, func() { m.queue.Add(m.Name) })
	if !ready {
		return nil, maker.Stop(maker.Rendering, "", "")
	}
	return found.diff, found.stopped
}

// reviewOf names the job that compares the next revision of an extension.
func reviewOf(name string) string { return name + " review" }

// MayPropose implements maker.FrontEnd.
func (m making) MayPropose(ctx context.Context, identity maker.Identity, made *content) *maker.Outcome {
	_, stopped := m.mayCompare(ctx, identity, made)
	return stopped
}
