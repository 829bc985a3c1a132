package progress

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// The reasons of a plan with an item that cannot begin yet.
const (
	waitingForWindow  = "WaitingForWindow"
	waitingForProfile = "WaitingForProfile"
)

// PlanLines returns the lines about a plan: its items, and their waits.
func PlanLines(plan *v1alpha1.ConfigurationPlan) []screen.Line {
	text := fmt.Sprintf("%s: %s", plan.Name, plan.Status.Phase)
	if ready := meta.FindStatusCondition(plan.Status.Conditions, v1alpha1.ConditionReady); ready != nil && (ready.Reason == waitingForWindow || ready.Reason == waitingForProfile) {
		text += ", " + plan.Status.Message
	}
	head := screen.Line{Text: text, Keep: true, Glyph: screen.Working, Style: screen.Cyan}
	switch verdict, _ := overview.PlanVerdict(plan); verdict {
	case overview.Done:
		head.Glyph, head.Style = screen.Good, screen.Green
	case overview.Stopped:
		head.Glyph, head.Style = screen.Bad, screen.Red
	case overview.Going:
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
