package changes

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/text"
)

// PrintPlan shows a plan for its review: its effect on nodes, the fields that it takes over, and
// its changes. If the user cannot read the diff, it shows the diff in status.
func PrintPlan(s *screen.Screen, plan *v1alpha1.ConfigurationPlan, diff *v1alpha1.PlanDiff) {
	status := &plan.Status
	s.Printf("%s\n", s.Paint(screen.Bold, fmt.Sprintf("%s (%s): %s, impact %s", plan.Name, plan.Spec.Profile, v1alpha1.PhaseText(string(status.Phase), plan.Spec.RestoreRun), orNone(string(status.ImpactSeverity)))))
	if message := remark(status); message != "" {
		s.Indented(2, screen.Plain, message)
	}
	s.Lines(termLines(plan))
	for i := range status.Items {
		printItem(s, &status.Items[i])
	}
	s.Printf("\n")
	switch {
	case diff == nil && status.Diff != "":
		Lines(s, status.Diff)
	case diff != nil:
		printPlanDiff(s, diff, worked(status))
	}
	if approval := status.Approval; approval != nil {
		if approval.PlanHash != "" && approval.PlanHash != status.PlanHash {
			// The hash of the shown plan follows: this approval is for another hash.
			s.Para(screen.Dim, screen.Waiting, before(approval))
		}
		comment := approval.Comment
		if approval.Mode == v1alpha1.ApprovalStanding {
			comment = standing
		}
		printApprover(s, approval.Username, approval.Time, comment)
		for i := range approval.Others {
			other := &approval.Others[i]
			printApprover(s, other.Username, other.Time, other.Comment)
		}
	}
	if status.PlanHash != "" {
		s.Printf("hash %s\n", status.PlanHash)
	}
}

// remark returns the message of a plan without its advice about kubectl. The user reads this in a
// command that approves.
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

// termLines describe when a plan may be executed, and who approves it.
func termLines(plan *v1alpha1.ConfigurationPlan) []screen.Line {
	var lines []screen.Line
	say := func(format string, args ...any) {
		lines = append(lines, screen.Line{Indent: 2, Text: fmt.Sprintf(format, args...)})
	}
	if window := plan.Spec.Window; window != nil {
		next := ""
		if is := plan.Status.Window; is != nil {
			next = fmt.Sprintf(": from %s (%s) to %s", minute(is.OpensAt), is.Local, minute(is.ClosesAt))
		}
		say("begins only in its window, %s in %s for %s%s", window.Schedule, window.TimeZone, window.Duration.Duration, next)
	}
	if plan.Spec.Expires != nil {
		say("begins only before %s", minute(*plan.Spec.Expires))
	}
	if plan.Spec.Approvals > 1 {
		say("needs approval by %d people other than %s", plan.Spec.Approvals, strings.Join(plan.Status.RequestedBy, ", "))
	}
	return lines
}

func minute(t metav1.Time) string { return t.UTC().Format("2006-01-02 15:04Z") }

// before describes an approval of an earlier plan: it does not allow an execution.
func before(approval *v1alpha1.PlanApproval) string {
	said := "this plan is not approved; an earlier one was: hash " + approval.PlanHash
	if approval.Run != 0 {
		said += fmt.Sprintf(", run %d", approval.Run)
	}
	return said
}

// worked returns the items whose targets this plan has changed since it was computed: their
// difference is expected.
func worked(status *v1alpha1.ConfigurationPlanStatus) map[string]bool {
	items := map[string]bool{}
	for _, item := range status.Items {
		items[item.Name] = item.State == v1alpha1.ItemInProgress || item.State == v1alpha1.ItemCompleted || item.State == v1alpha1.ItemSkipped
	}
	return items
}

// standing explains an approval from before there was a plan to review.
const standing = "its spec had action: Apply when the plan was created, which approves the first plan that is computed without a review"

func printApprover(s *screen.Screen, name string, at metav1.Time, comment string) {
	s.Indented(0, screen.Plain, strings.TrimSuffix(fmt.Sprintf("approved by %s at %s: %s", name, at.UTC().Format("2006-01-02 15:04:05Z"), comment), ": "))
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

func printPlanDiff(s *screen.Screen, diff *v1alpha1.PlanDiff, worked map[string]bool) {
	for i := range diff.Items {
		item := &diff.Items[i]
		if item.Stale && !worked[item.Name] {
			s.Para(screen.Red, screen.Bad, item.Name+": the target has changed since the plan was computed")
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
