package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/progress"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

func newWhy(s *session.Session) *cobra.Command {
	var output session.Format
	command := &cobra.Command{
		Use:   "why EXTENSION|REVISION|PLAN",
		Short: "Say what holds it back, and who must do what",
		Long: "Explain in one paragraph why an extension, a revision or a plan does not continue, and who must run which command.\n" +
			"Other problems that need a person follow. plan/NAME is the plan, when an extension has the same name.\n\n" +
			"Exit code: 0 nobody has to act, or it waits for a review; 1 a person must act first.",
		Example: "  kubectl penstock why lighthouse\n" +
			"  kubectl penstock why plan/rebalance",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: extensionNames(s),
		RunE: func(command *cobra.Command, args []string) error {
			cluster, err := s.Connect()
			if err != nil {
				return err
			}
			given, err := adviceOf(command.Context(), s, cluster, args[0])
			if err != nil {
				return err
			}
			switch output {
			case "":
				printFreeze(command.Context(), s, cluster)
				printAdvice(s, given)
			case session.Name:
				for _, one := range given {
					s.Out.Printf("%s\n", one.Subject)
				}
			default:
				if err := s.PrintValue(output, given); err != nil {
					return err
				}
			}
			return verdict(given)
		},
	}
	output.Add(command.Flags())
	return command
}

// verdict returns outcome.No if a user has to act, and nil otherwise.
func verdict(given []advice.Advice) error {
	if given[0].Signal == advice.NeedsAttention {
		return outcome.Quiet(outcome.No)
	}
	return nil
}

// adviceOf returns the advice for a name of an extension, revision or plan.
func adviceOf(ctx context.Context, s *session.Session, cluster *session.Cluster, name string) ([]advice.Advice, error) {
	plan, named := strings.CutPrefix(name, "plan/")
	var unknown error
	if !named {
		found, err := cluster.Ask(ctx, name)
		switch {
		case err == nil && found.Revision != nil:
			return []advice.Advice{advice.Revision(found.Revision, found.Extension.Revisions)}, nil
		case err == nil:
			printHidden(s, found)
			return advice.Extension(found.Extension), nil
		case !session.IsUnknownName(err):
			return nil, err
		}
		unknown = err
	}
	read, err := cluster.HcoV1alpha1().ConfigurationPlans().Get(ctx, plan, metav1.GetOptions{})
	switch {
	case unknown != nil && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)):
		return nil, unknown
	case apierrors.IsNotFound(err):
		return nil, cluster.Unknown(ctx, plan)
	}
	if err != nil {
		return nil, fmt.Errorf("reading plan %s: %w", plan, err)
	}
	return []advice.Advice{advice.Plan(read)}, nil
}

// printHidden prints that the answer is based on revisions only.
func printHidden(s *session.Session, found *session.Found) {
	if found.Hidden != nil {
		s.Err.Para(screen.Yellow, screen.Notice, found.Hidden.Error())
	}
}

// printAdvice prints a paragraph for each advice, with its command on a separate line.
func printAdvice(s *session.Session, given []advice.Advice) {
	for i, one := range given {
		if i > 0 {
			s.Out.Printf("\n")
		}
		glyph, style := progress.Mark(one.Signal)
		command := one.Command
		one.Command = ""
		// Approvers need the command more than the explanation.
		if one.Who == advice.Approver && command != "" {
			s.Out.Printf("    %s\n\n", command)
			command = ""
		}
		// A message may end in a file that must be copied unchanged.
		first, file, _ := strings.Cut(session.Legible(one.Because), "\n")
		one.Because = first
		s.Out.Para(style, glyph, one.String())
		for line := range strings.Lines(file) {
			s.Out.Printf("%s\n", screen.Safe(strings.TrimSuffix(line, "\n")))
		}
		if command != "" {
			s.Out.Printf("\n    %s\n", command)
		}
	}
}
