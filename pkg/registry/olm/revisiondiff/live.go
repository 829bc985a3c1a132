package revisiondiff

import (
	"context"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Live says what a rollout of a revision would change in the cluster now.
type Live interface {
	// Preview compares the cluster as it is with a revision. The user of the
	// context is the one who asks: of what he may not both get and patch nothing
	// may show, and it is counted in Withheld. What would be deleted he must be
	// able to get.
	//
	// The error is what the user is answered. It holds when the context ends.
	Preview(ctx context.Context, question LiveQuestion) (Preview, error)
}

// LiveQuestion is what to compare.
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

// Preview is what a rollout would do.
type Preview struct {
	// Report has the objects that would change. Who owns fields that the rollout
	// would take is among its notes.
	Report diff.Report
	// Withheld counts the objects that the user may not see.
	Withheld int
	// Age is how long ago the cluster was asked; 0 is now.
	Age time.Duration
}
