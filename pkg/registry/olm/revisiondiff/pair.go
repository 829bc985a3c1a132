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

// request names the sides to compare. An empty side means the neighbour of the other side.
type request struct {
	from, to string
}

// parse parses the name of a RevisionDiff. Names of extensions may contain dots, but never two in a
// row.
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

// before returns the next lower revision of the chain, or nil if none is stored.
func (c *Comparer) before(ctx context.Context, name string) (*olm.ClusterExtensionRevision, error) {
	return c.neighbour(ctx, name, func(candidate, found *olm.ClusterExtensionRevision, self int64) bool {
		return candidate.Spec.Revision < self && (found == nil || candidate.Spec.Revision > found.Spec.Revision)
	})
}

// Before returns the revision for the comparison with a proposed revision: the newest lower
// revision that is rolled out, otherwise the newest lower revision, otherwise nil.
func (c *Comparer) Before(ctx context.Context, proposed string) (*olm.ClusterExtensionRevision, error) {
	found, err := c.neighbour(ctx, proposed, func(candidate, found *olm.ClusterExtensionRevision, self int64) bool {
		return candidate.Spec.Revision < self && candidate.Spec.LifecycleState == olm.LifecycleStateActive && candidate.DeletionTimestamp == nil &&
			(found == nil || candidate.Spec.Revision > found.Spec.Revision)
	})
	if err != nil || found != nil {
		return found, err
	}
	return c.before(ctx, proposed)
}

// after returns the next higher revision of the chain, or nil.
func (c *Comparer) after(ctx context.Context, name string) (*olm.ClusterExtensionRevision, error) {
	return c.neighbour(ctx, name, func(candidate, found *olm.ClusterExtensionRevision, self int64) bool {
		return candidate.Spec.Revision > self && (found == nil || candidate.Spec.Revision < found.Spec.Revision)
	})
}

func (c *Comparer) neighbour(ctx context.Context, name string, nearer func(candidate, found *olm.ClusterExtensionRevision, self int64) bool) (*olm.ClusterExtensionRevision, error) {
	chain, self, _ := olm.ChainOf(name)
	revisions, err := c.deps.Revisions.Chain(ctx, chain)
	if err != nil {
		return nil, err
	}
	var found *olm.ClusterExtensionRevision
	for i := range revisions {
		if nearer(&revisions[i], found, self) {
			found = &revisions[i]
		}
	}
	return found, nil
}
