package revisiondiff

import (
	"context"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Live says what a rollout of a revision would change in the cluster now.
type Live interface {
	// Preview compares the cluster as it is with a revision, whose manifests are
	// given in rollout order, those left out that the answer must not speak of.
	// The user of the context is the one who asks: of what he may not both get
	// and patch nothing may show, and it is counted in Withheld.
	//
	// What the error says is told to the user. It holds when the context ends.
	Preview(ctx context.Context, revision *olm.ClusterExtensionRevision, manifests []manifest.Object, options diff.Options) (Preview, error)
}

// Preview is what a rollout would do.
type Preview struct {
	// Report has the objects that would change. Who owns fields that the rollout
	// could not have is among its notes.
	Report diff.Report
	// Withheld counts the objects that the user may not see.
	Withheld int
}
