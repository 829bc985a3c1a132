package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/manifest/release"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/revision/references"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/text"
)

// maxOffencesLength bounds the message with all offences of a revision, in bytes. With the full
// list a user can repair all of them together.
const maxOffencesLength = 8 << 10

// manifestsError reports invalid manifests of a revision. None of the revision's manifests is
// applied.
type manifestsError struct{ offences []release.Offence }

func (e *manifestsError) Error() string {
	line := fmt.Sprintf("nothing was applied: %s cannot be rolled out as written: ", text.Count(len(e.offences), "annotation"))
	for i, offence := range e.offences {
		next := offence.String()
		if i > 0 {
			next = "; " + next
		}
		rest := fmt.Sprintf("; and %d more", len(e.offences)-i)
		if len(line)+len(next)+len(rest) > maxOffencesLength {
			return line + rest
		}
		line += next
	}
	return line
}

// vet validates the manifests of a revision that has not begun. It refuses the revision if a
// manifest has invalid rollout annotations, or contradicts the revision. Admission checks the same,
// but admission can be switched off, and a stored revision may be older than the check.
//
// If the manifests cannot be read, this pass writes nothing of the revision: a later read in the
// same pass must not bypass the check.
func (s *scope) vet(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision) error {
	known := s.known[revision.UID]
	if known.vetted || s.ledger.inventory.Reached[string(revision.UID)] > 0 {
		return nil
	}
	objects, err := s.contents(ctx, revision)
	if err != nil {
		s.manifests.bar(known.root, err)
		return nil
	}
	offences := append(release.Check(objects), unsaid(revision, objects)...)
	if len(offences) > 0 {
		return &manifestsError{offences}
	}
	known.vetted = true
	return nil
}

// unsaid lists manifests whose create-only mark differs from the mark in the revision. An earlier
// Penstock, which did not read the mark from manifests, stored such revisions.
func unsaid(revision *olmv1alpha1.ClusterExtensionRevision, objects []manifest.Object) []release.Offence {
	var offences []release.Offence
	next := 0
	for _, phase := range revision.Spec.Phases {
		for _, entry := range phase.Objects {
			object := objects[next]
			next++
			mark, wrong := release.MarkOf(object)
			if len(wrong) == 0 && mark != rev.Mark(entry) {
				offences = append(offences, release.Offence{
					ID: object.ID, Annotation: release.CreateOnlyAnnotation, Value: fmt.Sprintf("%q", fmt.Sprint(mark.CreateOnly)),
					Allowed: "which this revision does not show, because an earlier Penstock stored it: create it again as a new revision",
				})
			}
		}
	}
	return offences
}

// contents returns the manifests of a revision, in the order of its spec.
func (s *scope) contents(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision) ([]manifest.Object, error) {
	root := s.known[revision.UID].root
	wanted := references.Of(revision)
	if len(wanted) == 0 {
		return nil, nil
	}
	bodies, err := s.library.read(ctx, root)
	if err != nil {
		return nil, err
	}
	objects := make([]manifest.Object, 0, len(wanted))
	for _, r := range wanted {
		body, ok := bodies[r.Digest]
		if !ok {
			return nil, fmt.Errorf("the pack %s does not hold %s", root, r.Digest)
		}
		objects = append(objects, manifest.Object{Ref: r, JSON: body})
	}
	return objects, nil
}

// byLevels decides whether install levels order a revision: they do until the first success of the
// chain. A revision that has begun keeps its decision, which is stored with its reached stages.
func (s *scope) byLevels(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision) (bool, error) {
	if !rev.HasLevels(revision) {
		return false, nil
	}
	key := string(revision.UID)
	if s.ledger.inventory.Reached[key] > 0 {
		return s.ledger.inventory.Levels[key], nil
	}
	head, _, err := s.Heads.Get(ctx, s.chain)
	if err != nil {
		return false, fmt.Errorf("finding out whether %s was ever installed: %w", s.chain, err)
	}
	return !head.Succeeded, nil
}

// inversions returns the objects of a revision that depend on objects of a later install level. It
// computes them once, when an install level waits. They are only a hint, so an error is ignored,
// and the next pass tries again.
func (s *scope) inversions(ctx context.Context, revision *olmv1alpha1.ClusterExtensionRevision, report *rollout.LayerReport) []release.Inversion {
	if report.Level == nil || report.Level.Waiting == 0 {
		return nil
	}
	known := s.known[revision.UID]
	if !known.searched {
		objects, err := s.contents(ctx, revision)
		if err != nil {
			return nil
		}
		known.inverted, known.searched = release.Inversions(objects), true
	}
	return known.inverted
}

// waitingForLevel describes the running install level, its obstacles, and the waiting objects. The
// line changes only when these change.
func waitingForLevel(level *rollout.LevelReport, inverted []release.Inversion) string {
	line := fmt.Sprintf("install level %d: ", level.Number)
	switch {
	case len(level.Failures) == 0:
		line += fmt.Sprintf("%s under way", text.Count(level.Objects, "object"))
	default:
		line += fmt.Sprintf("%d of %s not ready (%s", len(level.Failures), text.Count(level.Objects, "object"), describe(level.Failures[0]))
		if more := len(level.Failures) - 1; more > 0 {
			line += fmt.Sprintf("; and %d more", more)
		}
		line += ")"
	}
	line += fmt.Sprintf("; %s of later levels %s", text.Count(level.Waiting, "object"), waits(level.Waiting))
	if needs := blocking(level, inverted); len(needs) > 0 {
		line += "; " + strings.Join(needs, "; ")
	}
	return clip(line)
}

func waits(n int) string {
	if n == 1 {
		return "waits"
	}
	return "wait"
}

// blocking describes the unready objects that depend on an object of a later level.
func blocking(level *rollout.LevelReport, inverted []release.Inversion) []string {
	var out []string
	for _, i := range inverted {
		if slices.ContainsFunc(level.Failures, func(f rollout.Failure) bool { return f.ID == i.Object }) {
			out = append(out, i.String())
		}
	}
	return out
}

func reasonOf(err error) string {
	var manifests *manifestsError
	if errors.As(err, &manifests) {
		return reasonInvalidManifests
	}
	return reasonInvalid
}
