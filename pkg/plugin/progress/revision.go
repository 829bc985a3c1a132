// Package progress shows the progress of an operation until its end: the rollout of a revision by
// phase, or the run of a plan by item. On a terminal it is a changing picture. Otherwise it prints
// a line for each transition, and at least one line a minute.
package progress

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/text"
)

// Mark returns the glyph and the style of a signal, the same in every command.
func Mark(signal advice.Signal) (glyph string, style screen.Style) {
	switch signal {
	case advice.NeedsAttention:
		return screen.Bad, screen.Red
	case advice.Review:
		return screen.Notice, screen.Yellow
	case advice.Stopped:
		return screen.Waiting, screen.Yellow
	case advice.InProgress:
		return screen.Working, screen.Cyan
	default:
		return screen.Good, screen.Green
	}
}

// RevisionLines returns a picture of a revision: its phases, and the objects that hold them back.
func RevisionLines(revision *v1alpha1.ClusterExtensionRevision) []screen.Line {
	lines := []screen.Line{headline(revision)}
	if why := revision.Annotations[overview.ReasonAnnotation]; why != "" && revision.Spec.LifecycleState != v1alpha1.LifecycleStateActive {
		lines = append(lines, screen.Line{Indent: 2, Text: why})
	}
	reported := map[string]*v1alpha1.PhaseStatus{}
	for i := range revision.Status.Phases {
		reported[revision.Status.Phases[i].Name] = &revision.Status.Phases[i]
	}
	widest := 0
	for i := range revision.Spec.Phases {
		widest = max(widest, screen.Width(screen.Safe(revision.Spec.Phases[i].Name)))
	}
	for i := range revision.Spec.Phases {
		phase := &revision.Spec.Phases[i]
		status := reported[phase.Name]
		if status == nil {
			status = &v1alpha1.PhaseStatus{State: v1alpha1.PhaseStatePending, Objects: int32(len(phase.Objects))}
		}
		lines = append(lines, phaseLines(phase.Name, widest, status)...)
	}
	return lines
}

func headline(revision *v1alpha1.ClusterExtensionRevision) screen.Line {
	title := revision.Name
	if version := overview.Version(revision); version != "" {
		title += " " + version
	}
	ready, all := overview.Objects(revision)
	title += fmt.Sprintf(": %s, %d of %s available", overview.State(revision), ready, text.Count(all, "object"))
	if replaced := overview.Superseded(revision); replaced > 0 {
		title += fmt.Sprintf(", %d superseded", replaced)
	}
	line := screen.Line{Text: title, Keep: true}
	given := advice.Revision(revision, nil)
	if line.Glyph, line.Style = Mark(given.Signal); given.Signal == advice.NeedsAttention && !Names(revision, given) {
		line.Text += "; " + given.State() + ": " + given.Announced()
	}
	return line
}

// Names reports whether the phases of a revision name the object of an advice.
func Names(revision *v1alpha1.ClusterExtensionRevision, given advice.Advice) bool {
	for i := range revision.Status.Phases {
		for j := range revision.Status.Phases[i].Failing {
			if message := revision.Status.Phases[i].Failing[j].Message; message != "" && strings.Contains(given.Because, message) {
				return true
			}
		}
	}
	return false
}

// Folded returns one line about a superseded revision: the remaining objects, and the command that
// shows them.
func Folded(revision *v1alpha1.ClusterExtensionRevision) screen.Line {
	line := headline(revision)
	line.Style = screen.Dim
	line.Text += ": kubectl penstock tree " + revision.Name
	return line
}

const detailIndent = 4

func phaseLines(name string, widest int, status *v1alpha1.PhaseStatus) []screen.Line {
	name = screen.Safe(name)
	for screen.Width(name) < widest {
		name += " "
	}
	line := screen.Line{Indent: 2, Text: name + "  " + phaseText(status)}
	switch status.State {
	case v1alpha1.PhaseStateAvailable:
		line.Glyph, line.Style = screen.Good, screen.Green
	case v1alpha1.PhaseStateProgressing:
		line.Glyph, line.Style, line.Keep = screen.Working, screen.Cyan, true
	case v1alpha1.PhaseStateFailing:
		line.Glyph, line.Style, line.Keep = screen.Bad, screen.Red, true
	default:
		line.Glyph, line.Style = screen.Waiting, screen.Dim
	}
	lines := []screen.Line{line}
	for i := range status.Failing {
		lines = append(lines, screen.Line{Indent: detailIndent, Text: failureText(&status.Failing[i], status.State), Keep: true, Whole: true})
	}
	if status.FailingOmitted > 0 {
		lines = append(lines, screen.Line{Indent: detailIndent, Style: screen.Dim, Text: fmt.Sprintf("and %d more", status.FailingOmitted)})
	}
	return lines
}

// phaseText describes the state of a phase, such as "Progressing, 1 of 2 available".
func phaseText(status *v1alpha1.PhaseStatus) string {
	took := ""
	if began, ended := status.StartedAt, status.AvailableAt; began != nil && ended != nil && !ended.Before(began) {
		took = " " + Elapsed(ended.Sub(began.Time)) + " after it began"
	}
	switch status.State {
	case v1alpha1.PhaseStateAvailable:
		return fmt.Sprintf("%s%s, %s", status.State, took, text.Count(status.Objects, "object"))
	case v1alpha1.PhaseStatePending, v1alpha1.PhaseStateSuperseded, v1alpha1.PhaseStateArchived:
		return fmt.Sprintf("%s, %s", status.State, text.Count(status.Objects, "object"))
	default:
		return fmt.Sprintf("%s, %d of %s available", status.State, status.Available, text.Count(status.Objects, "object"))
	}
}

// reasonProbeFailed is the reason of an object that is not ready. While a phase progresses that is
// not a failure: every object starts unready.
const reasonProbeFailed = "ProbeFailed"

func failureText(failure *v1alpha1.ObjectFailure, phase v1alpha1.PhaseState) string {
	name := failure.Name
	if failure.Namespace != "" {
		name = failure.Namespace + "/" + name
	}
	reason := failure.Reason
	if reason == reasonProbeFailed && phase == v1alpha1.PhaseStateProgressing {
		reason = "waiting"
	}
	said := fmt.Sprintf("%s %s: ", failure.Kind, name)
	switch {
	case failure.Message == "":
		said += reason
	case strings.HasPrefix(failure.Message, reason):
		said += failure.Message
	default:
		said += reason + ": " + failure.Message
	}
	// Usually the message contains the cause already.
	if cause := failure.Cause; cause != nil && !strings.Contains(failure.Message, cause.Reason) {
		said += " (" + causeText(cause) + ")"
	}
	return said
}

// causeText describes why an object is not ready, such as "CrashLoopBackOff of container main in
// Pod a/b".
func causeText(cause *v1alpha1.FailureCause) string {
	said := cause.Reason
	if cause.Container != "" {
		said += " of container " + cause.Container
	}
	return said + " in " + cause.Object.Kind + " " + cause.Object.Name
}
