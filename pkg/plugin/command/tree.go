package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/workloads"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
	"github.com/penstock-project/penstock/pkg/plugin/tree"
)

func newTree(s *session.Session) *cobra.Command {
	var output session.Format
	command := &cobra.Command{
		Use:   "tree EXTENSION|REVISION",
		Short: "Show revisions, phases, objects and Pods, each with its state and cause",
		Long: "Show every object of the revisions that are not archived as it is in the cluster now, and the Pods of workloads.\n" +
			"Objects that you cannot get are counted, and Pods that you cannot list are not shown.",
		Example:           "  kubectl penstock tree lighthouse",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: extensionNames(s),
		RunE: func(command *cobra.Command, args []string) error {
			ctx := command.Context()
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			found, err := cluster.Find(ctx, args[0])
			if err != nil {
				return err
			}
			reader := &treeReader{Session: s, cluster: cluster, namespaces: map[string]workloads.Pods{}}
			var objects []runtime.Object
			for _, revision := range shownRevisions(found) {
				shown, err := reader.read(ctx, revision, output == "")
				if err != nil {
					return err
				}
				objects = append(objects, shown.Objects)
				if output == "" {
					s.Out.Lines(shown.Lines())
				}
			}
			if output != "" {
				return s.PrintObjects(output, objects)
			}
			return nil
		},
	}
	output.Add(command.Flags())
	return command
}

// treeReader reads what a tree is made of. It caches each namespace that it has read.
type treeReader struct {
	*session.Session
	cluster    *session.Cluster
	namespaces map[string]workloads.Pods
}

func (r *treeReader) read(ctx context.Context, revision *v1alpha1.ClusterExtensionRevision, pods bool) (*tree.Revision, error) {
	objects, err := r.cluster.OlmV1alpha1().ClusterExtensionRevisions().GetObjects(ctx, revision.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the objects of %s: %w", revision.Name, err)
	}
	out := &tree.Revision{Revision: revision, Objects: objects, Pods: map[workloads.Owner][]corev1.Pod{}}
	// Pods of another cluster are not in reach.
	if !pods || revision.Spec.TargetRef != nil {
		return out, nil
	}
	for i := range objects.Objects {
		object := &objects.Objects[i]
		if !workloads.HavePods(object.Kind) {
			continue
		}
		all, err := r.pods(ctx, object.Namespace)
		if err != nil {
			return nil, err
		}
		owner := workloads.Owner{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}
		out.Pods[owner] = all.Of[owner]
	}
	return out, nil
}

// pods of a namespace, by their owners.
func (r *treeReader) pods(ctx context.Context, namespace string) (workloads.Pods, error) {
	if known, read := r.namespaces[namespace]; read {
		return known, nil
	}
	found, err := workloads.List(ctx, r.cluster.REST, namespace)
	if apierrors.IsForbidden(err) {
		r.Err.Para(screen.Dim, screen.Waiting, fmt.Sprintf("Pods of %s are not shown: %v", namespace, err))
		err = nil
	}
	if err != nil {
		return workloads.Pods{}, err
	}
	if found.More {
		r.Err.Para(screen.Dim, screen.Waiting, fmt.Sprintf("namespace %s has more than %d Pods: not all are shown", namespace, workloads.Most))
	}
	r.namespaces[namespace] = found
	return found, nil
}
