// Package tree shows an extension from above: its revisions, their phases, the objects of
// each, and the Pods of those. It is pure.
package tree

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/changes"
	"github.com/penstock-project/penstock/pkg/plugin/progress"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/text"
)

// Revision is one revision with its objects as they are now.
type Revision struct {
	Revision *v1alpha1.ClusterExtensionRevision `json:"revision"`
	Objects  *v1alpha1.RevisionObjects          `json:"objects"`
	// Pods by the object that they belong to.
	Pods map[Owner][]corev1.Pod `json:"-"`
}

// Owner is an object that has Pods.
type Owner struct{ Kind, Namespace, Name string }

// PodsByOwner finds the Pods of workloads, those of Deployments through their ReplicaSets.
func PodsByOwner(pods []corev1.Pod, replicaSets []metav1.PartialObjectMetadata) map[Owner][]corev1.Pod {
	deployments := map[Owner]Owner{}
	for i := range replicaSets {
		set := &replicaSets[i]
		if controller := metav1.GetControllerOf(set); controller != nil {
			deployments[Owner{"ReplicaSet", set.Namespace, set.Name}] = Owner{controller.Kind, set.Namespace, controller.Name}
		}
	}
	found := map[Owner][]corev1.Pod{}
	for _, pod := range pods {
		controller := metav1.GetControllerOf(&pod)
		if controller == nil {
			continue
		}
		owner := Owner{controller.Kind, pod.Namespace, controller.Name}
		if above, known := deployments[owner]; known {
			owner = above
		}
		found[owner] = append(found[owner], pod)
	}
	return found
}

// Lines is the picture of a revision.
func (r Revision) Lines() []screen.Line {
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
			for _, pod := range r.Pods[Owner{object.Kind, object.Namespace, object.Name}] {
				lines = append(lines, podLine(&pod))
			}
		}
	}
	if n := r.Objects.Withheld; n > 0 {
		lines = append(lines, screen.Line{Indent: 2, Glyph: screen.Notice, Style: screen.Yellow, Text: text.Count(n, "object") + " not shown: you may not get them"})
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

// podLine says how a Pod is: Pod web-1: Running, 1/1 ready, 3 restarts.
func podLine(pod *corev1.Pod) screen.Line {
	ready, restarts := 0, int32(0)
	phase := string(pod.Status.Phase)
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if status.Ready {
			ready++
		}
		restarts += status.RestartCount
		if status.State.Waiting != nil && status.State.Waiting.Reason != "" {
			phase = status.State.Waiting.Reason
		}
	}
	if pod.DeletionTimestamp != nil {
		phase = "Terminating"
	}
	line := screen.Line{Indent: 6, Glyph: screen.Working, Style: screen.Yellow, Text: fmt.Sprintf("Pod %s: %s, %d/%d ready", pod.Name, phase, ready, len(pod.Spec.Containers))}
	if restarts > 0 {
		line.Text += ", " + text.Count(restarts, "restart")
	}
	if ready == len(pod.Spec.Containers) || pod.Status.Phase == corev1.PodSucceeded {
		line.Glyph, line.Style = screen.Good, screen.Green
	}
	return line
}
