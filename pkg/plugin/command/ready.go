package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/review"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

const askAgain = time.Second

func newReady(s *session.Session) *cobra.Command {
	var output session.Format
	var extension string
	var strict, plan bool
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "ready [VERSION]",
		Short: "Say what an upgrade of the cluster breaks",
		Long: "Say what an upgrade of the cluster to a version of Kubernetes (1.38) or OpenShift (4.22) breaks, and which command helps.\n" +
			"Without a version it is the next minor of Kubernetes. With --plan, Penstock also renders the versions that follow the\n" +
			"installed ones, and the command prints the steps of the upgrade in order.\n\n" +
			"Exit code: 0 nothing found that blocks, 1 something blocks, 2 Penstock could not check everything.",
		Example: "  kubectl penstock ready --extension lighthouse\n" +
			"  kubectl penstock ready 1.38 --extension lighthouse\n" +
			"  kubectl penstock ready 1.38 --extension lighthouse --plan",
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			target := cmp.Or(strings.Join(args, ""), "next")
			answer := &v1alpha1.UpgradeReadiness{}
			request := cluster.OlmV1alpha1().RESTClient().Get().Resource("upgradereadinesses").Name(target)
			if extension != "" {
				request = request.Param("extension", extension)
			}
			if plan {
				request = request.SubResource("plan")
			}
			begun := time.Now()
			for ask := true; ask; ask = answer.Pending > 0 && (timeout == 0 || time.Since(begun) < timeout) { // the server waits while it renders
				if answer.Pending > 0 {
					select {
					case <-time.After(askAgain): // when the server has no free place, it answers without waiting
					case <-command.Context().Done():
						return command.Context().Err()
					}
				}
				*answer = v1alpha1.UpgradeReadiness{}
				if err := request.Do(command.Context()).Into(answer); err != nil {
					return fmt.Errorf("asking what an upgrade to %s breaks: %w", target, err)
				}
			}
			answer.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("UpgradeReadiness"))
			switch output {
			case "":
				printReady(s, answer)
				if plan {
					printSteps(s, answer)
				} else {
					printOrder(s, answer)
				}
			case session.Name:
				s.Out.Printf("upgradereadiness.%s/%s\n", v1alpha1.GroupName, answer.Name)
			default:
				if err := s.PrintValue(output, answer); err != nil {
					return err
				}
			}
			return readyOutcome(answer, strict)
		},
	}
	output.Add(command.Flags())
	command.Flags().StringVar(&extension, "extension", "", "Check only this extension.")
	command.Flags().BoolVar(&plan, "plan", false, "Pull and render the versions that follow, and print the steps of the upgrade in order.")
	command.Flags().DurationVar(&timeout, "timeout", review.Patience, "Stop asking for a plan after this time, and print what is known; 0 is no limit.")
	command.Flags().BoolVar(&strict, "strict", false, "Exit with 1 when there is any finding that nobody acknowledges.")
	return command
}

// readyOutcome returns the exit code as an error. A blocking finding takes precedence over objects
// that Penstock could not check.
func readyOutcome(answer *v1alpha1.UpgradeReadiness, strict bool) error {
	switch {
	case answer.Verdict == v1alpha1.UpgradeBlocked:
		return outcome.Quiet(outcome.No)
	case answer.Verdict != v1alpha1.UpgradeNothingFound || answer.Pending > 0:
		return outcome.Quiet(outcome.Unknown)
	case strict && slices.ContainsFunc(answer.Findings, func(found v1alpha1.UpgradeFinding) bool { return found.Acknowledged == nil }):
		return outcome.Quiet(outcome.No)
	}
	return nil
}

// printReady prints the verdict, each finding with its command, and each extension that was not
// checked.
func printReady(s *session.Session, answer *v1alpha1.UpgradeReadiness) {
	style, glyph := screen.Green, screen.Good
	switch answer.Verdict {
	case v1alpha1.UpgradeBlocked:
		style, glyph = screen.Red, screen.Bad
	case v1alpha1.UpgradeUnknown:
		style, glyph = screen.Yellow, screen.Notice
	case v1alpha1.UpgradeNothingFound:
	}
	s.Out.Para(style, glyph, session.Legible(fmt.Sprintf("Kubernetes %s: %s", answer.Target, answer.Message)))
	s.Out.Para(screen.Dim, screen.Notice, fmt.Sprintf("removals as the libraries of Kubernetes %s state them", answer.Lifecycle))
	for i := range answer.Findings {
		found := &answer.Findings[i]
		style := screen.Yellow
		if found.Severity == v1alpha1.UpgradeBlocks {
			style = screen.Red
		}
		subject := cmp.Or(found.Revision, found.Extension, found.Plan, found.ChartKind)
		if found.Kind != "" {
			kind := schema.FromAPIVersionAndKind(found.APIVersion, found.Kind).GroupKind().String()
			subject += ", " + kind + " " + strings.TrimPrefix(found.Namespace+"/"+found.Name, "/")
		}
		text := fmt.Sprintf("%s: %s", subject, found.Evidence)
		if found.Replacement != "" {
			text += "; use " + found.Replacement
		}
		if said := found.Acknowledged; said != nil {
			style = screen.Dim
			text += fmt.Sprintf("; acknowledged by %s at %s: %s", said.By, said.At.UTC().Format(time.RFC3339), said.Reason)
		}
		s.Out.Printf("\n")
		s.Out.Para(style, fmt.Sprintf("%s (%s)", found.Severity, found.Certainty), session.Legible(text))
		if found.Fix != "" {
			s.Out.Printf("    %s\n", screen.Safe(found.Fix))
		}
		if found.ID != "" && found.Acknowledged == nil {
			s.Out.Printf("    or acknowledge: %s\n", screen.Safe(fmt.Sprintf("kubectl annotate cer %s %s%s='%s REASON'", found.Revision, v1alpha1.AcknowledgeFindingPrefix, found.ID, answer.Target)))
		}
	}
	for i := range answer.Extensions {
		if one := &answer.Extensions[i]; one.NotLooked != "" {
			s.Out.Printf("\n")
			s.Out.Para(screen.Yellow, "Not looked at", session.Legible(one.Name+": "+one.NotLooked))
		}
	}
}

func printSteps(s *session.Session, answer *v1alpha1.UpgradeReadiness) {
	groups := []struct {
		is    v1alpha1.UpgradeOrder
		title string
	}{
		{v1alpha1.UpgradeBefore, "Before the cluster"},
		{v1alpha1.UpgradeEither, "Before or after the cluster"},
		{v1alpha1.UpgradeAfter, "After the cluster"},
		{v1alpha1.UpgradeDeadlock, "Deadlock: the installed version blocks the upgrade of the cluster, and the next one needs the upgraded cluster"},
		{"", "No version in the catalogs fits"},
	}
	for _, group := range groups {
		var steps []*v1alpha1.UpgradeStep
		for j := range answer.Steps {
			if answer.Steps[j].Order == group.is {
				steps = append(steps, &answer.Steps[j])
			}
		}
		if group.is == v1alpha1.UpgradeAfter {
			s.Out.Printf("\n")
			s.Out.Para(screen.Cyan, "Cluster", "upgrade it to Kubernetes "+session.Legible(answer.Target))
		}
		if len(steps) == 0 {
			continue
		}
		s.Out.Printf("\n")
		s.Out.Indented(0, screen.Cyan, group.title)
		for _, step := range steps {
			text := strings.TrimSpace(step.Extension + " " + step.Version)
			if step.Next != "" {
				text += " to " + step.Next
			}
			if step.Passed != "" {
				text += " (not " + step.Passed + ")"
			}
			s.Out.Printf("  %s\n", screen.Safe(session.Legible(text)))
			if step.Command != "" && group.is != v1alpha1.UpgradeDeadlock {
				s.Out.Printf("    %s\n", screen.Safe(step.Command))
			}
		}
	}
}

func printOrder(s *session.Session, answer *v1alpha1.UpgradeReadiness) {
	for _, order := range []struct {
		is    v1alpha1.UpgradeOrder
		words string
	}{
		{v1alpha1.UpgradeBefore, "upgrade before the cluster"},
		{v1alpha1.UpgradeAfter, "upgrade after the cluster"},
		{v1alpha1.UpgradeDeadlock, "a deadlock: the installed version blocks the upgrade, and the next one needs the upgraded cluster"},
	} {
		for i := range answer.Extensions {
			if one := &answer.Extensions[i]; one.Order == order.is {
				s.Out.Printf("\n")
				s.Out.Para(screen.Cyan, string(order.is), session.Legible(fmt.Sprintf("%s %s to %s: %s", one.Name, one.Version, one.Next, order.words)))
			}
		}
	}
}
