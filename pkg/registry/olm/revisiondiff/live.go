package revisiondiff

import (
	"context"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Live says what a rollout of a revision would change in the cluster now.
type Live interface {
	// Preview compares the cluster as it is with a revision. The user of the
	// context is the one who asks: what that user cannot both get and patch is
	// not shown, and is counted in Withheld. Of what would be deleted, the right
	// to get is enough.
	//
	// The error is what the user is answered. It holds when the context ends.
	Preview(ctx context.Context, question LiveQuestion) (Preview, error)
}

// LiveQuestion names the revision and cluster to compare.
type LiveQuestion struct {
	Revision *olm.ClusterExtensionRevision
	// Manifests of the revision in rollout order, those left out that the answer
	// must not speak of.
	Manifests []manifest.Object
	// Shows tells of an object that is not in the revision whether the answer may
	// speak of it. It does not know the user's rights.
	Shows func(manifest.ID) bool
	// Options of the comparison.
	Options diff.Options
}

// Preview has the effects of a rollout.
type Preview struct {
	// Report has the objects that would change. Its notes name the owners of fields that
	// the rollout would take.
	Report diff.Report
	// Withheld counts the objects that the user cannot see.
	Withheld int
	// Age is how long ago the cluster was asked; 0 is now.
	Age time.Duration
}

// live returns what a rollout of a revision would change in the cluster.
func (c *Comparer) live(ctx context.Context, revision *olm.ClusterExtensionRevision, options *v1alpha1.RevisionDiffOptions) (*v1alpha1.RevisionDiff, error) {
	scope, err := c.scope(ctx, options, revision)
	if err != nil {
		return nil, err
	}
	release, err := c.admit(ctx, revision)
	if err != nil {
		return nil, err
	}
	defer release()
	// A preview waits for other previews too.
	ctx, cancel := context.WithTimeout(ctx, queueTimeout+compareTimeout)
	defer cancel()

	objects, err := c.deps.Revisions.Contents(ctx, revision)
	if err != nil {
		return nil, err
	}
	preview, err := c.deps.Live.Preview(ctx, LiveQuestion{
		Revision: revision, Manifests: scope.selected(objects), Shows: scope.shows, Options: c.options(options, objects),
	})
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.RevisionDiff{ObjectMeta: named(revision.Name + separator + v1alpha1.Live), From: v1alpha1.Live, To: revision.Name}
	if preview.Age > 0 {
		out.Notes = append(out.Notes, asItWas(preview.Age))
	}
	scope.fill(out, preview.Report)
	scope.count(&out.Summary, nil, nil)
	out.Summary.Unchanged = int32(preview.Report.Summary.Unchanged)
	out.Summary.FromBytes, out.Summary.ToBytes = preview.Report.Summary.OldBytes, preview.Report.Summary.NewBytes
	out.Summary.Withheld += int32(preview.Withheld)
	return out, nil
}
