package revisiondiff

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

const separator = ".."

// request is what a name asks to compare. An empty side is the neighbour of the
// other one.
type request struct {
	from, to string
}

// parse reads the name of a RevisionDiff. Extensions can have dots in their
// names, but never two in a row.
func parse(name string) (request, error) {
	from, to, ok := strings.Cut(name, separator)
	asked := request{from: from, to: to}
	if !ok || from == "" && to == "" {
		return request{}, badName(name, "want <revision>..<revision>, <revision>.., ..<revision> or <revision>..live")
	}
	if from == v1alpha1.Live || to == v1alpha1.Live && from == "" {
		return request{}, badName(name, "a revision is compared with the cluster by <revision>..live")
	}
	for _, side := range []string{from, to} {
		if side == "" || side == v1alpha1.Live {
			continue
		}
		if _, _, ok := olm.ChainOf(side); !ok {
			return request{}, badName(name, fmt.Sprintf("%q is not the name of a revision, which is <extension>-<number>", side))
		}
	}
	return asked, nil
}

func badName(name, detail string) error {
	return apierrors.NewBadRequest(fmt.Sprintf("the name of a revisiondiff says what is compared, and %q does not: %s", name, detail))
}

// before returns the revision of the highest number below that of another one in
// its chain, or nil when none is stored.
func (c *Comparer) before(ctx context.Context, name string) (*olm.ClusterExtensionRevision, error) {
	return c.neighbour(ctx, name, func(candidate, self int64, found *olm.ClusterExtensionRevision) bool {
		return candidate < self && (found == nil || candidate > found.Spec.Revision)
	})
}

// after returns the one of the lowest number above it, or nil.
func (c *Comparer) after(ctx context.Context, name string) (*olm.ClusterExtensionRevision, error) {
	return c.neighbour(ctx, name, func(candidate, self int64, found *olm.ClusterExtensionRevision) bool {
		return candidate > self && (found == nil || candidate < found.Spec.Revision)
	})
}

func (c *Comparer) neighbour(ctx context.Context, name string, nearer func(candidate, self int64, found *olm.ClusterExtensionRevision) bool) (*olm.ClusterExtensionRevision, error) {
	chain, self, _ := olm.ChainOf(name)
	revisions, err := c.deps.Revisions.Chain(ctx, chain)
	if err != nil {
		return nil, err
	}
	var found *olm.ClusterExtensionRevision
	for i := range revisions {
		if nearer(revisions[i].Spec.Revision, self, found) {
			found = &revisions[i]
		}
	}
	return found, nil
}
