package extension

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/resolve"
)

// versionAgain is the interval of passes of an extension whose bundle waits for a newer cluster. A
// pass asks the cluster for its version: it cannot be watched.
const versionAgain = 10 * time.Minute

// Versions returns the versions of clusters, by the name of their target.
type Versions interface {
	// Version never waits. known is false before the first answer, and why says why there is none.
	Version(ctx context.Context, target string) (found clusterversion.Kubernetes, known bool, why error)
	// Changed has an element when a version is another one.
	Changed() <-chan struct{}
}

// clusterIs has the known version of the cluster that an extension is rolled out into.
type clusterIs struct {
	// version is nil when it is not known, or when it does not matter.
	version *clusterversion.Kubernetes
	// waits is the reason why a bundle that needs a version is not installed now.
	waits *maker.Outcome
}

// clusterVersion asks for the version of the cluster of an extension. Of another cluster than the
// host its author is told nothing without the right to use it: they get nothing there either.
func (s *scope) clusterVersion(ctx context.Context) clusterIs {
	if s.Versions == nil {
		return clusterIs{}
	}
	if s.target() != "" {
		stamp, err := author.ClusterExtensions().Verify(s.Key, s.object)
		if err != nil {
			return clusterIs{} // without an author no revision is made
		}
		if stopped := s.mayUse(ctx, stamp.Info()); stopped != nil {
			return clusterIs{waits: stopped}
		}
	}
	found, known, why := s.Versions.Version(ctx, s.extension.Annotations[extension.TargetAnnotation])
	switch {
	case known:
		return clusterIs{version: &found}
	case why != nil:
		return clusterIs{waits: retry(status.Failed, fmt.Errorf("reading the version of the cluster, which the bundle depends on: %w", why))}
	}
	return clusterIs{waits: stop(status.Pending, "the version of the cluster is not known yet", "")}
}

// mayChoose returns the reason why a bundle is not installed in a cluster whose version is unknown;
// nil for none.
func (s *scope) mayChoose(answer *resolve.Resolution) *maker.Outcome {
	if installed, _ := s.installedBundle(); s.cluster.waits == nil || installed == answer.Bundle.Name || !resolve.NeedsKubernetes(answer.Bundle) {
		return nil
	}
	return s.cluster.waits
}

// awaitVersion requests another pass for when a newer cluster would allow a version.
func (s *scope) awaitVersion(answer *resolve.Resolution, err error) {
	var none *resolve.Error
	if answer != nil && answer.Counts[resolve.ClusterVersion] > 0 || errors.As(err, &none) && none.Counts[resolve.ClusterVersion] > 0 {
		s.queue.AddAfter(s.extension.Name, versionAgain)
	}
}

// watchVersions queues all extensions when the version of a cluster changes.
func (c *Controller) watchVersions(ctx context.Context) {
	if c.Versions == nil {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.Versions.Changed():
			for _, object := range c.all() {
				c.queue.Add(object.GetName())
			}
		}
	}
}
