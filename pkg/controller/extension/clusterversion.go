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

// versionAgain is the interval of passes over an extension whose bundle waits for a newer cluster.
// Each pass reads the version, because it cannot be watched.
const versionAgain = 10 * time.Minute

// Versions returns the versions of clusters, by the name of the target.
type Versions interface {
	// Version never waits. known is false before the first answer, and why is the reason.
	Version(ctx context.Context, target string) (found clusterversion.Kubernetes, known bool, why error)
	// Changed receives an element when a version changes.
	Changed() <-chan struct{}
}

type clusterIs struct {
	// version is nil if it is unknown or irrelevant.
	version *clusterversion.Kubernetes
	// waits is the reason why a bundle that depends on the version is not installed now.
	waits *maker.Outcome
}

// clusterVersion reads the version of an extension's target cluster. An author without the right to
// use a remote cluster learns nothing about it, and can install nothing there.
func (s *scope) clusterVersion(ctx context.Context) clusterIs {
	if s.Versions == nil {
		return clusterIs{}
	}
	if s.target() != "" {
		stamp, err := author.ClusterExtensions().Verify(s.Key, s.object)
		if err != nil {
			return clusterIs{} // without an author no revision is created
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

// mayChoose returns the reason why a bundle is not installed while the version of the cluster is
// unknown, or nil.
func (s *scope) mayChoose(answer *resolve.Resolution) *maker.Outcome {
	if installed, _ := s.installedBundle(); s.cluster.waits == nil || installed == answer.Bundle.Name || !resolve.NeedsKubernetes(answer.Bundle) {
		return nil
	}
	return s.cluster.waits
}

// awaitVersion requests a later pass if a newer cluster would allow another version.
func (s *scope) awaitVersion(answer *resolve.Resolution, err error) {
	var none *resolve.Error
	if answer != nil && answer.Counts[resolve.ClusterVersion] > 0 || errors.As(err, &none) && none.Counts[resolve.ClusterVersion] > 0 {
		s.queue.AddAfter(s.extension.Name, versionAgain)
	}
}

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
