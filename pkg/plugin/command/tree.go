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
	"github.com/penstock-project/penstock/pkg/plugin/changes"
	"github.com/penstock-project/penstock/pkg/plugin/progress"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
	"github.com/penstock-project/penstock/pkg/text"
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
					s.Out.Lines(shown.lines())
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

// treeReader reads the data of a tree. It caches each namespace that it has read.
type treeReader struct {
	*session.Session
	cluster    *session.Cluster
	namespaces map[string]workloads.Pods
}

func (r *treeReader) read(ctx context.Context, revision *v1alpha1.ClusterExtensionRevision, pods bool) (*revisionTree, error) {
	objects, err := r.cluster.OlmV1alpha1().ClusterExtensionRevisions().GetObjects(ctx, revision.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the objects of %s: %w", revision.Name, err)
	}
	out := &revisionTree{Revision: revision, Objects: objects, Pods: map[workloads.Owner][]corev1.Pod{}}
	// Pods of another cluster cannot be read.
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

type revisionTree struct {
	Revision *v1alpha1.ClusterExtensionRevision
	Objects  *v1alpha1.RevisionObjects
	// Pods maps each owner to its Pods.
	Pods map[workloads.Owner][]corev1.Pod
}

func (r revisionTree) lines() []screen.Line {
	lines := progress.RevisionLines(r.Revision)[:1]
	byPhase := map[string][]*v1alpha1.RevisionObjectStatus{}
	for i := range r.Objects.Objects {
		object := &r.Objects.Objects[i]
		byPhase[object.Phase] = append(byPhase[object.Phase], object)
	}
	for i := range r.Revision.Spec.Phases {
		name := r.Revision.Spec.Phases[i].Name
		if len(byPhase[name]) == 0 {
			continue
		}
		lines = append(lines, screen.Line{Indent: 2, Style: screen.Bold, Text: name})
		for _, object := range byPhase[name] {
			lines = append(lines, objectLine(object))
			if object.Message != "" && object.State != v1alpha1.ObjectStateAvailable {
				lines = append(lines, screen.Line{Indent: 6, Text: object.Message})
			}
			if object.Detail != "" {
				lines = append(lines, screen.Line{Indent: 6, Style: screen.Dim, Text: object.Detail})
			}
			if repair := object.LastRepair; repair != nil {
				lines = append(lines, screen.Line{Indent: 6, Style: screen.Dim, Text: "repaired: " + repair.Message})
			}
			for _, pod := range r.Pods[workloads.Owner{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}] {
				lines = append(lines, podLine(&pod))
			}
		}
	}
	if n := r.Objects.Withheld; n > 0 {
		lines = append(lines, screen.Line{Indent: 2, Glyph: screen.Notice, Style: screen.Yellow, Text: text.Count(n, "object") + " not shown: you cannot get them"})
	}
	return lines
}

func objectLine(object *v1alpha1.RevisionObjectStatus) screen.Line {
	name := object.Name
	if object.Namespace != "" {
		name = object.Namespace + "/" + name
	}
	line := screen.Line{Indent: 4, Text: fmt.Sprintf("%s %s: %s", changes.Kind(object.APIVersion, object.Kind), name, object.State)}
	if object.Reason != "" && object.Reason != string(object.State) {
		line.Text += ", " + object.Reason
	}
	if object.Cause != nil && object.Cause.Reason != object.Reason {
		line.Text += ", " + object.Cause.Reason
	}
	switch object.State {
	case v1alpha1.ObjectStateAvailable:
		line.Glyph, line.Style = screen.Good, screen.Green
	case v1alpha1.ObjectStateFailing:
		line.Glyph, line.Style = screen.Bad, screen.Red
	case v1alpha1.ObjectStateUnready, v1alpha1.ObjectStateLeaving:
		line.Glyph, line.Style = screen.Working, screen.Yellow
	default:
		line.Glyph, line.Style = screen.Waiting, screen.Dim
	}
	return line
}

// podLine returns the state of a Pod: Pod web-1: Running, 1/1 ready, 3 restarts.
func podLine(pod *corev1.Pod) screen.Line {
	state := workloads.StateOf(pod)
	line := screen.Line{Indent: 6, Glyph: screen.Working, Style: screen.Yellow, Text: fmt.Sprintf("Pod %s: %s, %d/%d ready", pod.Name, state.Word, state.Ready, state.Containers)}
	if state.Restarts > 0 {
		line.Text += ", " + text.Count(state.Restarts, "restart")
	}
	if state.Good {
		line.Glyph, line.Style = screen.Good, screen.Green
	}
	return line
}
