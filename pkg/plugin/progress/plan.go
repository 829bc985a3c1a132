package progress

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// PlanVerdict is how the run of a plan is, with a reason when it has stopped.
func PlanVerdict(plan *v1alpha1.ConfigurationPlan) (verdict Verdict, reason string) {
	status := &plan.Status
	switch {
	case plan.DeletionTimestamp != nil:
		return Stopped, "it is being deleted"
	case status.ObservedGeneration < plan.Generation:
		return Going, ""
	}
	switch status.Phase {
	case v1alpha1.PhaseCompleted:
		return Done, ""
	case v1alpha1.PhaseFailed, v1alpha1.PhaseCompletedWithErrors, v1alpha1.PhasePrerequisiteFailed, v1alpha1.PhaseDrifted, v1alpha1.PhaseExpired, v1alpha1.PhaseIgnored:
		return Stopped, string(status.Phase) + ": " + status.Message
	default:
		return Going, ""
	}
}

// waitingForWindow is the reason of a plan of which an item may not begin yet.
const waitingForWindow = "WaitingForWindow"

// PlanLines is a picture of a plan: its items, and what they wait for.
func PlanLines(plan *v1alpha1.ConfigurationPlan) []screen.Line {
	text := fmt.Sprintf("%s: %s", plan.Name, plan.Status.Phase)
	if ready := meta.FindStatusCondition(plan.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.Reason == waitingForWindow {
		text += ", " + plan.Status.Message
	}
	head := screen.Line{Text: text, Keep: true, Glyph: screen.Working, Style: screen.Cyan}
	switch verdict, _ := PlanVerdict(plan); verdict {
	case Done:
		head.Glyph, head.Style = screen.Good, screen.Green
	case Stopped:
		head.Glyph, head.Style = screen.Bad, screen.Red
	case Going:
	}
	lines := []screen.Line{head}
	for i := range plan.Status.Items {
		item := &plan.Status.Items[i]
		line := screen.Line{Indent: 2, Text: item.Name + "  " + string(item.State)}
		if item.Message != "" {
			line.Text += ": " + item.Message
		}
		switch item.State {
		case v1alpha1.ItemCompleted, v1alpha1.ItemSkipped:
			line.Glyph, line.Style = screen.Good, screen.Green
		case v1alpha1.ItemInProgress:
			line.Glyph, line.Style, line.Keep = screen.Working, screen.Cyan, true
		case v1alpha1.ItemFailed:
			line.Glyph, line.Style, line.Keep = screen.Bad, screen.Red, true
		default:
			line.Glyph, line.Style = screen.Waiting, screen.Dim
		}
		lines = append(lines, line)
	}
	return lines
}
