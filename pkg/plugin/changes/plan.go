package changes

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/text"
)

// PrintPlan shows a plan for its review: what it disturbs, whose fields it takes, then
// what it changes. Without a diff (the reader may not read it) it is that of status.
func PrintPlan(s *screen.Screen, plan *v1alpha1.ConfigurationPlan, diff *v1alpha1.PlanDiff) {
	status := &plan.Status
	s.Printf("%s\n", s.Paint(screen.Bold, fmt.Sprintf("%s (%s): %s, impact %s", plan.Name, plan.Spec.Profile, status.Phase, orNone(string(status.ImpactSeverity)))))
	if message := remark(status); message != "" {
		s.Indented(2, screen.Plain, message)
	}
	for i := range status.Items {
		printItem(s, &status.Items[i])
	}
	s.Printf("\n")
	switch {
	case diff == nil && status.Diff != "":
		Lines(s, status.Diff)
	case diff != nil:
		printPlanDiff(s, diff)
	}
	if approval := status.Approval; approval != nil {
		s.Indented(0, screen.Plain, strings.TrimSuffix(fmt.Sprintf("approved by %s at %s: %s", approval.Username, approval.Time.UTC().Format("2006-01-02 15:04:05Z"), approval.Comment), ": "))
	}
	if status.PlanHash != "" {
		s.Printf("hash %s\n", status.PlanHash)
	}
}

// remark is the message of a plan without the way to approve it by kubectl, which is not
// what somebody needs who reads this.
func remark(status *v1alpha1.ConfigurationPlanStatus) string {
	if status.Phase != v1alpha1.PhaseReviewRequired || status.PlanHash == "" {
		return status.Message
	}
	before, _, found := strings.Cut(status.Message, "review status.items")
	if !found {
		return status.Message
	}
	return strings.TrimRight(before, " ;:.")
}

func orNone(text string) string {
	if text == "" {
		return "unknown"
	}
	return text
}

func printItem(s *screen.Screen, item *v1alpha1.PlanItem) {
	style := screen.Plain
	switch item.ImpactSeverity {
	case v1alpha1.ImpactHigh:
		style = screen.Red
	case v1alpha1.ImpactMedium:
		style = screen.Yellow
	default:
	}
	target := item.TargetRef.Kind + " " + qualified(item.TargetRef.Namespace, item.TargetRef.Name)
	line := screen.Line{Indent: 2, Glyph: screen.Waiting, Style: style, Text: fmt.Sprintf("%s: %s %s", item.Name, item.Action, target)}
	if item.ImpactReason != "" {
		line.Text += fmt.Sprintf("; %s, %s", item.ImpactSeverity, item.ImpactReason)
	}
	lines := []screen.Line{line}
	if radius := item.BlastRadius; radius != nil && radius.Nodes > 0 {
		said := text.Count(radius.Nodes, "node")
		if radius.Reboot {
			said += " reboot"
		}
		if radius.Waves > 0 {
			said += " in " + text.Count(radius.Waves, "wave")
		}
		if len(radius.Pools) > 0 {
			said += ", of " + strings.Join(radius.Pools, ", ")
		}
		lines = append(lines, screen.Line{Indent: 4, Style: style, Text: said})
	}
	for _, note := range item.Notes {
		lines = append(lines, screen.Line{Indent: 4, Text: note})
	}
	for _, take := range item.Takes {
		lines = append(lines, screen.Line{Indent: 4, Style: screen.Yellow, Text: fmt.Sprintf("takes %s from %s", strings.Join(take.Fields, ", "), take.Manager)})
	}
	if item.State != "" && item.State != v1alpha1.ItemPending || item.Message != "" {
		lines = append(lines, screen.Line{Indent: 4, Text: strings.TrimSuffix(string(item.State)+": "+item.Message, ": ")})
	}
	s.Lines(lines)
}

func printPlanDiff(s *screen.Screen, diff *v1alpha1.PlanDiff) {
	for i := range diff.Items {
		item := &diff.Items[i]
		if item.Stale {
			s.Para(screen.Red, screen.Bad, item.Name+": the target is not as it was when the plan was computed")
		}
		if item.Message != "" {
			s.Para(screen.Dim, screen.Waiting, item.Name+": "+item.Message)
		}
		if item.Diff != "" {
			Lines(s, strings.TrimSuffix(item.Diff, "\n"))
			s.Printf("\n")
		}
	}
}
