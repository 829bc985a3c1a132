package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// clusterExtensions lists the ClusterExtensions by name. It returns nil if the cluster does not
// have the kind, or if the caller cannot list them, which it prints.
func clusterExtensions(ctx context.Context, s *session.Session, cluster *session.Cluster) ([]unstructured.Unstructured, error) {
	listed, err := cluster.Host.Resource(extension.Resource).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		s.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("ClusterExtensions are not shown: %v", err))
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing ClusterExtensions: %w", err)
	}
	slices.SortFunc(listed.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return append([]unstructured.Unstructured{}, listed.Items...), nil // nil would mean that they cannot be listed
}

// join adds to extensions the requests of their ClusterExtensions, and the ClusterExtensions
// without revisions.
func join(extensions []overview.Extension, objects []unstructured.Unstructured) ([]overview.Extension, error) {
	asked := make([]overview.Asked, 0, len(objects))
	for i := range objects {
		read, err := extension.From(&objects[i])
		if err != nil {
			return nil, err
		}
		asked = append(asked, overview.Ask(read))
	}
	return overview.Join(extensions, asked), nil
}
