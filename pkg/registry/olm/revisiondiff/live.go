package revisiondiff

import (
	"context"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Live computes the current effect of a rollout on the cluster.
type Live interface {
	// Preview compares the current cluster with a revision, for the user of the context. Objects
	// that the user cannot both get and patch are not shown, and are counted in Withheld. For
	// deletions the right to get suffices.
	//
	// The error is the answer to the user. It is valid even if the context ends.
	Preview(ctx context.Context, question LiveQuestion) (Preview, error)
}

// LiveQuestion names the revision and cluster to compare.
type LiveQuestion struct {
	Revision *olm.ClusterExtensionRevision
	// Manifests are the manifests of the revision in rollout order, without those that the answer
	// must not mention.
	Manifests []manifest.Object
	// Shows reports whether the answer may mention an object that is not in the revision. It does
	// not check the user's rights.
	Shows func(manifest.ID) bool
	// Options are the options of the comparison.
	Options diff.Options
}

// Preview holds the effects of a rollout.
type Preview struct {
	// Report contains the objects that would change. Its notes name the owners of fields that the
	// rollout would take.
	Report diff.Report
	// Withheld counts the objects that the user cannot see.
	Withheld int
	// Age is the age of the answer; 0 means a current answer of the cluster.
	Age time.Duration
}

// live returns the changes that a rollout of a revision would make in the cluster.
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
	// A preview also waits for other previews.
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
