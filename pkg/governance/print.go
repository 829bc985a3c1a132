package governance

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Print writes the tables as the page docs/reference/configuration-plan-states.md.
func Print() string {
	var b strings.Builder
	b.WriteString("# States of a ConfigurationPlan\n\n" +
		"A test keeps this page equal to the tables of `pkg/governance`.\n\n" +
		"## Transitions\n\n| from | event | to | when |\n|---|---|---|---|\n")
	for _, row := range Table() {
		from := make([]string, len(row.From))
		for i, phase := range row.From {
			from[i] = string(phase)
		}
		name := strings.Join(from, ", ")
		if missing := len(Phases()) - len(from); missing == 1 {
			for _, phase := range Phases() {
				if !strings.Contains(" "+strings.Join(from, " ")+" ", " "+string(phase)+" ") {
					name = "all but " + string(phase)
				}
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, row.On, row.To, row.When)
	}
	b.WriteString("\n" +
		"A plan holds its profile while it is ")
	var active []string
	for _, phase := range Phases() {
		if Active(phase) {
			active = append(active, string(phase))
		}
	}
	b.WriteString(strings.Join(active[:len(active)-1], ", ") + " or " + active[len(active)-1] + ".\n\n")
	b.WriteString("## Conditions by phase\n\n| phase | usual reason |")
	sample := Conditions(Situation{Phase: v1alpha1.PhaseCompleted})
	for _, condition := range sample {
		fmt.Fprintf(&b, " %s |", condition.Type)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(sample)) + "\n")
	for _, row := range outlooks() {
		fmt.Fprintf(&b, "| %s | %s |", row.phase, row.reason)
		for _, condition := range Conditions(Situation{Phase: row.phase}) {
			fmt.Fprintf(&b, " %s |", condition.Status)
		}
		b.WriteString("\n")
	}
	b.WriteString("\nUpgradeAvailable is True in any phase when the plan would be different today. " +
		"Healthy is False, and Ready too, while the operator of a target reports a problem after the plan was Completed. " +
		"[Reasons](reasons.md#of-plans) says who must do what.\n")
	return b.String()
}
