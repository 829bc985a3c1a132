// Package tree shows an extension from above: its revisions, their phases, the objects of
// each, and the Pods of those. It is pure.
package tree

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/workloads"
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
	Pods map[workloads.Owner][]corev1.Pod `json:"-"`
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
			for _, pod := range r.Pods[workloads.Owner{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}] {
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
